/* SPDX-License-Identifier: Apache-2.0
 *
 * One part of a stage of a partitioned model (partition.h), most often the whole
 * stage: a graph that runs its own layers alone. What its layers read of other
 * parts' comes in as values, and goes back as gradients, `elements` for each
 * example; both cross as they lie in the graph, in two bytes each where the device
 * stores values so (graph_stored_for). The lists of what crosses are the same in
 * all graphs of a partition whose devices store alike.
 *
 * Of a table that a layer borrows from another part (weightsOf) the borrower sends
 * its gradient of each micro-batch to the lender, which goes on from it: so that
 * the sum has the order, and the bits, of one device.
 *
 * A micro-batch has a slot from its way there to its way back; what crosses lies
 * in the slot's own memory, so that others may read it until the slot is used
 * again. The way back of the last layer's part begins with the loss.
 */
#ifndef COXSWAIN_MODEL_GRAPH_STAGE_H
#define COXSWAIN_MODEL_GRAPH_STAGE_H

#include "worker/model/graph.h"

struct graph_crossing {
    unsigned layer;    /* whose output, or the gradient of whose output */
    unsigned from, to; /* parts */
    int64_t elements;  /* of one example; of a table */
    bool table;        /* the gradient of the layer's table, whatever the number of examples: floats */
    enum stored stored;
};
/* Floats' room that crosses with a micro-batch of so many examples: a last half of one goes whole, and is there at both ends. */
static inline int64_t graph_crossing_floats(const struct graph_crossing *crossing, int64_t examples)
{
    int64_t elements = crossing->table ? crossing->elements : examples * crossing->elements;
    int64_t bytes = elements * stored_bytes(crossing->stored), unit = (int64_t)sizeof(float);
    return (bytes + unit - 1) / unit;
}

/* Values in the order of the layers; gradients in the order in which the receiver adds them up. */
const struct graph_crossing *graph_values(const struct graph *graph, unsigned *ret_count);
const struct graph_crossing *graph_gradients(const struct graph *graph, unsigned *ret_count);
/* Whether the part where a gradient ends adds it to one that has come before. All else that crosses is copied by a pass before
 * anything is computed with it. */
bool graph_stage_adds_gradient(const struct graph *graph, unsigned gradient);
/* Where this part leaves a value or a gradient that begins here. */
const void *graph_value_out(const struct graph *graph, unsigned value, unsigned slot);
const void *graph_gradient_out(const struct graph *graph, unsigned gradient, unsigned slot);

/* Whether the part's layers read the batch's inputs, and whether it ends in the loss. */
bool graph_stage_reads_inputs(const struct graph *graph);
bool graph_stage_has_loss(const struct graph *graph);

/* The ranges of the layout that are the part's own parameters, joined where they meet. Returns how many; `ret_ranges` may be
 * NULL. */
unsigned graph_stage_ranges(const struct graph *graph, struct graph_bucket *ret_ranges);

struct graph_stage_pass {
    struct graph_pass pass; /* `inputs`, `targets` and `sums` where the part reads or fills them */
    unsigned slot;
    const void *const *values;    /* by number: where what ends here lies now */
    const void *const *gradients; /* likewise */
};

/* All return at once. */
int graph_stage_forward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                        struct error *error);
int graph_stage_backward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);
/* Forward; in the part of the last layer with the loss. */
int graph_stage_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);

#endif
