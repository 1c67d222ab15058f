/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile manifests. The test corrects their digest first; otherwise none would pass the first check.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/crc32c.h"
#include "worker/checkpoint/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text = BUFFER_INIT(MANIFEST_BYTES_MAX);
    struct manifest manifest;
    struct error error = ERROR_INIT;
    if (buffer_append(&text, data, size, NULL) == 0 &&
        buffer_format(&text, ",\"digest\":\"%08x\"}", crc32c(0, data, size)) == 0 &&
        manifest_parse(text.data, text.length, &manifest, &error) == 0) {
        for (unsigned i = 0; i < manifest.file_count; i++)
            if (strchr(manifest.files[i].name, '/'))
                abort();
        if (manifest.logical_shards > MANIFEST_SHARDS_MAX || manifest.workers > MANIFEST_FILES_MAX ||
            (manifest.model && json_type(manifest.model) != JSON_OBJECT))
            abort();
        manifest_release(&manifest);
    }
    buffer_release(&text);
    return 0;
}
