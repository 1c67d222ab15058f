/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the structs behind graph.h. The files that resolve a graph's layers (graph_layers.c), plan its
 * memory (graph_plan.c) and run it (graph_pass.c) share them; together they turn a model description into
 * launches on a device. decoder.c, layer_cost.c and partition.c read them too. Code outside worker/model uses
 * graph.h instead.
 */
#ifndef COXSWAIN_MODEL_GRAPH_INTERNAL_H
#define COXSWAIN_MODEL_GRAPH_INTERNAL_H

#include "worker/model/graph.h"
#include "worker/model/graph_stage.h"
#include "worker/model/layer.h"
#include "worker/model/memory_planner.h"
#include "worker/model/preset.h"

#define MODEL_INPUT (-1) /* in place of a layer number: the model's input */
#define NO_LAYER (-2)

/* In place of a block number: the layer has no such block. Block numbers index graph.blocks. */
#define NO_BLOCK (-1)
struct graph_node {
    struct layer layer;
    int inputs[LAYER_INPUTS_MAX]; /* layer numbers, or MODEL_INPUT */
    unsigned consumers;
    unsigned tensors[LAYER_PARAMETERS_MAX]; /* in the layout */
    int64_t shift[LAYER_PARAMETERS_MAX];    /* where a slice's rows begin in the tensor, in elements */
    struct layer_slice slice;
    int lender; /* weightsOf: the layer whose first tensor this layer uses as its own, or NO_LAYER */
    bool lends; /* another layer uses this layer's first tensor; it is the borrower */
    /* Blocks, on the lender, for the gradient of that tensor. */
    int borrowed_gradient; /* if this graph runs the lender: the sum of both layers', while a pass accumulates */
    int lent_gradient;     /* if it runs only the borrower: the borrower's, to be sent to the lender's part */
    bool in_place; /* the output uses the input's memory: a flatten, or a rectifier that the layer before applies */
    bool gradient_in_place; /* the gradients of output and input use the same memory */
    /* The layer after this one, if this layer's launch also computes it; else NO_LAYER. */
    int fused_gelu; /* of a dense layer */
    int fused_norm; /* of a sum: the layer norm */
    int fused_sum;  /* of a batch norm: the sum, which alone is stored */
    int run_by;     /* a fused layer: the layer whose launch computes it; else NO_LAYER */
    /* Of a batch norm that is followed by a sum and its rectifier (ReLU): the batch norm's backward
     * launch also computes the rectifier's, which sets gradients to 0 where the output is 0. */
    bool masks_sum;
    /* Of that rectifier: the gradient from the first layer that reads its output is kept in the
     * spare block until the batch norm's launch adds it. */
    bool waits;
    bool needs_gradient;  /* the layer or one before it has parameters */
    bool own;             /* this graph runs the layer; false: another part does */
    bool held;            /* its parameters are in the layout */
    bool recomputed;      /* the backward pass computes the output again (graph_recompute.c) */
    unsigned segment_end; /* if recomputed: the layer at which the backward pass does so */
    /* Blocks: the output, its gradient, and layer_kind.kept values, which the backward pass reads. */
    int output, gradient, kept;
    int repeated;        /* block: the recomputed output; NO_BLOCK: the output was kept */
    int recomputed_kept; /* block: the recomputed layer_kind.kept values */
};

struct graph {
    struct device *device;
    struct program *program; /* NULL: the layers' own launches. With one there are no nodes and no arena */
    unsigned program_device;
    struct xla_kept *program_kept; /* the last pass's parameters, on the program's device */
    float *program_gradients;      /* of one call */
    void *program_outputs;         /* of one evaluation; NULL: not kept */
    enum precision precision;
    enum stored stored; /* how activations are stored in the blocks */
    int64_t max_examples;
    bool evaluation_only, layout_only, plan_only, keeps_outputs, fuses_gelus;
    enum loss_type loss;
    struct layer_shape input;
    struct example_format format;

    struct graph_node *nodes;
    unsigned node_count;
    struct parameter_tensor *tensors;
    struct parameter_layout layout;

    struct memory_block *blocks;
    bool *block_stays; /* by block: each slot has its own, which is kept from the forward to the backward pass */
    unsigned block_count;
    int workspace, spare, loss_workspace;   /* blocks: for any launch, for a second gradient, for the loss */
    int batch_inputs, batch_targets;        /* blocks: the batch, copied to the device; NO_BLOCK if memory is shared */
    int rounded_inputs, rounded_parameters; /* blocks: inputs and parameters, rounded; NO_BLOCK with float32 */
    int64_t arena_bytes, activation_bytes, workspace_bytes;
    char *arena;
    bool *written; /* by layer: its gradient has been written in this backward pass */

    int64_t logit_rows; /* graph_options.logit_rows */
    /* Rows of the last layer's logits that are computed at a time. 0: all, as for other layers. */
    int64_t head_rows;
    struct layer head; /* the last layer for one row, if head_rows > 0 */
    int64_t head_row;  /* distance between rows of its logits, in values */
    /* Block: the gradients of its parameters, summed over the parts of an accumulating pass
     * before they are added. */
    int head_gradient;

