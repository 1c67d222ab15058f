/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/sealed_document.h"

#define FORMAT_NAME "coxswain-checkpoint"
#define FORMAT_VERSION 2 /* 1 called the incarnation epoch */

/* Far beyond any training, and small enough that sums and products of two do not overflow. */
#define COUNT_MAX ((int64_t)1 << 40)
#define WHOLE_MAX ((int64_t)1 << 53)

/* A whole number of a manifest: its name, its member, and its largest value. */
struct whole_number {
    const char *name;
    size_t offset;
    int64_t max;
};
#define NUMBER(name, member, max)                                                                                      \
    {                                                                                                                  \
        name, offsetof(struct manifest, member), max                                                                   \
    }
static const struct whole_number numbers[] = {
    NUMBER("step", step, COUNT_MAX),
    NUMBER("attempt", attempt, UINT32_MAX),
    NUMBER("incarnation", incarnation, COUNT_MAX),
    NUMBER("generation", generation, COUNT_MAX),
    NUMBER("workers", workers, MANIFEST_FILES_MAX),
    NUMBER("logicalShards", logical_shards, MANIFEST_SHARDS_MAX),
    NUMBER("seed", seed, WHOLE_MAX),
    NUMBER("dataEpoch", data_epoch, COUNT_MAX),
    NUMBER("examplesConsumed", examples_consumed, WHOLE_MAX),
};
/* Left out where they are 0. */
static const struct whole_number optional_numbers[] = {
    NUMBER("lossScale", loss_scale, UINT32_MAX),
    NUMBER("goodSteps", good_steps, COUNT_MAX),
    NUMBER("skippedSteps", skipped_steps, COUNT_MAX),
};
#undef NUMBER
#define OPTIONAL_COUNT (sizeof optional_numbers / sizeof optional_numbers[0])
#define NUMBER_COUNT (sizeof numbers / sizeof numbers[0])

void manifest_release(struct manifest *manifest)
{
    free(manifest->job_uid);
    json_free(manifest->model);
    json_free(manifest->optimizer);
    json_free(manifest->tickets);
    free(manifest->files);
    *manifest = (struct manifest){0};
}

/* ---- printing */

static void add_file(struct json *files, const struct manifest_file *file)
{
    char crc[9];
    snprintf(crc, sizeof crc, "%08x", file->crc32c);
    struct json *entry = json_append(files, json_new_object());
    json_set_string(entry, "name", file->name);
    json_set_integer(entry, "bytes", file->bytes);
    json_set_string(entry, "crc32c", crc);
}

static void print_number(struct json *document, const struct manifest *manifest, const struct whole_number *number,
                         bool optional)
{
    int64_t value;
    memcpy(&value, (const char *)manifest + number->offset, sizeof value);
    if (value != 0 || !optional)
        json_set_integer(document, number->name, value);
}

static struct json *manifest_to_json(const struct manifest *manifest)
{
    struct json *document = json_new_object();
    json_set_string(document, "format", FORMAT_NAME);
    json_set_integer(document, "version", FORMAT_VERSION);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        print_number(document, manifest, &numbers[i], false);
    for (size_t i = 0; i < OPTIONAL_COUNT; i++)
        print_number(document, manifest, &optional_numbers[i], true);
    json_set_string(document, "jobUID", manifest->job_uid ? manifest->job_uid : "");
    if (manifest->model)
        json_set(document, "model", json_copy(manifest->model));
    if (manifest->optimizer)
        json_set(document, "optimizer", json_copy(manifest->optimizer));
    if (manifest->tickets)
        json_set(document, "tickets", json_copy(manifest->tickets));
    struct json *files = json_set_array(document, "files");
    for (unsigned i = 0; i < manifest->file_count; i++)
        add_file(files, &manifest->files[i]);
    return document;
}

int manifest_print(const struct manifest *manifest, struct buffer *out, struct error *error)
{
    SCOPED_JSON *document = manifest_to_json(manifest);
    return sealed_document_print(document, out, error);
}

/* ---- parsing */

static int parse_number(const struct json *document, struct manifest *manifest, const struct whole_number *number,
                        int64_t fallback, struct error *error)
{
    const struct json *member = json_member(document, number->name);
    int64_t value = member ? json_integer(member, -1) : fallback;
    if (value < 0)
        return error_set(error, ERROR_INVALID, "%s is missing or negative", number->name);
    if (value > number->max)
        return error_set(error, ERROR_INVALID, "%s is %lld; at most %lld is possible", number->name, (long long)value,
                         (long long)number->max);
    memcpy((char *)manifest + number->offset, &value, sizeof value);
    return 0;
}

