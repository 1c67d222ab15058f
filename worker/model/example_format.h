/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes one example in the buffers that a pass of a model reads (graph.h), and that a data set fills (data/dataset.h): its inputs, its
 * targets, their types and their shapes. Data sets know nothing else of models.
 */
#ifndef COXSWAIN_MODEL_EXAMPLE_FORMAT_H
#define COXSWAIN_MODEL_EXAMPLE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_document.h"

enum element_type { ELEMENT_FLOAT32, ELEMENT_INT32 };
#define EXAMPLE_RANK_MAX 7
struct example_shape {
    unsigned rank; /* 0: one value, or values whose dimensions are not known */
    int64_t dims[EXAMPLE_RANK_MAX];
};
/* One of the arrays that a program takes as its input (docs/programs.md). */
#define EXAMPLE_INPUTS_MAX DATA_INPUTS_MAX
struct example_input {
    char name[DATA_INPUT_NAME_MAX + 1];
    enum element_type type;
    int64_t elements;
    int64_t vocabulary; /* of int32: its values are below this; 0: it may have any */
    struct example_shape shape;
};
struct example_format {
    enum element_type input_type;  /* pixels, or tokens; with several inputs, of the first */
    int64_t input_elements;        /* an image is H W C, normalised as dataset.h says; of all inputs together */
    enum element_type target_type; /* classes or tokens; float32 for a mean squared error */
    int64_t target_elements;       /* 1, or one per position for a language model */
    int64_t classes;               /* classes or vocabulary; 0 for float targets */
    bool ignores;                  /* of a program: targets of the value `ignored` do not count */
    int32_t ignored;
    int64_t image[3];                               /* H W C of an input that is an image; else zeros */
    struct example_shape input_shape, target_shape; /* the input's only if there is one */
    /* The inputs of a program; an example has them one behind the other, without gaps. 0: the model is one of layers,
     * and its only input has no name. */
    unsigned input_count;
    struct example_input inputs[EXAMPLE_INPUTS_MAX];
};
/* Return the bytes of one example's inputs and of its targets. */
size_t example_input_bytes(const struct example_format *format);
size_t example_target_bytes(const struct example_format *format);
/* Returns how many terms of the loss an example has: its target tokens or class, also those that do not count, or 1 for float
 * targets. */
int64_t example_targets(const struct example_format *format);
/* Returns whether an int32 target is a class, or ignored. */
bool example_takes_target(const struct example_format *format, int64_t target);

#endif
