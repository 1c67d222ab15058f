/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses NumPy array files (numpy.lib.format, versions 1 to 3) in memory, for the data format NPY, and writes
 * their headers, for the predictions that a worker prints (coxswain-worker --predict). The header is a magic
 * number, the length of a Python dictionary, and the dictionary, with descr, fortran_order and shape. The
 * elements follow, and nothing else.
 */
#ifndef COXSWAIN_COMMON_DATA_NPY_H
#define COXSWAIN_COMMON_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

#define NPY_RANK_MAX 8
#define NPY_HEADER_MAX 65536

struct npy {
    char kind;           /* 'u', 'i', 'f' or 'b' (bool) */
    unsigned item_bytes; /* of one element, little-endian */
    unsigned rank;
    int64_t shape[NPY_RANK_MAX];
    int64_t elements;
    const uint8_t *data; /* points into the bytes given */
};

/* ERROR_INVALID if it is not such a file, or not of numbers in C order; ERROR_CORRUPT if its length
 * does not match its header. */
int npy_parse(const uint8_t *bytes, size_t length, struct npy *ret_npy, struct error *error);

/* Appends the header that stands before the elements of a file: version 1, padded to 64 bytes. Uses `kind`, `item_bytes`, `rank` and
 * `shape`. */
int npy_append_header(struct buffer *file, const struct npy *npy, struct error *error);

/* Returns whether npy_floats reads the elements: integers, booleans, and float32 and float64. */
bool npy_has_numbers(const struct npy *npy);
/* Copies `count` elements from `first` on as float32; a float64 that is too large for one becomes an infinity. */
void npy_floats(const struct npy *npy, int64_t first, int64_t count, float *ret_values);
/* Returns element `index` of an array of integers or booleans. */
int64_t npy_integer_at(const struct npy *npy, int64_t index);

#endif
