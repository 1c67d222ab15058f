/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes where each named tensor of a model lies in the flat float32 array of parameters. Gradients and
 * the optimizer's values for each parameter (slots, such as momentum) have the same layout. Strategies, the
 * optimizer, exports and parameter servers read a layout; the graph (graph.h) owns it. The running statistics
 * come first, then the trained tensors, each in the order of the layers; copies come last. There are no gaps,
 * and tensors are row-major. Shapes are PyTorch's: a dense weight is [out, in], a
 * convolution's [out, in, kernel, kernel], a token embedding's [vocabulary, width].
 *
 * Names are "<layer>.weight" and so on. (A flatten keeps the order H W C, so a dense layer after a flatten
 * has its columns in that order.)
 */
#ifndef COXSWAIN_MODEL_PARAMETER_LAYOUT_H
#define COXSWAIN_MODEL_PARAMETER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define PARAMETER_NAME_MAX 96
#define PARAMETER_RANK_MAX 4

/* Initial values of a tensor; see initialisation.c. */
enum parameter_start { START_ZERO, START_ONE, START_NORMAL };

struct parameter_tensor {
    char name[PARAMETER_NAME_MAX];
    int64_t shape[PARAMETER_RANK_MAX];
    unsigned rank;
    int64_t offset; /* elements from the start of the flat array */
    int64_t place;  /* the same in the layout of the whole model, of which this layout may be a part */
    int64_t elements;
    unsigned layer;  /* number in the model */
    unsigned number; /* number in the whole model, of which this layout may be a part */
    enum parameter_start start;
    float deviation;               /* for START_NORMAL */
    bool by_rows;                  /* a pass reads, and has gradients for, only the rows that its input tokens select */
    int64_t first_row, whole_rows; /* the tensor is the rows from first_row of a tensor of whole_rows */
    bool copy;                     /* a copy of another process's table, for a layer that borrows it here */
};

/* The layout of a whole model, or of the stages that a process holds.
 *
 * Running statistics (of batch normalisations) lie before all trained parameters. For these, a
 * pass writes into the gradients the step to take. It is summed over shards like any gradient
 * and then subtracted unchanged: without learning rate, decay, clipping or slots, and it is not
 * part of the gradient's norm (optimizer.h). */
struct parameter_layout {
    const struct parameter_tensor *tensors;
    unsigned tensor_count;
    int64_t elements;   /* of the whole flat array */
    int64_t statistics; /* number of leading elements that are running statistics */
    int64_t copies;     /* number of trailing elements that are copies: the owner sums and saves them */
};

/* Returns the tensor of that name, or NULL. */
const struct parameter_tensor *parameter_layout_find(const struct parameter_layout *layout, const char *name);

/* Returns the offset in this layout of a tensor of another layout of the same model, where it
 * may be a slice or a copy; -1: not in this layout. */
int64_t parameter_layout_place(const struct parameter_layout *layout, const struct parameter_tensor *tensor);

/* Returns a CRC-32C over names, shapes and offsets: equal for models whose states are
 * interchangeable. */
uint32_t parameter_layout_digest(const struct parameter_layout *layout);

#endif
