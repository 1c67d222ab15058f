/* SPDX-License-Identifier: Apache-2.0 */
#include "common/failure_line.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/utf8.h"

#define ELLIPSIS "…"
#define SIGNALLED 128
#define KILLED (128 + 9)
/* In a longer message, the kubelet may have cut the first line. */
#define KUBELET_LOG_MAX 2000

struct line {
    const char *text;
    size_t length;
};

/* "\033[31m" and the like; 0: no escape begins at `text`. */
static size_t escape_length(const char *text, size_t length)
{
    if (length < 2 || text[0] != '\033')
        return 0;
    size_t end = 2;
    while (text[1] == '[' && end < length && !((unsigned char)text[end] >= 0x40 && (unsigned char)text[end] <= 0x7e))
        end++;
    return end < length ? end + (text[1] == '[') : length;
}

void failure_line_clean(const char *text, size_t length, size_t most, struct buffer *out)
{
    SCOPED_BUFFER line = BUFFER_INIT(length + 1);
    for (size_t at = 0; at < length;) {
        size_t skip = escape_length(text + at, length - at);
        unsigned char byte = (unsigned char)text[at];
        if (skip == 0)
            buffer_append_byte(&line, byte < 0x20 || byte == 0x7f ? ' ' : (char)byte, NULL);
        at += skip > 0 ? skip : 1;
    }
    const char *whole = buffer_text(&line);
    size_t begin = strspn(whole, " "), end = line.length;
    while (end > begin && whole[end - 1] == ' ')
        end--;
    if (end - begin <= most) {
        buffer_append(out, whole + begin, end - begin, NULL);
        return;
    }
    buffer_append(out, whole + begin, utf8_fit(whole + begin, most - strlen(ELLIPSIS)), NULL);
    buffer_append_string(out, ELLIPSIS, NULL);
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '.';
}

/* Skips what launchers put before each line, such as torchrun's "[rank0]: ". */
static struct line without_prefix(struct line line)
{
    const char *end = *line.text == '[' ? memchr(line.text, ']', line.length) : NULL;
    if (!end || (size_t)(end - line.text) + 3 > line.length || end[1] != ':' || end[2] != ' ')
        return line;
    return (struct line){end + 3, line.length - (size_t)(end + 3 - line.text)};
}

/* Whether the line reads "some.module.XError: …", "XException: …", "error: …", "fatal: …" or "  what():  …". `ret_bare`: it
 * names a type and says nothing behind it. */
static bool names_error(struct line line, bool *ret_bare)
{
    static const char *const types[] = {"error", "exception", "interrupt", "fatal", "panic"};
    size_t name = 0;
    line = without_prefix(line);
    while (name < line.length && is_name_byte(line.text[name]))
        name++;
    *ret_bare = name == line.length || (name + 1 == line.length && line.text[name] == ':');
    if (line.length > 9 && strncmp(line.text, "  what():", 9) == 0)
        return true;
    if (name < line.length && line.text[name] != ':')
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i]);
        if (name >= length && strncasecmp(line.text + name - length, types[i], length) == 0)
            return true;
    }
    return false;
}

/* The next line of `*text` that is not empty; false at its end. */
static bool next_line(const char **text, struct line *ret_line)
{
    while (**text) {
        size_t length = strcspn(*text, "\n");
        *ret_line = (struct line){*text, length};
        *text += length + ((*text)[length] == '\n');
        while (ret_line->length > 0 && strchr(" \t\r", ret_line->text[ret_line->length - 1]))
            ret_line->length--;
        if (ret_line->length > 0)
            return true;
    }
    return false;
}

/* "exit 65 (the training data is wrong or missing): cause", as Coxswain's worker leaves it: the cause. */
static const char *own_cause(const char *message, int exit_code)
{
    int code, end = 0;
    if (sscanf(message, "exit %d (%*[^)]): %n", &code, &end) != 1 || code != exit_code || end == 0)
        return NULL;
    return message + end;
}

void failure_line_append(const char *message, int exit_code, struct buffer *out)
{
    struct line line, last = {0}, error = {0};
    bool error_is_bare = true, bare;
    const char *cause = own_cause(message, exit_code), *at = message;
    if (cause)
        failure_line_clean(cause, strcspn(cause, "\n"), FAILURE_LINE_MAX, out);
    if (cause || exit_code == KILLED || *message == '{')
        return;
    bool cut = strlen(message) >= KUBELET_LOG_MAX && strchr(message, '\n');
    if (cut)
        at = strchr(message, '\n') + 1;
    while (next_line(&at, &line)) {
        last = line;
        if (!names_error(line, &bare) || (bare && error.text && !error_is_bare))
            continue;
        error = without_prefix(line);
        error_is_bare = bare;
    }
    if (error.text)
        failure_line_clean(error.text, error.length, FAILURE_LINE_MAX, out);
    else if (last.text && exit_code <= SIGNALLED)
        failure_line_clean(last.text, last.length, FAILURE_LINE_MAX, out);
}