    bool is_stage, recompute;
    unsigned part, slots;                      /* slots: micro-batches of a pipeline that may be in flight at a time */
    struct graph_crossing *values, *gradients; /* of all parts of the partition */
    unsigned value_count, gradient_count;
    int64_t slot_bytes;
    char *slot_arena;

    struct graph_bucket *buckets;
    unsigned *bucket_layers; /* by bucket: the layer whose backward pass makes it final */
    struct device_event **bucket_events;
    unsigned bucket_count;
};

/* Fills nodes, input, loss and format. ERROR_INVALID names the layer and what is wrong. */
int graph_resolve_layers(struct graph *graph, const struct model_spec *spec, struct error *error);
/* Marks the layers that this graph runs and whose parameters it holds, and lists the values and
 * gradients that cross between parts. */
int graph_take_stage(struct graph *graph, const struct graph_options *options, struct error *error);
/* Assigns places in the layout to the parameters that this graph holds. */
void graph_lay_out_parameters(struct graph *graph);
/* Places and allocates the arena. */
int graph_plan_memory(struct graph *graph, struct error *error);
/* Divides the gradients into buckets, ranges that can be reduced while the backward pass goes on
 * (graph.h), and creates their events. */
int graph_plan_buckets(struct graph *graph, struct error *error);

/* Returns the layer whose memory holds this layer's output, following in-place layers;
 * MODEL_INPUT for the batch itself. */
int graph_output_owner(const struct graph *graph, int node);
/* Returns the last layer that reads this layer's output, which is the first in the backward
 * pass; the layer itself if none does. */
unsigned graph_last_reader(const struct graph *graph, unsigned node);
/* A pass that is being enqueued. */
struct graph_run {
    struct graph *graph;
    struct device_stream *stream;
    const struct graph_pass *pass;
    unsigned slot;
    const void *inputs, *targets; /* the batch, where the device reads it */
    bool evaluation;              /* no backward pass follows */
    bool back;                    /* in the backward pass: recomputed outputs are read */
};
int graph_check_pass(const struct graph *graph, const struct graph_pass *pass, struct error *error);
void *graph_block_memory(const struct graph *graph, int block, unsigned slot);
/* Copies the batch to the device if necessary, and rounds the inputs and parameters that layers
 * read. */
void graph_run_begin(struct graph_run *run);
/* Returns whether the graph's precision rounds activations. */
static inline bool graph_rounds(const struct graph *graph)
{
    return graph->precision == PRECISION_BFLOAT16 || graph->precision == PRECISION_FLOAT16;
}
/* Rounds activations or their gradients in place, if the graph's precision rounds them and they
 * are stored as float32. (16-bit storage rounds when it writes.) */
void graph_run_round(const struct graph_run *run, float *values, int64_t count);
void graph_run_forward(const struct graph_run *run);
/* Returns the arguments of a layer's launches, except dy and dx. */
struct layer_call graph_run_prepare(const struct graph_run *run, unsigned number);
/* Returns the factor of the loss's gradient. The loss scale is not part of it if the pass reads
 * it from device memory (graph_pass.values). */
float graph_run_loss_scale(const struct graph_run *run);
/* Launches the loss. `gradient`: where to write the gradient of the last layer's output; NULL in
 * an evaluation. Does nothing in training if the loss is computed in parts
 * (graph_head_backward). */
void graph_run_loss(const struct graph_run *run, float *gradient);
/* Launches the backward pass. graph->written says which gradients already hold a value. */
void graph_run_backward(const struct graph_run *run);

/* Returns the rows of the loss per example: 1, or the number of positions. */
int64_t graph_loss_rows(const struct graph *graph);

/* Marks the layers that are recomputed in the backward pass. ERROR_INVALID if recomputing is not
 * possible or saves nothing. */
int graph_plan_recompute(struct graph *graph, struct error *error);
/* Fuse launches: a GELU into the dense layers beside it, a layer norm into the sum before it, a
 * sum into the batch norm before it. */
void graph_fuse_gelus(struct graph *graph);
void graph_fuse_norms(struct graph *graph);
void graph_fuse_sums(struct graph *graph);
/* Returns whether layer `number` is a sum of two inputs, one of which is the batch norm right
 * before it, which no other layer reads. */
bool graph_is_sum_of_norm(const struct graph *graph, unsigned number);
/* Recomputes the marked layers whose segment_end is `end`. */
void graph_run_recomputed(const struct graph_run *run, unsigned end);
/* Launches the forward pass of one layer. */
void graph_run_layer(const struct graph_run *run, unsigned number);

/* The last layer and the loss, computed some rows at a time (graph_head.c). */
void graph_plan_head(struct graph *graph);
static inline bool graph_is_head(const struct graph *graph, unsigned number)
{
    return graph->head_rows > 0 && number + 1 == graph->node_count;
}
void graph_head_evaluate(const struct graph_run *run);
/* `call` covers all rows. If its dx is NULL, no input gradient is computed. */
void graph_head_backward(const struct graph_run *run, const struct layer_call *call);

#endif
