/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static const char *const kind_names[] = {
#define X(name, meaning) [ERROR_##name] = #name,
    ERROR_KINDS(X)
#undef X
};

#define CUT_MARK "…"

/* A message that did not fit keeps its beginning and says that it was cut. */
static void mark_cut(char *message)
{
    memcpy(message + utf8_fit(message, ERROR_MESSAGE_MAX - sizeof CUT_MARK), CUT_MARK, sizeof CUT_MARK);
}

static void format_message(struct error *error, const char *format, va_list arguments)
{
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    if (length >= (int)sizeof error->message)
        mark_cut(error->message);
}

int(error_set)(struct error *error, enum error_kind kind, const char *format, ...)
{
    if (error == NULL)
        return -1;
    error_clear(error);
    error->kind = kind;
    va_list arguments;
    va_start(arguments, format);
    format_message(error, format, arguments);
    va_end(arguments);
    return -1;
}

static enum error_kind kind_of_errno(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return ERROR_NO_SPACE;
    case ENOENT:
        return ERROR_NOT_FOUND;
    case EEXIST:
        return ERROR_ALREADY_EXISTS;
    default:
        return ERROR_SYSTEM;
    }
}

int(error_set_errno)(struct error *error, const char *format, ...)
{
    int number = errno;
    if (error == NULL)
        return -1;
    error_clear(error);
    error->kind = kind_of_errno(number);
    error->os_error = number;
    va_list arguments;
    va_start(arguments, format);
    format_message(error, format, arguments);
    va_end(arguments);
    size_t used = strlen(error->message);
    char reason[128];
    int length = snprintf(error->message + used, sizeof error->message - used, ": %s",
                          strerror_r(number, reason, sizeof reason));
    if (length >= (int)(sizeof error->message - used))
        mark_cut(error->message);
    return -1;
}

int(error_wrap)(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return -1;
    char inner[ERROR_MESSAGE_MAX];
    memcpy(inner, error->message, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    format_message(error, format, arguments);
    va_end(arguments);
    size_t used = strlen(error->message);
    int length = snprintf(error->message + used, sizeof error->message - used, ": %s", inner);
    if (length >= (int)(sizeof error->message - used))
        mark_cut(error->message);
    return -1;
}

const char *error_kind_name(enum error_kind kind)
{
    return kind_names[kind];
}
