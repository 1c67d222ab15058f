/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/json_lines.h"

#include <string.h>

#include "common/data/file_name.h"

#define MARK "\xef\xbb\xbf"
#define MARK_LENGTH 3

bool json_lines_named(const char *path)
{
    return file_name_ends(path, ".jsonl") || file_name_ends(path, ".ndjson");
}

void json_lines_init(struct json_lines *lines, const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    size_t mark = length >= MARK_LENGTH && memcmp(text, MARK, MARK_LENGTH) == 0 ? MARK_LENGTH : 0;
    *lines = (struct json_lines){.at = length > 0 ? text + mark : NULL, .end = length > 0 ? text + length : NULL};
}

static bool is_empty(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r", line[i]) || line[i] == '\0')
            return false;
    return true;
}

int json_lines_next(struct json_lines *lines, struct json **ret_object, struct error *error)
{
    while (lines->at < lines->end) {
        const char *line = lines->at, *feed = memchr(line, '\n', (size_t)(lines->end - line));
        size_t length = (size_t)((feed ? feed : lines->end) - line);
        struct json *object = NULL;
        lines->at = feed ? feed + 1 : lines->end;
        lines->line++;
        if (is_empty(line, length))
            continue;
        if (length > JSON_LINES_LENGTH_MAX)
            return error_set(error, ERROR_TOO_LARGE, "line %lld has %zu bytes; a line may have %zu",
                             (long long)lines->line, length, JSON_LINES_LENGTH_MAX);
        if (json_parse(line, length, JSON_LINES_LENGTH_MAX, &object, error) < 0)
            return error_wrap(error, "line %lld is not JSON", (long long)lines->line);
        if (json_type(object) == JSON_OBJECT) {
            *ret_object = object;
            return 1;
        }
        const char *type = json_type_name(json_type(object));
        json_free(object);
        return error_set(error, ERROR_INVALID,
                         "line %lld is a JSON %s; each line must be an object, such as {\"a\": 1}",
                         (long long)lines->line, type);
    }
    return 0;
}

bool json_lines_are_texts(const uint8_t *bytes, size_t length)
{
    struct json_lines lines;
    SCOPED_JSON *object = NULL;
    json_lines_init(&lines, bytes, length);
    return json_lines_next(&lines, &object, NULL) > 0 && json_type(json_member(object, "text")) == JSON_STRING &&
           !json_member(object, "label");
}

int json_lines_texts(const uint8_t *bytes, size_t length, struct buffer *texts, struct error *error)
{
    struct json_lines lines;
    struct json *object;
    int result;
    json_lines_init(&lines, bytes, length);
    while ((result = json_lines_next(&lines, &object, error)) > 0) {
        const char *text = json_string(json_member(object, "text"), NULL);
        if (!text)
            result = error_set(error, ERROR_INVALID, "line %lld has no string \"text\"", (long long)lines.line);
        else if (buffer_append_string(texts, text, error) < 0 || buffer_append_byte(texts, '\n', error) < 0)
            result = error_wrap(error, "line %lld", (long long)lines.line);
        json_free(object);
        if (result < 0)
            return -1;
    }
    return result;
}
