/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/export_record.h"

#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/json.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/sealed_document.h"

#define RECORD_BYTES_MAX 4096

int export_record_write(const char *directory, const struct export_record *record, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, CHECKPOINT_EXPORT);
    SCOPED_JSON *document = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(RECORD_BYTES_MAX);
    json_set_string(document, "jobUID", record->job_uid);
    json_set_integer(document, "step", record->step);
    json_set_integer(document, "bytes", record->bytes);
    json_set_integer(document, "crc32c", record->crc32c);
    if (sealed_document_print(document, &text, error) < 0 || file_replace(path, text.data, text.length, error) < 0)
        return -1;
    return file_sync_directory(directory, error);
}

static struct json *read_record(const char *directory)
{
    SCOPED_FREE char *path = file_path_join(directory, CHECKPOINT_EXPORT);
    SCOPED_BUFFER text = BUFFER_INIT(RECORD_BYTES_MAX);
    struct json *document;
    if (file_read(path, &text, NULL) < 0 ||
        sealed_document_parse(buffer_text(&text), text.length, RECORD_BYTES_MAX, &document, NULL) < 0)
        return NULL;
    return document;
}

bool export_record_is(const char *directory, const char *job_uid, int64_t step, int64_t bytes, uint32_t crc32c)
{
    SCOPED_JSON *document = read_record(directory);
    return document != NULL && strcmp(json_string_at(document, "jobUID", ""), job_uid) == 0 &&
           json_integer_at(document, "step", -1) == step && json_integer_at(document, "bytes", -1) == bytes &&
           json_integer_at(document, "crc32c", -1) == crc32c;
}

bool export_record_holds(const char *directory, const char *job_uid, int64_t step, const char *path)
{
    uint32_t crc;
    int64_t bytes;
    return file_digest(path, &crc, &bytes, NULL) == 0 && export_record_is(directory, job_uid, step, bytes, crc);
}
