/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/migration.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/contract/labels.h"
#include "common/job/fields.h"
#include "common/memory.h"

/* ---------------------------------------------------------------- notes */

void migration_note(struct migration *migration, const char *field, const char *format, ...)
{
    char message[ERROR_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct json *note = json_append(migration->notes, json_new_object());
    json_set_string(note, "field", field);
    json_set_string(note, "message", message);
}

void migration_leave_out(struct migration *migration, const struct json *value, const char *path, const char *instead)
{
    if (json_type(value) == JSON_NULL || json_type(value) == JSON_ABSENT)
        return;
    if (json_type(value) != JSON_OBJECT) {
        migration_note(migration, path, "left out: %s", instead);
        return;
    }
    for (const struct json *member = json_first(value); member; member = json_next(member)) {
        SCOPED_FREE char *inner = memory_format("%s%s%s", path, *path ? "." : "", json_key(member));
        migration_leave_out(migration, member, inner, instead);
    }
}

/* ---------------------------------------------------------------- what this version knows */

static void fit_members(struct migration *migration, const struct object_type *type, struct json *object,
                        const char *path);

/* v1alpha1 wrote most words in lower case. */
static void fit_word(const struct field *field, struct json *object)
{
    const char *word = json_string(json_member(object, field->name), "");
    for (const char *const *known = field->words; *known; known++)
        if (strcasecmp(*known, word) == 0 && strcmp(*known, word) != 0) {
            json_set_string(object, field->name, *known);
            return;
        }
}

static void fit(struct migration *migration, const struct field *field, struct json *object, const char *path)
{
    struct json *value = json_member(object, field->name);
    size_t index = 0;
    if (field->kind == FIELD_ENUM)
        fit_word(field, object);
    else if (field->kind == FIELD_OBJECT)
        fit_members(migration, field->type, value, path);
    else if (field->kind == FIELD_LIST)
        for (struct json *item = json_first(value); item; item = json_next(item)) {
            SCOPED_FREE char *inner = memory_format("%s[%zu]", path, index++);
            fit_members(migration, field->type, item, inner);
        }
}

static void fit_members(struct migration *migration, const struct object_type *type, struct json *object,
                        const char *path)
{
    struct json *next = NULL;
    for (struct json *member = json_type(object) == JSON_OBJECT ? json_first(object) : NULL; member; member = next) {
        next = json_next(member);
        SCOPED_FREE char *inner = memory_format("%s.%s", path, json_key(member));
        const struct field *field = field_find(type, json_key(member));
        if (field) {
            fit(migration, field, object, inner);
        } else {
            migration_leave_out(migration, member, inner, MIGRATION_NO_FIELD);
            json_free(json_detach(object, member));
        }
    }
}

/* ---------------------------------------------------------------- taking and putting */

/* The value goes to the caller. */
static struct json *take_member(struct json *object, const char *name)
{
    struct json *value = json_member(object, name);
    if (value)
        value = json_detach(object, value);
    if (json_type(value) != JSON_NULL)
        return value;
    json_free(value);
    return NULL;
}

struct json *migration_take(struct migration *migration, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot)
        return take_member(migration->old, path);
    SCOPED_FREE char *parent = memory_copy_bytes(path, (size_t)(dot - path));
    return take_member(json_at(migration->old, parent), dot + 1);
}

struct json *migration_take_list(struct migration *migration, const char *path)
{
    struct json *list = migration_take(migration, path);
    if (json_type(list) == JSON_ARRAY)
        return list;
    migration_leave_out(migration, list, path, MIGRATION_WRONG);
    json_free(list);
    return NULL;
}

struct json *migration_find(const struct json *list, const char *name)
{
    struct json *item = json_first(list);
    while (item && strcmp(json_string_at(item, "name", ""), name) != 0)
        item = json_next(item);
    return item;
}

static void merge(struct json *object, const char *name, struct json *value)
{
    struct json *there = json_member(object, name);
    if (json_type(there) != JSON_OBJECT || json_type(value) != JSON_OBJECT) {
        json_set(object, name, value);
        return;
    }
    for (struct json *member; (member = json_first(value)) != NULL;) {
        SCOPED_FREE char *key = memory_copy_string(json_key(member));
        json_set(there, key, json_detach(value, member));
    }
    json_free(value);
}

void migration_put(struct migration *migration, const char *to, struct json *value, const char *from)
{
    const struct object_type *type = &training_job_spec_type;
    struct json *object = json_set_object(migration->job, "spec");
    SCOPED_FREE char *path = memory_copy_string(to + strlen("spec."));
    char *rest = path;
    for (char *word = strsep(&rest, "."); word; word = strsep(&rest, ".")) {
        const struct field *field = field_find(type, strcmp(word, "*") == 0 ? migration->section : word);
        if (!rest) {
            merge(object, field->name, value);
            fit(migration, field, object, from);
            return;
        }
        object = json_set_object(object, field->name);
        type = field->type;
    }
}

