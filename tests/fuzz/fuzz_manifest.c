/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile manifests. The digest is put right first: without it, nothing would get
 * past the first check. The record of algorithms in it is read as a resume reads it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/crc32c.h"
#include "worker/checkpoint/manifest.h"
#include "worker/device/algorithm_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken is printed and taken again. */
static void read_algorithms(const struct json *document)
{
    struct algorithm_record record, again;
    struct error error = ERROR_INIT;
    if (algorithm_record_from_json(document, &record, &error) < 0)
        return;
    SCOPED_JSON *printed = algorithm_record_to_json(&record);
    if (algorithm_record_from_json(printed, &again, &error) < 0 || !algorithm_record_equal(&record, &again))
        abort();
    algorithm_record_release(&record);
    algorithm_record_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text;
    struct manifest manifest;
    struct error error = ERROR_INIT;
    buffer_init(&text, MANIFEST_BYTES_MAX);
    if (buffer_append(&text, data, size, NULL) == 0 &&
        buffer_format(&text, ",\"digest\":\"%08x\"}", crc32c(0, data, size)) == 0 &&
        manifest_parse(text.data, text.length, &manifest, &error) == 0) {
        for (unsigned i = 0; i < manifest.file_count; i++)
            if (strchr(manifest.files[i].name, '/'))
                abort();
        if (manifest.logical_shards > MANIFEST_SHARDS_MAX || manifest.workers > MANIFEST_FILES_MAX ||
            (manifest.model && json_type(manifest.model) != JSON_OBJECT))
            abort();
        read_algorithms(json_member(manifest.model, "algorithms"));
        manifest_release(&manifest);
    }
    buffer_release(&text);
    return 0;
}
