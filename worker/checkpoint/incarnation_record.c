/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/incarnation_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/sealed_document.h"

#define FILE_NAME_MAX 64

static void name_format(int64_t incarnation, char text[FILE_NAME_MAX])
{
    snprintf(text, FILE_NAME_MAX, CHECKPOINT_INCARNATION_FORMAT, (long long)incarnation);
}

int64_t incarnation_record_name_parse(const char *name)
{
    long long incarnation;
    char exact[FILE_NAME_MAX];
    if (sscanf(name, CHECKPOINT_INCARNATION_FORMAT, &incarnation) != 1 || incarnation < 0)
        return -1;
    name_format(incarnation, exact);
    return strcmp(name, exact) == 0 ? incarnation : -1;
}

static char *path_of(const char *directory, int64_t incarnation)
{
    char name[FILE_NAME_MAX];
    name_format(incarnation, name);
    return file_path_join(directory, name);
}

/* ---- text */

static int print_record(const struct incarnation_record *record, struct buffer *out, struct error *error)
{
    SCOPED_JSON *document = json_new_object();
    char base[CHECKPOINT_NAME_MAX];
    json_set_integer(document, "incarnation", record->incarnation);
    json_set_integer(document, "fencingIncarnation", record->fencing);
    json_set_integer(document, "attempt", record->attempt);
    json_set_string(document, "jobUID", record->job_uid);
    json_set_boolean(document, "decided", record->state == INCARNATION_DECIDED);
    if (record->base.step >= 0) {
        checkpoint_name_format(&record->base, base);
        json_set_string(document, "base", base);
    }
    return sealed_document_print(document, out, error);
}

static int from_json(const struct json *document, struct incarnation_record *ret_record, struct error *error)
{
    const char *base = json_string_at(document, "base", NULL);
    struct incarnation_record record = {
        .state = json_boolean_at(document, "decided", false) ? INCARNATION_DECIDED : INCARNATION_CLAIMED,
        .incarnation = json_integer_at(document, "incarnation", -1),
        .fencing = json_integer_at(document, "fencingIncarnation", -1),
        .attempt = json_integer_at(document, "attempt", -1),
        .base = {.step = -1},
    };
    snprintf(record.job_uid, sizeof record.job_uid, "%s", json_string_at(document, "jobUID", ""));
    if (record.incarnation < 0 || record.fencing < 0 || record.attempt < 0)
        return error_set(error, ERROR_INVALID, "incarnation, fencingIncarnation or attempt is missing or negative");
    if (base && checkpoint_name_parse(base, &record.base) < 0)
        return error_set(error, ERROR_INVALID, "base \"%.64s\" is not a checkpoint's name", base);
    *ret_record = record;
    return 0;
}

int incarnation_record_parse(const char *text, size_t length, struct incarnation_record *ret_record,
                             struct error *error)
{
    struct json *root;
    if (sealed_document_parse(text, length, INCARNATION_RECORD_BYTES_MAX, &root, error) < 0)
        return error_wrap(error, "incarnation record");
    SCOPED_JSON *document = root;
    if (from_json(document, ret_record, error) < 0)
        return error_wrap(error, "incarnation record");
    return 0;
}

/* ---- files */

int incarnation_record_read(const char *directory, int64_t incarnation, struct incarnation_record *ret_record,
                            struct error *error)
{
    SCOPED_FREE char *path = path_of(directory, incarnation);
    SCOPED_BUFFER text = BUFFER_INIT(INCARNATION_RECORD_BYTES_MAX);
    struct error cause = ERROR_INIT;
    if (file_read(path, &text, &cause) < 0 && cause.kind != ERROR_TOO_LARGE && cause.kind != ERROR_CORRUPT)
        return error_set(error, cause.kind, "%s", cause.message);
    struct incarnation_record record;
    if (incarnation_record_parse(buffer_text(&text), text.length, &record, NULL) < 0 ||
        record.incarnation != incarnation)
        record = (struct incarnation_record){
            .state = INCARNATION_DAMAGED, .incarnation = incarnation, .fencing = -1, .base = {.step = -1}};
    *ret_record = record;
    return 0;
}

int incarnation_record_create(const char *directory, const struct incarnation_record *record, struct error *error)
{
    SCOPED_FREE char *path = path_of(directory, record->incarnation);
    SCOPED_BUFFER text = BUFFER_INIT(INCARNATION_RECORD_BYTES_MAX);
    if (print_record(record, &text, error) < 0 || file_write_exclusive(path, text.data, text.length, error) < 0)
        return -1;
    return file_sync_directory(directory, error);
}

int incarnation_record_replace(const char *directory, const struct incarnation_record *record, struct error *error)
{
    SCOPED_FREE char *path = path_of(directory, record->incarnation);
    SCOPED_BUFFER text = BUFFER_INIT(INCARNATION_RECORD_BYTES_MAX);
    if (print_record(record, &text, error) < 0 || file_replace(path, text.data, text.length, error) < 0)
        return -1;
    return file_sync_directory(directory, error);
}

int incarnation_record_remove(const char *directory, int64_t incarnation, struct error *error)
{
    SCOPED_FREE char *path = path_of(directory, incarnation);
    if (file_calls.unlink(path) < 0 && errno != ENOENT)
        return error_set_errno(error, "cannot remove %s", path);
    return 0;
}