static void apply(struct migration *migration, const struct migration_row *row)
{
    struct json *value = migration_take(migration, row->from);
    SCOPED_FREE char *text = json_scalar_text(value);
    bool harmless = text && row->harmless && strcmp(text, row->harmless) == 0;
    bool empty = json_type(value) == JSON_OBJECT && !json_first(value);
    if (value && row->to && !harmless && !empty) {
        migration_put(migration, row->to, value, row->from);
        return;
    }
    if (!harmless)
        migration_leave_out(migration, value, row->from, row->instead);
    json_free(value);
}

void migration_apply(struct migration *migration, const struct migration_row *rows)
{
    for (; rows->from; rows++)
        apply(migration, rows);
}

/* ---------------------------------------------------------------- a document */

/* In the order of the table of fields, as docs/api.md has them. */
static void sort_members(const struct object_type *type, struct json *object)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        struct json *value = json_member(object, at.field->name);
        if (!value)
            continue;
        json_set(object, at.field->name, json_detach(object, value));
        if (at.field->kind == FIELD_OBJECT)
            sort_members(at.field->type, value);
        for (struct json *item = at.field->kind == FIELD_LIST ? json_first(value) : NULL; item; item = json_next(item))
            sort_members(at.field->type, item);
    }
}

/* All but what a server writes, which does not belong into a manifest. */
static struct json *metadata_copy(const struct json *document)
{
    static const char *const written[] = {"uid",           "resourceVersion", "generation", "creationTimestamp",
                                          "managedFields", "selfLink"};
    struct json *metadata = json_copy(json_member(document, "metadata"));
    struct json *annotations = json_member(metadata, "annotations");
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        json_remove(metadata, written[i]);
    json_remove(annotations, "kubectl.kubernetes.io/last-applied-configuration");
    if (annotations && json_count(annotations) == 0)
        json_remove(metadata, "annotations");
    return metadata;
}

static void note_violations(struct migration *migration)
{
    SCOPED_JSON *violations = training_job_violations(migration->job, NULL);
    for (const struct json *item = json_first(violations); item; item = json_next(item))
        migration_note(migration, json_string_at(item, "field", ""), "%s", json_string_at(item, "message", ""));
}

static struct json *translate(const struct json *document, struct json *notes)
{
    static const char *const head[] = {"apiVersion", "kind", "metadata", "status"};
    SCOPED_JSON *old = json_copy(document);
    struct migration migration = {.old = old, .job = json_new_object(), .notes = notes};
    json_set_string(migration.job, "apiVersion", API_GROUP_VERSION);
    json_set_string(migration.job, "kind", TRAINING_JOB_KIND);
    if (json_member(document, "metadata"))
        json_set(migration.job, "metadata", metadata_copy(document));
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        json_remove(old, head[i]);
    if (migration_is_kubeflow(document))
        migration_from_kubeflow(&migration, document);
    else if (migration_is_train_job(document))
        migration_from_train_job(&migration, document);
    else
        migration_from_v1alpha1(&migration);
    migration_put(&migration, "spec.*", json_new_object(), "spec");
    migration_leave_out(&migration, old, "", MIGRATION_NO_FIELD);
    struct json *spec = json_member(migration.job, "spec"), *policy = json_member(spec, "runPolicy");
    if (json_type(policy) == JSON_OBJECT && !json_first(policy))
        json_remove(spec, "runPolicy");
    sort_members(&training_job_spec_type, spec);
    note_violations(&migration);
    return migration.job;
}

bool migration_translate(const struct json *document, struct json **ret_job, struct json *notes)
{
    const char *version = json_string_at(document, "apiVersion", ""), *kind = json_string_at(document, "kind", "");
    bool earlier = strcmp(version, API_GROUP "/v1alpha1") == 0 && strcmp(kind, TRAINING_JOB_KIND) == 0;
    if (earlier || migration_is_kubeflow(document) || migration_is_train_job(document)) {
        *ret_job = translate(document, notes);
        return true;
    }
    struct migration migration = {.notes = notes};
    if (strcmp(version, "trainer.kubeflow.org/v1alpha1") == 0 && strcmp(kind, "TrainJob") == 0)
        migration_note(&migration, "spec.runtimeRef.name",
                       "not translated: this runtime runs no script of PyTorch, TensorFlow or JAX; see "
                       "docs/migration.md");
    else if (strncmp(version, "kubeflow.org/", 13) == 0 || strncmp(version, "trainer.kubeflow.org/", 21) == 0)
        migration_note(&migration, "kind", "not translated: see docs/migration.md");
    return false;
}
