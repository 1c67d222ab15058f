/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph behind graph.h, shared by the files that resolve it (graph_layers.c),
 * plan its memory (graph_plan.c) and run it (graph_pass.c).
 */
#ifndef COXSWAIN_MODEL_GRAPH_INTERNAL_H
#define COXSWAIN_MODEL_GRAPH_INTERNAL_H

#include "worker/model/graph.h"
#include "worker/model/graph_stage.h"
#include "worker/model/layer.h"
#include "worker/model/memory_planner.h"
#include "worker/model/preset.h"

#define MODEL_INPUT (-1) /* as the number of a layer */
#define NO_LAYER (-2)

/* Blocks of a layer's memory; NO_BLOCK: it has none of its own. */
#define NO_BLOCK (-1)
struct graph_node {
    struct layer layer;
    int inputs[LAYER_INPUTS_MAX]; /* layer numbers, or MODEL_INPUT */
    unsigned consumers;
    unsigned tensors[LAYER_PARAMETERS_MAX]; /* in the layout */
    int64_t shift[LAYER_PARAMETERS_MAX];    /* of a slice: where its rows begin in the tensor */
    struct layer_slice slice;
    int lender;            /* the layer whose first tensor this one borrows; NO_LAYER */
    int borrowed_gradient; /* block: the lender's: what the borrower made, while the pass accumulates */
    int lent_gradient;     /* block: the same in the borrower's part, when that is another */
    bool lends;
    bool in_place;          /* the output is the input's memory: flatten, a rectifier run by the layer before */
    bool gradient_in_place; /* likewise for its gradient */
    int gelu;               /* of a layer whose launch runs the GELU behind it: that; NO_LAYER */
    int norm;               /* likewise, of a sum: the layer norm behind it */
    int sum;                /* likewise, of a batch norm: the sum right behind it, which alone is stored */
    int run_by;             /* of such a GELU, layer norm or sum: the layer whose launch it is part of; NO_LAYER */
    bool masks_sum;         /* a batch norm that goes back through the rectifier of the sum right behind it */
    bool waits;             /* of that rectifier: what its first reader makes of its gradient waits in the spare */
    bool needs_gradient;    /* something at or before it has parameters */
    bool own;               /* run by this graph: all but other parts' layers */
    bool held;              /* its parameters are in the layout */
    bool again;             /* runs again on the way back (graph_recompute.c), */
    unsigned stretch_end;   /* when that comes to this layer */
    int output, gradient, kept;
    int repeated;   /* block: the output once more, for the way back; NO_BLOCK: it was kept */
    int kept_again; /* block: likewise what it keeps */
};

struct graph {
    struct device *device;
    enum precision precision;
    enum stored stored; /* how values lie in its blocks */
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
    bool *block_stays; /* each slot has one of its own, which holds its value from the way there to the way back */
    unsigned block_count;
    int workspace, spare, loss_workspace;   /* blocks: any launch's, a second gradient's, the loss's */
    int batch_inputs, batch_targets;        /* blocks: the batch near the device; none where all memory is shared */
    int rounded_inputs, rounded_parameters; /* blocks: as layers and products read them, rounded; none in float32 */
    int64_t arena_bytes, activation_bytes, workspace_bytes;
    char *arena;
    bool *written; /* a flag a layer, for the backward pass */

    int64_t logit_rows; /* that were asked for */
    int64_t head_rows;  /* rows of logits at a time, the last layer's; 0: all of them, as other layers' values */
    struct layer head;  /* the last layer for a row, where head_rows */
    int64_t head_row;   /* how far apart rows of its logits lie */
    int head_gradient;  /* block: its parameters', made whole while a pass of several such parts accumulates */

    bool is_stage, recompute;
    unsigned part, slots;
    struct graph_crossing *values, *gradients; /* of the whole partition */
    unsigned value_count, gradient_count;
    int64_t slot_bytes;
    char *slot_arena;

    struct graph_bucket *buckets;
    unsigned *bucket_layers; /* the layer whose backward makes the bucket final */
    struct device_event **bucket_events;
    unsigned bucket_count;
};

