/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/idx.h"

#define TYPE_UNSIGNED_BYTE 8

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int read_header(const uint8_t *bytes, size_t length, struct idx *idx, struct error *error)
{
    if (length < 4 || bytes[0] != 0 || bytes[1] != 0)
        return error_set(error, ERROR_INVALID, "not an IDX file: it must begin with two zero bytes");
    if (bytes[2] != TYPE_UNSIGNED_BYTE)
        return error_set(error, ERROR_INVALID, "IDX element type 0x%02x is not supported; write unsigned bytes (0x08)",
                         bytes[2]);
    idx->rank = bytes[3];
    if (idx->rank < 1 || idx->rank > IDX_RANK_MAX)
        return error_set(error, ERROR_INVALID, "an IDX file of %u dimensions; 1 to %d are supported", idx->rank,
                         IDX_RANK_MAX);
    if (length < 4 + 4 * (size_t)idx->rank)
        return error_set(error, ERROR_CORRUPT, "the IDX header is cut off after %zu bytes", length);
    return 0;
}

int idx_parse(const uint8_t *bytes, size_t length, struct idx *ret_idx, struct error *error)
{
    struct idx idx = {0};
    if (read_header(bytes, length, &idx, error) < 0)
        return -1;
    size_t header = 4 + 4 * (size_t)idx.rank, elements = 1;
    for (unsigned i = 0; i < idx.rank; i++) {
        idx.dims[i] = big_endian(bytes + 4 + 4 * (size_t)i);
        if (__builtin_mul_overflow(elements, (size_t)idx.dims[i], &elements))
            return error_set(error, ERROR_INVALID,
                             "the dimensions in the IDX header are too large; the file is damaged or not an IDX file");
    }
    if (length - header != elements)
        return error_set(error, ERROR_CORRUPT, "%s: its header promises %zu elements, %zu follow",
                         length - header < elements ? "the IDX file is cut off" : "the IDX file has too many bytes",
                         elements, length - header);
    idx.elements = bytes + header;
    idx.element_count = elements;
    *ret_idx = idx;
    return 0;
}
