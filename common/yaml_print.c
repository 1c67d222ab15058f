/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/yaml.h"

struct printer {
    struct buffer *out;
    struct error *error;
};

static int print_block(struct printer *printer, const struct json *value, unsigned indent);

static int put(struct printer *printer, const char *text)
{
    return buffer_append_string(printer->out, text, printer->error);
}

static int put_indent(struct printer *printer, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++)
        if (put(printer, "  ") < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- scalars */

#define PLAIN_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./()[]{},;'\"=+*<>|&%@!?^$~`\\#:"

static bool begins_plain(const char *text)
{
    return (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '/' || *text == '_' ||
           *text == '.' || *text == '(' || *text == '^' || *text == '$' || *text == '<' || *text == ';';
}

/* Words that YAML 1.1 readers take for booleans or null, and what 1.2 takes for more than text. */
static bool is_reserved(const char *text)
{
    static const char *const words[] = {"y",     "n",    "yes", "no",   "on",   "off", "true",
                                        "false", "null", "nan", ".nan", ".inf", "inf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return text[0] == '.' && text[1] >= '0' && text[1] <= '9';
}

static bool needs_quotes(const char *text)
{
    size_t length = strlen(text);
    return length == 0 || !begins_plain(text) || is_reserved(text) || text[strspn(text, PLAIN_BYTES)] != '\0' ||
           strstr(text, ": ") || strstr(text, " #") || text[length - 1] == ' ' || text[length - 1] == ':' ||
           strncmp(text, "<<", 2) == 0 || strncmp(text, "...", 3) == 0; /* a merge; the end of a document */
}

/* JSON's double-quoted strings are YAML's as well. */
static int print_scalar(struct printer *printer, const struct json *value)
{
    const char *text = json_string(value, NULL);
    if (text && !needs_quotes(text))
        return put(printer, text);
    return json_print(value, printer->out, printer->error);
}

static int print_key(struct printer *printer, const char *key)
{
    SCOPED_JSON *text = json_new_string(key);
    return print_scalar(printer, text) < 0 ? -1 : put(printer, ":");
}

/* ---------------------------------------------------------------- collections */

static bool is_block(const struct json *value)
{
    return json_first(value) != NULL;
}

static int print_member(struct printer *printer, const struct json *member, unsigned indent)
{
    if (print_key(printer, json_key(member)) < 0)
        return -1;
    if (is_block(member)) {
        unsigned inner = json_type(member) == JSON_ARRAY ? indent : indent + 1;
        return put(printer, "\n") < 0 || put_indent(printer, inner) < 0 ? -1 : print_block(printer, member, inner);
    }
    return put(printer, " ") < 0 || print_scalar(printer, member) < 0 ? -1 : put(printer, "\n");
}

static int print_element(struct printer *printer, const struct json *element, unsigned indent)
{
    if (put(printer, "- ") < 0)
        return -1;
    if (is_block(element))
        return print_block(printer, element, indent + 1);
    return print_scalar(printer, element) < 0 ? -1 : put(printer, "\n");
}

/* The first line's indentation stands already. */
static int print_block(struct printer *printer, const struct json *value, unsigned indent)
{
    bool named = json_type(value) == JSON_OBJECT;
    for (const struct json *item = json_first(value); item; item = json_next(item)) {
        if (item != json_first(value) && put_indent(printer, indent) < 0)
            return -1;
        if ((named ? print_member : print_element)(printer, item, indent) < 0)
            return -1;
    }
    return 0;
}

int yaml_print(const struct json *value, struct buffer *out, struct error *error)
{
    struct printer printer = {.out = out, .error = error};
    if (is_block(value))
        return print_block(&printer, value, 0);
    return print_scalar(&printer, value) < 0 ? -1 : put(&printer, "\n");
}
