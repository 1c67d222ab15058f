/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of a model: as the job lists them, or a preset's.
 *
 *   mlp        28x28x1 -> flatten, depth (1) x {dense width (512), relu}, dense 10
 *   lenet      28x28x1 -> conv 32 3x3, relu, max pool 2, conv 64 3x3, relu, max
 *              pool 2, flatten, dense 128, relu, dense 10
 *   gpt-bytes  GPT-2's layers (Radford et al. 2019), pre-norm, over bytes: depth
 *              (4), width (128), heads (4), context (256); embedding and head are
 *              not tied
 */
#ifndef COXSWAIN_MODEL_PRESET_H
#define COXSWAIN_MODEL_PRESET_H

#include "common/error.h"
#include "common/job/arena.h"
#include "common/job/job_document.h"
#include "worker/model/layer.h"

struct model_description {
    struct layer_shape input; /* integral: tokens */
    int64_t vocabulary;       /* of tokens */
    const struct layer_spec *layers;
    unsigned layer_count;
    enum loss_type loss;
};

/* Strings and lists come from `arena` or stay the spec's. */
int model_description_from(const struct model_spec *spec, struct arena *arena,
                           struct model_description *ret_description, struct error *error);

#endif