/* Fills nodes, layout and format. */
int graph_resolve_layers(struct graph *graph, const struct model_spec *spec, struct error *error);
/* Marks the layers that this graph runs and holds, and finds what crosses between parts. */
int graph_take_stage(struct graph *graph, const struct graph_options *options, struct error *error);
/* Gives the layers that are held their places in the layout. */
void graph_lay_out_parameters(struct graph *graph);
/* Places and allocates the arena. */
int graph_plan_memory(struct graph *graph, struct error *error);
/* Cuts the layout into buckets. */
int graph_plan_buckets(struct graph *graph, struct error *error);

/* The layer whose memory holds this layer's output, following in-place layers; MODEL_INPUT for the batch itself. */
int graph_output_owner(const struct graph *graph, int node);
/* The last layer that reads it, the first on the way back; itself: none. */
unsigned graph_last_reader(const struct graph *graph, unsigned node);
/* One pass on its way. */
struct graph_run {
    struct graph *graph;
    struct device_stream *stream;
    const struct graph_pass *pass;
    unsigned slot;
    const void *inputs, *targets; /* the batch, near the device */
    bool evaluation;              /* nothing is learnt from it */
    bool back;                    /* on the way back: repeated outputs are read */
};
int graph_check_pass(const struct graph *graph, const struct graph_pass *pass, struct error *error);
void *graph_block_memory(const struct graph *graph, int block, unsigned slot);
/* Brings the batch near the device where it is not; rounds what is read of it, and the parameters. */
void graph_run_begin(struct graph_run *run);
/* Whether its precision rounds what layers give each other. */
static inline bool graph_rounds(const struct graph *graph)
{
    return graph->precision == PRECISION_BFLOAT16 || graph->precision == PRECISION_FLOAT16;
}
/* Rounds what a layer gives another, in a graph that does and where writing it has not. */
void graph_run_round(const struct graph_run *run, float *values, int64_t count);
void graph_run_forward(const struct graph_run *run);
/* The pointers of a layer's launches, without those of its gradients' values. */
struct layer_call graph_run_prepare(const struct graph_run *run, unsigned number);
/* What the loss multiplies its gradient by, beside the scale that device memory holds where the pass is told its step there. */
float graph_run_loss_scale(const struct graph_run *run);
/* `gradient`: where the loss leaves that of the last layer; NULL in an evaluation. Nothing where the way back does it. */
void graph_run_loss(const struct graph_run *run, float *gradient);
/* graph->written says which gradients hold something already. */
void graph_run_backward(const struct graph_run *run);

/* Rows of the loss an example has: 1, or its positions. */
int64_t graph_loss_rows(const struct graph *graph);

/* Marks the layers that run again on the way back. ERROR_INVALID where there is nothing to win. */
int graph_plan_recompute(struct graph *graph, struct error *error);
/* Mark GELUs that are part of the launches around them, layer norms that are part of the sum before them, and sums that are part
 * of the batch norm before them. */
void graph_fuse_gelus(struct graph *graph);
void graph_fuse_norms(struct graph *graph);
void graph_fuse_sums(struct graph *graph);
/* Whether layer `number` is a sum of two, one of which is the batch norm right before it, which nobody else reads. */
bool graph_is_sum_of_norm(const struct graph *graph, unsigned number);
/* Those of the stretch that ends so. */
void graph_run_again(const struct graph_run *run, unsigned end);
/* A layer's way there. */
void graph_run_layer(const struct graph_run *run, unsigned number);

/* The last layer and the loss by parts (graph_head.c). */
void graph_plan_head(struct graph *graph);
static inline bool graph_is_head(const struct graph *graph, unsigned number)
{
    return graph->head_rows > 0 && number + 1 == graph->node_count;
}
void graph_head_evaluate(const struct graph_run *run);
/* `call` is of all rows; no dx: it is not wanted. */
void graph_head_backward(const struct graph_run *run, const struct layer_call *call);

#endif
