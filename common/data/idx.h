/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses IDX files (LeCun, "The MNIST database") in memory, for the data format idx (dataset_idx.c). The
 * header is two zero bytes, the element type (8: unsigned byte), the number of dimensions, and each dimension
 * as 32 bits, most significant byte first. The elements follow, and nothing else. Only unsigned bytes are
 * supported.
 */
#ifndef COXSWAIN_COMMON_DATA_IDX_H
#define COXSWAIN_COMMON_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define IDX_RANK_MAX 4
struct idx {
    unsigned rank;
    uint32_t dims[IDX_RANK_MAX];
    const uint8_t *elements; /* points into the bytes given */
    size_t element_count;
};

/* ERROR_INVALID if it is not an IDX file of bytes, ERROR_CORRUPT if its length does not match its
 * header. */
int idx_parse(const uint8_t *bytes, size_t length, struct idx *ret_idx, struct error *error);

#endif
