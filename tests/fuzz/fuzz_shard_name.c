/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of objects that may be shards of checkpoints. A name that is one has a rank and a step that are not negative, and fits a manifest.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/bucket_shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct checkpoint_part_key key;
    uint32_t owner;
    SCOPED_FREE char *name = memory_copy_bytes((const char *)bytes, length);
    if (bucket_shard_name_parse(name, &key, &owner) &&
        (key.step < 0 || strlen(name) >= BUCKET_SHARD_NAME_MAX || strchr(name, '/')))
        abort();
    return 0;
}
