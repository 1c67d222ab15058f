/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/completion_record.h"

#include "common/contract/checkpoint_layout.h"
#include "common/json.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/sealed_document.h"

#define RECORD_BYTES_MAX (STATUS_DOCUMENT_MAX + 4096)

int completion_record_write(const char *directory, const struct completion_record *record, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, CHECKPOINT_COMPLETION);
    SCOPED_JSON *document = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(RECORD_BYTES_MAX);
    json_set_integer(document, "step", record->step);
    if (record->exported) {
        struct json *export = json_set_object(document, "export");
        json_set_integer(export, "bytes", record->export_bytes);
        json_set_integer(export, "crc32c", record->export_crc32c);
    }
    json_set(document, "status", status_document_to_json(&record->status));
    if (sealed_document_print(document, &text, error) < 0 || file_replace(path, text.data, text.length, error) < 0)
        return -1;
    return file_sync_directory(directory, error);
}

int completion_record_read(const char *directory, struct completion_record *ret_record, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, CHECKPOINT_COMPLETION);
    SCOPED_JSON *document = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(RECORD_BYTES_MAX), status = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    if (file_read(path, &text, error) < 0 ||
        sealed_document_parse(buffer_text(&text), text.length, RECORD_BYTES_MAX, &document, error) < 0)
        return -1;
    const struct json *export = json_member(document, "export");
    *ret_record = (struct completion_record){.step = json_integer_at(document, "step", -1),
                                             .exported = export != NULL,
                                             .export_bytes = json_integer_at(export, "bytes", -1),
                                             .export_crc32c = (uint32_t)json_integer_at(export, "crc32c", -1)};
    if (json_print(json_member(document, "status"), &status, error) < 0)
        return -1;
    return status_document_parse(buffer_text(&status), status.length, &ret_record->status, error);
}
