/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tensors that a checkpoint may store in pieces, because each process saves what it holds. Rows [r, r +
 * n) of tensor "w" are stored as the tensor "w#r" of n rows; elements [e, e + n), in row-major order, as the
 * tensor "w@e" of n numbers. Callers read by the tensor's name and need not know its pieces. A read that
 * finds a gap between pieces fails.
 */
#ifndef COXSWAIN_CHECKPOINT_PIECES_H
#define COXSWAIN_CHECKPOINT_PIECES_H

#include "worker/checkpoint/checkpoint.h"

#define PIECE_NAME_MAX 160

/* Write the names "w#r" and "w@e". */
void piece_name(const char *tensor, int64_t first_row, char name[PIECE_NAME_MAX]);
void piece_name_flat(const char *tensor, int64_t first_element, char name[PIECE_NAME_MAX]);

/* Copies rows [first, first + count) of the float32 tensor `wanted`, which gives its name and
 * shape. If `to` is NULL, only checks that they exist. ERROR_INVALID names the tensor that is
 * missing or has another shape. */
int checkpoint_read_rows(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t first,
                         int64_t count, float *to, struct error *error);
/* Copies elements [first, first + count). *from, initially 0, remembers the piece where the read
 * ended, so that the next read further on in the same tensor begins there. */
int checkpoint_read_elements(const struct checkpoint_image *image, const struct safetensors_tensor *wanted,
                             int64_t first, int64_t count, int64_t *from, float *to, struct error *error);

#endif
