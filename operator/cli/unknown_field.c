/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/unknown_field.h"

#include <string.h>

#include "common/buffer.h"
#include "common/job/fields.h"
#include "common/memory.h"

#define UNKNOWN "unknown field \""
#define SPEC "spec."

static const struct object_type *type_within(const struct object_type *type, const char *name)
{
    const struct field *field = field_find(type, name);
    if (type == &training_sweep_spec_type && strcmp(name, "template") == 0)
        return &training_job_spec_type;
    return field && (field->kind == FIELD_OBJECT || field->kind == FIELD_LIST) ? field->type : NULL;
}

/* Returns what the last name of a path such as "spec.storage[0].nam" was meant to be, or NULL; the name begins at *ret_last. */
static const char *nearest_of_path(const struct object_type *type, const char *path, size_t *ret_last)
{
    for (const char *at = path + strlen(SPEC); type;) {
        const char *dot = strchr(at, '.');
        if (!dot) {
            *ret_last = (size_t)(at - path);
            return field_nearest(type, at);
        }
        SCOPED_FREE char *name = memory_copy_bytes(at, strcspn(at, ".["));
        type = type_within(type, name);
        at = dot + 1;
    }
    return NULL;
}

void unknown_field_explain(bool is_sweep, struct error *error)
{
    const struct object_type *type = is_sweep ? &training_sweep_spec_type : &training_job_spec_type;
    SCOPED_BUFFER meant;
    buffer_init(&meant, ERROR_MESSAGE_MAX);
    for (const char *at = error->message; (at = strstr(at, UNKNOWN));) {
        at += strlen(UNKNOWN);
        SCOPED_FREE char *path = memory_copy_bytes(at, strcspn(at, "\""));
        size_t last = 0;
        const char *nearest = strncmp(path, SPEC, strlen(SPEC)) == 0 ? nearest_of_path(type, path, &last) : NULL;
        if (nearest)
            buffer_format(&meant, "%s%.*s%s", meant.length > 0 ? ", " : "", (int)last, path, nearest);
    }
    if (meant.length > 0) {
        SCOPED_FREE char *refusal = memory_copy_string(error->message);
        int status = error->http_status;
        error_set(error, error->kind, "%s; did you mean %s?", refusal, buffer_text(&meant));
        error->http_status = status;
    }
}
