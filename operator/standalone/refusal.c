/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"

#define SHOWN_VALUE_MAX 4096

static struct json *refusal_list(int code, const char *reason, const char *format, va_list arguments)
{
    struct json *status = json_new_object();
    char *message = NULL;
    if (vasprintf(&message, format, arguments) < 0)
        message = memory_copy_string(reason);
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Failure");
    json_set_string(status, "message", message);
    json_set_string(status, "reason", reason);
    json_set_integer(status, "code", code);
    free(message);
    return status;
}

struct json *refusal_new(int code, const char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct json *status = refusal_list(code, reason, format, arguments);
    va_end(arguments);
    return status;
}

/* Members in the order of the real one: details stand before code. */
static struct json *with_details(struct json *status, const struct resource *resource, const char *kind,
                                 const char *name)
{
    int64_t code = json_integer_at(status, "code", 500);
    json_remove(status, "code");
    struct json *details = json_set_object(status, "details");
    if (name && name[0])
        json_set_string(details, "name", name);
    if (resource->group[0])
        json_set_string(details, "group", resource->group);
    json_set_string(details, "kind", kind);
    json_set_integer(status, "code", code);
    return details;
}

static struct json *not_found(const struct resource *resource, const char *name)
{
    char type[API_VERSION_TEXT_MAX];
    resource_qualified(resource, type);
    struct json *status = refusal_new(404, "NotFound", "%s \"%s\" not found", type, name);
    with_details(status, resource, resource->plural, name);
    return status;
}

struct json *refusal_already_exists(const struct resource *resource, const char *name)
{
    char type[API_VERSION_TEXT_MAX];
    resource_qualified(resource, type);
    struct json *status = refusal_new(409, "AlreadyExists", "%s \"%s\" already exists", type, name);
    with_details(status, resource, resource->plural, name);
    return status;
}

#define MODIFIED "the object has been modified; please apply your changes to the latest version and try again"

struct json *refusal_conflict(const struct resource *resource, const char *name, const char *why)
{
    char type[API_VERSION_TEXT_MAX];
    resource_qualified(resource, type);
    struct json *status = refusal_new(409, "Conflict", "Operation cannot be fulfilled on %s \"%s\": %s", type, name,
                                      why ? why : MODIFIED);
    with_details(status, resource, resource->plural, name);
    return status;
}

struct json *refusal_precondition(const struct resource *resource, const char *name, const char *field,
                                  const char *wanted, const char *has, const char *guess)
{
    struct json *status = refusal_new(409, "Conflict",
                                      "Operation cannot be fulfilled on %s%s%s \"%s\": the %s in the precondition (%s) "
                                      "does not match the %s in record (%s). The object might have been %s",
                                      resource->kind, resource->group[0] ? "." : "", resource->group, name, field,
                                      wanted, field, has, guess);
    with_details(status, resource, resource->kind, name);
    return status;
}

static void append_cause(struct buffer *text, const struct json *cause)
{
    buffer_format(text, "%s: %s", json_string_at(cause, "field", ""), json_string_at(cause, "message", ""));
}

static void append_causes(struct buffer *text, const struct json *causes)
{
    bool several = json_count(causes) > 1;
    buffer_append_string(text, several ? "[" : "", NULL);
    for (const struct json *cause = json_first(causes); cause; cause = json_next(cause)) {
        if (cause != json_first(causes))
            buffer_append_string(text, ", ", NULL);
        append_cause(text, cause);
    }
    buffer_append_string(text, several ? "]" : "", NULL);
}

struct json *refusal_invalid(const struct resource *resource, const char *name, struct json *causes)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    append_causes(&text, causes);
    struct json *status = refusal_new(422, "Invalid", "%s%s%s \"%s\" is invalid: %s", resource->kind,
                                      resource->group[0] ? "." : "", resource->group, name, buffer_text(&text));
    json_set(with_details(status, resource, resource->kind, name), "causes", causes);
    return status;
}

struct json *refusal_bad_request(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct json *status = refusal_list(400, "BadRequest", format, arguments);
    va_end(arguments);
    return status;
}

struct json *refusal_method_not_allowed(void)
{
    return refusal_new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

struct json *refusal_unknown_path(void)
{
    return refusal_new(404, "NotFound", "the server could not find the requested resource");
}

static const struct {
    enum error_kind kind;
    int code;
    const char *reason;
} errors[] = {
    {ERROR_INVALID, 400, "BadRequest"},        {ERROR_TOO_LARGE, 413, "RequestEntityTooLarge"},
    {ERROR_EXPIRED, 410, "Expired"},           {ERROR_UNAVAILABLE, 503, "ServiceUnavailable"},
    {ERROR_NO_SPACE, 507, "InternalError"},    {ERROR_FORBIDDEN, 403, "Forbidden"},
    {ERROR_UNSUPPORTED, 501, "InternalError"}, {ERROR_TIMEOUT, 504, "Timeout"},
};

struct json *refusal_from_error(const struct resource *resource, const char *name, const struct error *error)
{
    if (error->kind == ERROR_NOT_FOUND && resource)
        return not_found(resource, name);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].kind == error->kind)
            return refusal_new(errors[i].code, errors[i].reason, "%s", error->message);
    return refusal_new(500, "InternalError", "Internal error occurred: %s", error->message);
}

int refusal_code(const struct json *refusal)
{
    return (int)json_integer_at(refusal, "code", 500);
}

static enum error_kind kind_of(const struct json *refusal)
{
    int code = refusal_code(refusal);
    if (code == 409)
        return strcmp(json_string_at(refusal, "reason", ""), "AlreadyExists") == 0 ? ERROR_ALREADY_EXISTS
                                                                                   : ERROR_CONFLICT;
    if (code == 404)
        return ERROR_NOT_FOUND;
    if (code == 422)
        return ERROR_INVALID;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return errors[i].kind;
    return ERROR_INTERNAL;
}

int refusal_to_error(struct json *refusal, struct error *error)
{
    error_set(error, kind_of(refusal), "%s", json_string_at(refusal, "message", ""));
    if (error)
        error->http_status = refusal_code(refusal);
    json_free(refusal);
    return -1;
}

/* ---- causes ---- */

static const char *const cause_reasons[] = {
#define X(name, reason, words) [CAUSE_##name] = reason,
    CAUSE_KINDS(X)
#undef X
};
static const char *const cause_words[] = {
#define X(name, reason, words) [CAUSE_##name] = words,
    CAUSE_KINDS(X)
#undef X
};

void cause_add(struct json *causes, enum cause_kind kind, const char *field, const struct json *value,
               const char *detail)
{
    SCOPED_BUFFER text = BUFFER_INIT(2 * SHOWN_VALUE_MAX);
    buffer_append_string(&text, cause_words[kind], NULL);
    if (value) {
        SCOPED_BUFFER shown = BUFFER_INIT(SHOWN_VALUE_MAX);
        if (json_print(value, &shown, NULL) == 0)
            buffer_format(&text, ": %s", buffer_text(&shown));
    }
    if (detail)
        buffer_format(&text, ": %s", detail);
    struct json *cause = json_append(causes, json_new_object());
    json_set_string(cause, "reason", cause_reasons[kind]);
    json_set_string(cause, "message", buffer_text(&text));
    json_set_string(cause, "field", field);
}
