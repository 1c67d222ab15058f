/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile incarnation records. The test corrects their digest first; otherwise none would pass the first check.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/buffer.h"
#include "common/crc32c.h"
#include "worker/checkpoint/incarnation_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text = BUFFER_INIT((size_t)1 << 20);
    struct incarnation_record record;
    struct error error = ERROR_INIT;
    if (buffer_append(&text, data, size, NULL) == 0 &&
        buffer_format(&text, ",\"digest\":\"%08x\"}", crc32c(0, data, size)) == 0 &&
        incarnation_record_parse(text.data, text.length, &record, &error) == 0 &&
        (record.incarnation < 0 || record.fencing < 0 || record.base.step < -1))
        abort();
    buffer_release(&text);
    return 0;
}
