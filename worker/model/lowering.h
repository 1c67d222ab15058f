/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates a model of layers into functions of StableHLO (xla/stablehlo.h), so that XLA can run presets and layers on devices that
 * have no kernels of our own, such as TPUs. The functions are those of a program (docs/programs.md), with the tensors of
 * the graph's layout in the same order; program_from_layers makes a program of them.
 *
 * Forward and backward passes have the formulas of the layers' own launches (layer_*.c): with float32 products at the highest
 * precision, or with BFloat16, activations, their gradients and the operands of products rounded to bfloat16. What is rounded when
 * differs: sums are float32 throughout, where our own are double in the loss and in batch normalisations, and the loss is
 * scaled after the backward pass. A dropout zeroes the same elements. Statistics of batch normalisations are those of one call: with
 * statistics Shard, a call must take a whole logical shard.
 */
#ifndef COXSWAIN_MODEL_LOWERING_H
#define COXSWAIN_MODEL_LOWERING_H

#include "common/buffer.h"
#include "worker/model/graph.h"

/* The words of the function's seed: the run's seed (low, high), the step, and the first example's number in the global batch (low,
 * high). */
#define LOWERING_SEED_WORDS 5

/* Appends a module for calls of `batch` examples, with losses and gradients, or only losses if `evaluation` is set. `graph` may be one
 * for its layout only. ERROR_UNSUPPORTED: Float16, or a model that is cut into stages. */
int lowering_write(const struct graph *graph, enum precision precision, int64_t batch, bool evaluation,
                   struct buffer *text, struct error *error);

#endif
