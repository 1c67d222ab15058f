/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one part of a model that is cut for pipeline parallelism (partition.h), for the Pipeline strategy; a
 * part is usually a whole stage, the layers that one device computes. The graph runs only its own layers. A
 * crossing is a value that these layers read from another part, or a gradient that goes back to another part:
 * `elements` per example, in the format in which the graph stores them (graph_stored_for). All graphs of a
 * partition list the same crossings if their devices store values alike. The strategy tells each pass where
 * the values and gradients that it receives lie.
 *
 * If a layer borrows a table from another part (weightsOf), the borrower sends its gradient of each
 * micro-batch to the lender, which continues the sum from there. The sum therefore has the order, and the
 * bits, of a model on one device.
 *
 * A micro-batch occupies a slot, a set of buffers, from its forward to its backward pass. Values and
 * gradients that cross lie in the slot's own memory, where other parts may read them until the slot is used
 * again. In the part of the last layer, the backward pass begins with the loss.
 */
#ifndef COXSWAIN_MODEL_GRAPH_STAGE_H
#define COXSWAIN_MODEL_GRAPH_STAGE_H

#include "worker/model/graph.h"

struct graph_crossing {
    unsigned layer;    /* the layer whose output, or whose output's gradient, crosses */
    unsigned from, to; /* parts */
    int64_t elements;  /* per example; of the whole table if `table` */
    bool table;        /* the gradient of the layer's table, in floats, independent of the number of examples */
    enum stored stored;
};
/* Returns the floats that are sent for a micro-batch of `examples`. Bytes are rounded up
 * to whole floats; both ends have room for that. */
static inline int64_t graph_crossing_floats(const struct graph_crossing *crossing, int64_t examples)
{
    int64_t elements = crossing->table ? crossing->elements : examples * crossing->elements;
    int64_t bytes = elements * stored_bytes(crossing->stored), unit = (int64_t)sizeof(float);
    return (bytes + unit - 1) / unit;
}

/* List all values, in the order of the layers, and all gradients, in the order in which the
 * receiver adds them. */
const struct graph_crossing *graph_values(const struct graph *graph, unsigned *ret_count);
const struct graph_crossing *graph_gradients(const struct graph *graph, unsigned *ret_count);
/* Returns whether the receiving part adds the gradient to an earlier one. Everything else that
 * crosses is copied before a pass computes with it. */
bool graph_stage_adds_gradient(const struct graph *graph, unsigned gradient);
/* Return where a value or gradient that this part sends lies, in device memory. */
const void *graph_value_out(const struct graph *graph, unsigned value, unsigned slot);
const void *graph_gradient_out(const struct graph *graph, unsigned gradient, unsigned slot);

/* Return whether the part's layers read the batch's inputs, and whether the part computes the
 * loss. */
bool graph_stage_reads_inputs(const struct graph *graph);
bool graph_stage_has_loss(const struct graph *graph);

/* Lists the ranges of the layout that hold the part's own parameters; adjacent ranges are
 * merged. Returns how many; `ret_ranges` may be NULL. */
unsigned graph_stage_ranges(const struct graph *graph, struct graph_bucket *ret_ranges);

struct graph_stage_pass {
    struct graph_pass pass; /* `inputs`, `targets` and `sums` only if the part uses them */
    unsigned slot;
    const void *const *values;    /* by number: where the values that this part receives lie now */
    const void *const *gradients; /* by number: where the gradients that this part receives lie now */
};

/* Enqueue the part's forward or backward pass, and return at once. */
int graph_stage_forward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                        struct error *error);
int graph_stage_backward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);
/* Enqueues the forward pass, with the loss in the part of the last layer. */
int graph_stage_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error);

#endif
