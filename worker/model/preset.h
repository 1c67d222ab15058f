/* SPDX-License-Identifier: Apache-2.0
 *
 * Expands the model specification of a job into a list of layers, for graph_layers.c: the layers that the job lists, or
 * those of a preset (numbers in parentheses are the preset's defaults):
 *
 *   mlp        28x28x1 -> flatten, depth (1) x {dense width (512), relu}, dense 10
 *   lenet      28x28x1 -> conv 32 3x3, relu, max pool 2, conv 64 3x3, relu, max
 *              pool 2, flatten, dense 128, relu, dense 10
 *   resnet20   32x32x3 -> He et al. 2016, section 4.2: conv 16 3x3, three groups
 *              of three blocks of 16, 32, 64 channels (depth: blocks a group),
 *              shortcuts without parameters, global average, dense 10
 *   resnet50   224x224x3 -> the same paper's table 1 for ImageNet, stride in the
 *              3x3 convolutions, projections where the shape changes, dense 1000
 *   gpt-bytes  GPT-2's layers (Radford et al. 2019), pre-norm, over bytes: depth
 *              (4), width (128), heads (4), context (256); embedding and head are
 *              not tied
 *   gpt2-…     the four sizes of GPT-2: vocabulary 50257, context 1024, the output
 *              tied to the embedding
 */
#ifndef COXSWAIN_MODEL_PRESET_H
#define COXSWAIN_MODEL_PRESET_H

#include "common/error.h"
#include "common/job/arena.h"
#include "common/job/job_document.h"
#include "worker/model/layer.h"

/* Which slice of a split layer this layer is (split.h). A split layer is replaced by its slices
 * and a layer that concatenates their outputs. */
struct layer_slice {
    unsigned place;             /* index of the original layer in the model's list */
    unsigned count, index;      /* number of slices and index of this one; count 0: not a slice */
    int64_t first, rows, whole; /* the slice's first unit, its number of units, and the units of all slices */
};

struct model_description {
    struct layer_shape input; /* `integral` for tokens */
    int64_t vocabulary;       /* number of tokens */
    const struct layer_spec *layers;
    unsigned layer_count;
    const struct layer_slice *slices; /* by layer; NULL: no layer is split */
    enum loss_type loss;
};

/* Fills the description. Strings and lists are allocated in `arena` or belong to `spec`. */
int model_description_from(const struct model_spec *spec, struct arena *arena,
                           struct model_description *ret_description, struct error *error);

/* The sizes of a preset of GPT-2's layers. */
struct gpt_sizes {
    int64_t vocabulary, context, width, depth, heads;
    double dropout;
    bool tied; /* the output's weights are those of the embedding */
};
/* Returns false if the model is no such preset. */
bool preset_gpt_sizes(const struct model_spec *spec, struct gpt_sizes *ret_sizes);

#endif
