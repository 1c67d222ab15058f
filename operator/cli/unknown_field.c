/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/unknown_field.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/fields.h"
#include "common/memory.h"
#include "common/nearest_word.h"

#define UNKNOWN "unknown field \""
#define SPEC "spec."
#define UNSUPPORTED "Unsupported value: "
#define SUPPORTED ": supported values: "
#define WORDS_MAX 64

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

/* Returns the word in quotes that begins at *at, and moves *at behind it; NULL if there is none. free() it. */
static char *take_quoted(const char **at)
{
    const char *end = **at == '"' ? strchr(*at + 1, '"') : NULL;
    if (!end)
        return NULL;
    char *word = memory_copy_bytes(*at + 1, (size_t)(end - *at - 1));
    *at = end + 1;
    return word;
}

/* `at` is what follows an unsupported value in the message: the list of supported words. Returns the one that is most like `value`, or NULL if
 * none is; free() it. */
static char *nearest_of_words(const char *value, const char *at)
{
    char *words[WORDS_MAX];
    size_t count = 0;
    if (strncmp(at, SUPPORTED, strlen(SUPPORTED)) != 0)
        return NULL;
    for (at += strlen(SUPPORTED); count < WORDS_MAX && (words[count] = take_quoted(&at)); count++)
        at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
    char *nearest = memory_copy_string(nearest_word(value, (const char *const *)words, count));
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    return nearest;
}

static void explain_values(struct error *error)
{
    SCOPED_FREE char *refusal = memory_copy_string(error->message);
    SCOPED_BUFFER text;
    buffer_init(&text, 2 * ERROR_MESSAGE_MAX);
    const char *copied = refusal;
    for (const char *at = refusal; (at = strstr(at, UNSUPPORTED));) {
        at += strlen(UNSUPPORTED);
        SCOPED_FREE char *value = take_quoted(&at);
        SCOPED_FREE char *meant = value ? nearest_of_words(value, at) : NULL;
        if (meant) {
            buffer_append(&text, copied, (size_t)(at - copied), NULL);
            buffer_format(&text, " (did you mean \"%s\"?)", meant);
            copied = at;
        }
    }
    if (text.length == 0)
        return;
    int status = error->http_status;
    error_set(error, error->kind, "%s%s", buffer_text(&text), copied);
    error->http_status = status;
}

void unknown_field_explain(bool is_sweep, struct error *error)
{
    const struct object_type *type = is_sweep ? &training_sweep_spec_type : &training_job_spec_type;
    explain_values(error);
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
