/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/sealed_document.h"

#define FORMAT_NAME "coxswain-checkpoint"
#define FORMAT_VERSION 1

/* Every whole number of a manifest: its name and its member. */
struct whole_number {
    const char *name;
    size_t offset;
};
#define NUMBER(name, member)                                                                                           \
    {                                                                                                                  \
        name, offsetof(struct manifest, member)                                                                        \
    }
static const struct whole_number numbers[] = {
    NUMBER("step", step),
    NUMBER("attempt", attempt),
    NUMBER("epoch", epoch),
    NUMBER("generation", generation),
    NUMBER("workers", workers),
    NUMBER("logicalShards", logical_shards),
    NUMBER("seed", seed),
    NUMBER("dataEpoch", data_epoch),
    NUMBER("examplesConsumed", examples_consumed),
};
/* Those that are left out where they are 0. */
static const struct whole_number optional_numbers[] = {
    NUMBER("lossScale", loss_scale),
    NUMBER("goodSteps", good_steps),
    NUMBER("skippedSteps", skipped_steps),
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
    char *end;
    file.crc32c = (uint32_t)strtoul(crc, &end, 16);
    if (strlen(crc) != 8 || *end != '\0' || file.bytes < 0)
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
    for (const struct json *entry = json_first(files); entry; entry = json_next(entry))
        if (parse_file(entry, &manifest->files[manifest->file_count++], error) < 0)
            return -1;
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
    manifest->job_uid = memory_copy_string(json_string_at(document, "jobUID", ""));
    const struct json *model = json_member(document, "model"), *optimizer = json_member(document, "optimizer");
    manifest->model = model ? json_copy(model) : NULL;
    manifest->optimizer = optimizer ? json_copy(optimizer) : NULL;
    const struct json *tickets = json_member(document, "tickets");
    manifest->tickets = tickets ? json_copy(tickets) : NULL;
    return 0;
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
