/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/violations.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void violations_init(struct violations *violations, const char *root)
{
    *violations = (struct violations){.list = json_new_array()};
    violations_enter(violations, root);
}

void violations_release(struct violations *violations)
{
    json_free(violations->list);
    violations->list = NULL;
}

/* Appends to the path what fits; snprintf tells the length it would have had. */
static size_t extend(struct violations *violations, int written)
{
    size_t before = violations->path_length;
    size_t room = sizeof violations->path - before - 1;
    violations->path_length += (size_t)written < room ? (size_t)written : room;
    return before;
}

size_t violations_enter(struct violations *violations, const char *name)
{
    return extend(violations, snprintf(violations->path + violations->path_length,
                                       sizeof violations->path - violations->path_length, "%s%s",
                                       violations->path_length > 0 ? "." : "", name));
}

size_t violations_enter_element(struct violations *violations, size_t index)
{
    return extend(violations, snprintf(violations->path + violations->path_length,
                                       sizeof violations->path - violations->path_length, "[%zu]", index));
}

void violations_leave(struct violations *violations, size_t length)
{
    violations->path_length = length;
    violations->path[length] = '\0';
}

void violations_add(struct violations *violations, const char *name, const char *format, ...)
{
    if (violations->count++ >= VIOLATIONS_MAX)
        return;
    size_t length = name ? violations_enter(violations, name) : violations->path_length;
    va_list arguments;
    va_start(arguments, format);
    char message[ERROR_MESSAGE_MAX];
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct json *cause = json_append(violations->list, json_new_object());
    json_set_string(cause, "field", violations->path);
    json_set_string(cause, "message", message);
    violations_leave(violations, length);
}

int violations_to_error(const struct violations *violations, struct error *error)
{
    if (violations->count == 0)
        return 0;
    const struct json *first = json_first(violations->list);
    const char *field = json_string_at(first, "field", "");
    error_set(error, ERROR_INVALID, "%s%s%s", field, *field ? ": " : "", json_string_at(first, "message", ""));
    if (violations->count > 1 && error) {
        char rest[64];
        snprintf(rest, sizeof rest, " (and %zu more)", violations->count - 1);
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used, "%s", rest);
    }
    return -1;
}
