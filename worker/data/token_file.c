/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/token_file.h"

#include <endian.h>
#include <string.h>

#define HEADER_BYTES 1024

static const struct {
    uint32_t magic, version;
    unsigned token_bytes;
} kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static uint32_t word(const uint8_t *bytes, size_t index)
{
    uint32_t value;
    memcpy(&value, bytes + 4 * index, sizeof value);
    return le32toh(value);
}

int token_file_parse(const uint8_t *bytes, size_t length, struct token_file *ret_file, struct error *error)
{
    if (length < HEADER_BYTES)
        return error_set(error, ERROR_INVALID, "%zu bytes are too few for a file of tokens with its header of %d",
                         length, HEADER_BYTES);
    uint32_t magic = word(bytes, 0), version = word(bytes, 1), count = word(bytes, 2);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (magic != kinds[i].magic || version != kinds[i].version)
            continue;
        if ((uint64_t)count * kinds[i].token_bytes != length - HEADER_BYTES)
            return error_set(error, ERROR_CORRUPT,
                             "the header says that %u tokens follow, but %zu bytes follow; is the file cut off?", count,
                             length - HEADER_BYTES);
        *ret_file = (struct token_file){bytes + HEADER_BYTES, count, kinds[i].token_bytes};
        return 0;
    }
    return error_set(error, ERROR_INVALID,
                     "magic %u and version %u are not those of a file of tokens (20240520 and 1, or 20240801 and 7)",
                     magic, version);
}

int64_t token_file_at(const struct token_file *file, int64_t index)
{
    if (file->token_bytes == 4)
        return word(file->tokens, (size_t)index);
    uint16_t token;
    memcpy(&token, file->tokens + 2 * index, sizeof token);
    return le16toh(token);
}
