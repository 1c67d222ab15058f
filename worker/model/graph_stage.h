/* SPDX-License-Identifier: Apache-2.0
 *
 * One stage of a partitioned model: a graph that runs its own layers alone. What
 * its layers read of other stages' comes in as values, and goes back as
 * gradients; both are floats, `elements` for each example. The lists of what
 * crosses are the same in all graphs of a partition.
 *
 * A micro-batch has a slot from its way there to its way back; what crosses lies
 * in the slot's own memory, so that others may read it until the slot is used
 * again. The way back of the last layer's stage begins with the loss.
 */
#ifndef COXSWAIN_MODEL_GRAPH_STAGE_H
#define COXSWAIN_MODEL_GRAPH_STAGE_H

#include "worker/model/graph.h"

struct graph_crossing {
    unsigned layer;    /* whose output, or the gradient of whose output */
    unsigned from, to; /* stages */
    int64_t elements;  /* of one example */
};

/* Values in the order of the layers; gradients in the order in which the receiver adds them up. */
const struct graph_crossing *graph_values(const struct graph *graph, unsigned *ret_count);
const struct graph_crossing *graph_gradients(const struct graph *graph, unsigned *ret_count);
/* Where this stage leaves a value or a gradient that begins here. */
const float *graph_value_out(const struct graph *graph, unsigned value, unsigned slot);
const float *graph_gradient_out(const struct graph *graph, unsigned gradient, unsigned slot);

/* Whether the stage's layers read the batch's inputs, and whether it ends in the loss. */
bool graph_stage_reads_inputs(const struct graph *graph);
bool graph_stage_has_loss(const struct graph *graph);

/* The ranges of the layout that are the stage's own parameters, joined where they meet. Returns how many; `ret_ranges` may be
 * NULL. */
unsigned graph_stage_ranges(const struct graph *graph, struct graph_bucket *ret_ranges);

struct graph_stage_pass {
    struct graph_pass pass; /* `inputs`, `targets` and `sums` where the stage reads or fills them */
    unsigned slot;
    const float *const *values;    /* by number: where what ends here lies now */
    const float *const *gradients; /* likewise */
};

/* All return at once. */
int graph_stage_forward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                        struct error *error);
int graph_stage_backward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);
/* Forward; in the stage of the last layer with the loss. */
int graph_stage_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);

#endif
