/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/memory.h"
#include "common/utf8.h"

#define INTEGER_MAX 9007199254740992.0 /* 2^53 */
#define SCALAR_TEXT_MAX 64
#define INDENT_WIDTH 2

struct printer {
    struct buffer *out;
    bool indented;
    unsigned depth;
    struct error *error;
};

static int print_value(struct printer *printer, const struct json *value);

static int put(struct printer *printer, const char *text, size_t length)
{
    return buffer_append(printer->out, text, length, printer->error);
}

static int put_text(struct printer *printer, const char *text)
{
    return put(printer, text, strlen(text));
}

/* Whole numbers without an exponent, since other languages read 1e+15 as a float; others in the fewest digits that read
 * back as the same double. */
static int print_number(struct printer *printer, double number)
{
    char text[40];
    if (!isfinite(number))
        return put_text(printer, "null");
    if (fabs(number) <= INTEGER_MAX && number == floor(number)) {
        snprintf(text, sizeof text, "%lld", (long long)number);
        return put_text(printer, text);
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return put_text(printer, text);
}

/* The character's number; `size` as utf8_sequence tells it. */
static unsigned code_point(const char *text, size_t size)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char)text[0] & first_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* JSON must escape the first three; control characters and byte order marks would disturb terminals and YAML. */
static bool needs_escape(unsigned code)
{
    return code < ' ' || code == '"' || code == '\\' || (code >= 0x7f && code < 0xa0) || code == 0xfeff ||
           (code & 0xfffe) == 0xfffe;
}

static int print_escape(struct printer *printer, unsigned code)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs of byte and letter */
    char text[16] = {'\\'};
    for (const char *pair = named; *pair; pair += 2)
        if ((unsigned char)*pair == code) {
            text[1] = pair[1];
            return put(printer, text, 2);
        }
    if (code > 0xffff)
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    else
        snprintf(text, sizeof text, "\\u%04x", code);
    return put_text(printer, text);
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The length of the run that is printed as it is. */
static size_t plain_run(const char *text, size_t length)
{
    size_t run = 0;
    while (run < length) {
        size_t size = utf8_sequence(text + run, length - run);
        if (size == 0 || needs_escape(code_point(text + run, size)))
            return run;
        run += size;
    }
    return run;
}

/* Input from outside (a log line, a container's message) need not be UTF-8, but the output always is. */
static int print_string(struct printer *printer, const char *text)
{
    size_t length = strlen(text);
    if (put(printer, "\"", 1) < 0)
        return -1;
    for (;;) {
        size_t run = plain_run(text, length);
        if (put(printer, text, run) < 0)
            return -1;
        text += run;
        length -= run;
        if (length == 0)
            return put(printer, "\"", 1);
        size_t size = utf8_sequence(text, length);
        if ((size > 0 ? print_escape(printer, code_point(text, size)) : put_text(printer, REPLACEMENT)) < 0)
            return -1;
        text += size > 0 ? size : 1;
        length -= size > 0 ? size : 1;
    }
}

static int print_line_break(struct printer *printer)
{
    if (!printer->indented)
        return 0;
    if (put(printer, "\n", 1) < 0)
        return -1;
    for (unsigned i = 0; i < printer->depth * INDENT_WIDTH; i++)
        if (put(printer, " ", 1) < 0)
            return -1;
    return 0;
}

static int print_item(struct printer *printer, const struct json *item, bool named)
{
    if (print_line_break(printer) < 0)
        return -1;
    if (named && (print_string(printer, json_key(item)) < 0 || put_text(printer, printer->indented ? ": " : ":") < 0))
        return -1;
    return print_value(printer, item);
}

static int print_container(struct printer *printer, const struct json *container, const char *brackets)
{
    bool named = brackets[0] == '{';
    if (put(printer, brackets, 1) < 0)
        return -1;
    printer->depth++;
    for (const struct json *item = json_first(container); item; item = json_next(item)) {
        if (print_item(printer, item, named) < 0)
            return -1;
        if (json_next(item) && put(printer, ",", 1) < 0)
            return -1;
    }
    printer->depth--;
    if (json_first(container) && print_line_break(printer) < 0)
        return -1;
    return put(printer, brackets + 1, 1);
}

static int print_value(struct printer *printer, const struct json *value)
{
    switch (json_type(value)) {
    case JSON_BOOLEAN:
        return put_text(printer, json_boolean(value, false) ? "true" : "false");
    case JSON_NUMBER:
        return print_number(printer, json_number(value, 0));
    case JSON_STRING:
        return print_string(printer, json_string(value, ""));
    case JSON_ARRAY:
        return print_container(printer, value, "[]");
    case JSON_OBJECT:
        return print_container(printer, value, "{}");
    default:
        return put_text(printer, "null");
    }
}

int json_print(const struct json *value, struct buffer *out, struct error *error)
{
    return print_value(&(struct printer){.out = out, .error = error}, value);
}

int json_print_indented(const struct json *value, struct buffer *out, struct error *error)
{
    return print_value(&(struct printer){.out = out, .indented = true, .error = error}, value);
}

char *json_scalar_text(const struct json *value)
{
    struct buffer text = BUFFER_INIT(SCALAR_TEXT_MAX);
    if (json_type(value) == JSON_STRING)
        return memory_copy_string(json_string(value, ""));
    if (json_type(value) != JSON_NUMBER && json_type(value) != JSON_BOOLEAN)
        return NULL;
    json_print(value, &text, NULL);
    return buffer_take(&text);
}
