/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that a checkpoint holds in pieces: rows [r, r + n) of tensor "w" are the
 * tensor "w#r" of n rows; elements [e, e + n) of it, row by row, are the tensor
 * "w@e" of n numbers. Whoever reads need not know how a tensor was cut, or whether
 * it was.
 */
#ifndef COXSWAIN_CHECKPOINT_PIECES_H
#define COXSWAIN_CHECKPOINT_PIECES_H

#include "worker/checkpoint/checkpoint.h"

#define PIECE_NAME_MAX 160

void piece_name(const char *tensor, int64_t first_row, char name[PIECE_NAME_MAX]);
void piece_name_flat(const char *tensor, int64_t first_element, char name[PIECE_NAME_MAX]);

/* Copies rows [first, first + count) of a float32 tensor of that shape. With `to` NULL it only looks whether they are there.
 * ERROR_INVALID names what is missing or of another shape. */
int checkpoint_read_rows(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t first,
                         int64_t count, float *to, struct error *error);
/* The same for elements. *from, 0 at first, remembers where a piece begins, for the next read of the same tensor further on. */
int checkpoint_read_elements(const struct checkpoint_image *image, const struct safetensors_tensor *wanted,
                             int64_t first, int64_t count, int64_t *from, float *to, struct error *error);

#endif