static int parse_numbers(const struct json *document, struct manifest *manifest, struct error *error)
{
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (parse_number(document, manifest, &numbers[i], -1, error) < 0)
            return -1;
    for (size_t i = 0; i < OPTIONAL_COUNT; i++)
        if (parse_number(document, manifest, &optional_numbers[i], 0, error) < 0)
            return -1;
    return 0;
}

static int parse_file(const struct json *entry, struct manifest_file *ret_file, struct error *error)
{
    const char *name = json_string(json_member(entry, "name"), "");
    const char *crc = json_string(json_member(entry, "crc32c"), "");
    struct manifest_file file = {.bytes = json_integer(json_member(entry, "bytes"), -1)};
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') || strlen(name) >= sizeof file.name)
        return error_set(error, ERROR_INVALID, "\"%.64s\" is not a plain file name", name);
    file.crc32c = (uint32_t)strtoul(crc, NULL, 16);
    if (strlen(crc) != 8 || strspn(crc, "0123456789abcdef") != 8 || file.bytes < 0)
        return error_set(error, ERROR_INVALID, "size or digest of %s is malformed", name);
    snprintf(file.name, sizeof file.name, "%s", name);
    *ret_file = file;
    return 0;
}

static int parse_files(const struct json *files, struct manifest *manifest, struct error *error)
{
    size_t count = json_count(files);
    if (json_type(files) != JSON_ARRAY || count == 0 || count > MANIFEST_FILES_MAX)
        return error_set(error, ERROR_INVALID, "files is not a list of 1 to %d entries", MANIFEST_FILES_MAX);
    manifest->files = memory_allocate(count, sizeof *manifest->files);
    for (const struct json *entry = json_first(files); entry; entry = json_next(entry)) {
        struct manifest_file file;
        if (parse_file(entry, &file, error) < 0)
            return -1;
        for (unsigned i = 0; i < manifest->file_count; i++)
            if (strcmp(manifest->files[i].name, file.name) == 0)
                return error_set(error, ERROR_INVALID, "the file %s is listed twice", file.name);
        manifest->files[manifest->file_count++] = file;
    }
    return 0;
}

/* A copy of an object that may be absent (NULL). */
static int parse_object(const struct json *document, const char *name, struct json **ret_object, struct error *error)
{
    const struct json *member = json_member(document, name);
    if (member && json_type(member) != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "%s is not an object", name);
    *ret_object = member ? json_copy(member) : NULL;
    return 0;
}

static int parse_document(const struct json *document, struct manifest *manifest, struct error *error)
{
    if (strcmp(json_string_at(document, "format", ""), FORMAT_NAME) != 0)
        return error_set(error, ERROR_INVALID, "this is not a checkpoint's manifest");
    int64_t version = json_integer_at(document, "version", 0);
    if (version != FORMAT_VERSION)
        return error_set(error, ERROR_UNSUPPORTED, "format version %lld is not known; use the release that wrote it",
                         (long long)version);
    if (parse_numbers(document, manifest, error) < 0 ||
        parse_files(json_member(document, "files"), manifest, error) < 0)
        return -1;
    const struct json *job = json_member(document, "jobUID");
    if (job && (json_type(job) != JSON_STRING || strlen(json_string(job, "")) >= MANIFEST_JOB_UID_SIZE))
        return error_set(error, ERROR_INVALID, "jobUID is not a text of less than %d bytes", MANIFEST_JOB_UID_SIZE);
    manifest->job_uid = memory_copy_string(json_string(job, ""));
    if (parse_object(document, "model", &manifest->model, error) < 0 ||
        parse_object(document, "optimizer", &manifest->optimizer, error) < 0)
        return -1;
    return parse_object(document, "tickets", &manifest->tickets, error);
}

int manifest_parse(const char *text, size_t length, struct manifest *ret_manifest, struct error *error)
{
    struct json *root;
    if (sealed_document_parse(text, length, MANIFEST_BYTES_MAX, &root, error) < 0)
        return error_wrap(error, "manifest");
    SCOPED_JSON *document = root;
    struct manifest manifest = {0};
    if (parse_document(document, &manifest, error) < 0) {
        manifest_release(&manifest);
        return error_wrap(error, "manifest");
    }
    *ret_manifest = manifest;
    return 0;
}
