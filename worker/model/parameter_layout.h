/* SPDX-License-Identifier: Apache-2.0
 *
 * Where each named tensor lies in the flat float32 array of parameters (and of
 * gradients and optimizer slots, which have the same layout). Tensors are packed
 * in the order of the layers, without gaps, row-major; shapes are PyTorch's: a
 * dense weight is [out, in], a convolution's [out, in, kernel, kernel], a token
 * embedding's [vocabulary, width].
 * Names are "<layer>.weight" and so on. (What a flatten hands on is in the order
 * H W C, so a dense layer behind a flatten has its columns in that order.)
 */
#ifndef COXSWAIN_MODEL_PARAMETER_LAYOUT_H
#define COXSWAIN_MODEL_PARAMETER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define PARAMETER_NAME_MAX 96
#define PARAMETER_RANK_MAX 4

/* How a tensor starts; see initialisation.h. */
enum parameter_start { START_ZERO, START_ONE, START_NORMAL };

struct parameter_tensor {
    char name[PARAMETER_NAME_MAX];
    int64_t shape[PARAMETER_RANK_MAX];
    unsigned rank;
    int64_t offset; /* elements from the start of the flat array */
    int64_t place;  /* likewise, in the layout of the whole model, of which this one may hold a part */
    int64_t elements;
    unsigned layer;  /* of the model */
    unsigned number; /* among the tensors of the whole model, of which a layout may hold a part */
    enum parameter_start start;
    float deviation;               /* of START_NORMAL */
    bool by_rows;                  /* a pass reads, and has a gradient for, only the rows that its input tokens name */
    int64_t first_row, whole_rows; /* of a slice of a tensor that others hold slices of: which rows, of how many */
    bool copy;                     /* of a table that another process holds, for a layer that borrows it here */
};

/* Of a whole model, or of the stages of it that a process holds.
 *
 * Running statistics (of batch normalisations) lie before all that is trained. What a pass leaves in their place among the
 * gradients is the step that they take, summed over shards like any gradient and subtracted as it is: without learning
 * rate, decay, clipping or slots, and outside the gradient's norm (optimizer.h does so). */
struct parameter_layout {
    const struct parameter_tensor *tensors;
    unsigned tensor_count;
    int64_t elements;   /* of the whole flat array */
    int64_t statistics; /* the first so many of them are running statistics */
    int64_t copies;     /* the last so many of them are copies: their holder sums and saves them */
};

/* The tensor of that name, or NULL. */
const struct parameter_tensor *parameter_layout_find(const struct parameter_layout *layout, const char *name);

/* Where a tensor of another layout of the same model, which may have a slice or a copy of it, lies in this one; -1: elsewhere. */
int64_t parameter_layout_place(const struct parameter_layout *layout, const struct parameter_tensor *tensor);

/* CRC-32C over names, shapes and offsets: equal for models whose states are interchangeable. */
uint32_t parameter_layout_digest(const struct parameter_layout *layout);

#endif
