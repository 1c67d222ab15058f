/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a NumPy array file (numpy.lib.format, versions 1 to 3): a magic
 * number, the length of a Python dictionary with descr, fortran_order and shape,
 * the dictionary, then the elements and nothing else.
 */
#ifndef COXSWAIN_DATA_NPY_H
#define COXSWAIN_DATA_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define NPY_RANK_MAX 8
#define NPY_HEADER_MAX 65536

/* kind: 'u', 'i', 'f' or 'b' (bool), and the bytes of an element. Little-endian. */
struct npy {
    char kind;
    unsigned item_bytes;
    unsigned rank;
    int64_t shape[NPY_RANK_MAX];
    int64_t elements;
    const uint8_t *data; /* into the bytes given */
};

/* ERROR_INVALID for what is no such file or not of numbers in C order, ERROR_CORRUPT for one of another length. */
int npy_parse(const uint8_t *bytes, size_t length, struct npy *ret_npy, struct error *error);

/* Element `index` of an array of integers (or bool). */
int64_t npy_integer_at(const struct npy *npy, int64_t index);

#endif
