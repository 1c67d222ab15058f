/* SPDX-License-Identifier: Apache-2.0
 *
 * A model as layers on one device, with all memory of a pass planned ahead in
 * one arena: nothing is allocated inside a step, and passes of any number of
 * examples up to the planned maximum (0 included) cost no new plan.
 *
 * The graph does not own parameters or gradients: a pass is given flat arrays in
 * the order of graph_layout(). One graph serves one stream at a time.
 *
 * PRECISION_BFLOAT16, PRECISION_FLOAT16: what layers give each other, on the way
 * there and back, what they read of the batch, and the weights and biases of products are
 * rounded to it. All arithmetic is float32, as are parameters, their gradients
 * and the statistics of normalisations.
 *
 *     graph_forward_backward(graph, stream, &pass, error);   returns at once
 *     for each bucket b from 0: wait for graph_bucket_event(graph, b), reduce it
 */
#ifndef COXSWAIN_MODEL_GRAPH_H
#define COXSWAIN_MODEL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"

struct graph;
#define LOGIT_ROWS_ALL INT64_MAX
struct graph_partition;
struct shard_exchange;

/* What one example is, in the buffers that a pass reads; the data set says the same of its own (data/dataset.h). */
enum element_type { ELEMENT_FLOAT32, ELEMENT_INT32 };
struct example_format {
    enum element_type input_type;  /* pixels, or tokens */
    int64_t input_elements;        /* an image is H W C, normalised as dataset.h says */
    enum element_type target_type; /* classes or tokens; float32 for a mean squared error */
    int64_t target_elements;       /* 1, or one a position for a language model */
    int64_t classes;               /* classes or vocabulary; 0 for float targets */
    int64_t image[3];              /* H W C of an input that is an image; else zeros */
};
/* Bytes of one example's inputs and targets. */
size_t example_input_bytes(const struct example_format *format);
size_t example_target_bytes(const struct example_format *format);
/* What one example counts in the loss: its target tokens, or one. */
int64_t example_targets(const struct example_format *format);

struct graph_options {
    struct device *device;
    const struct model_spec *model; /* read during graph_new only */
    enum precision precision;
    int64_t max_examples; /* of one pass: the largest logical shard or evaluation batch, at least 1 */
    bool recompute;       /* keep what crosses the borders of the part, or of residual blocks; compute the rest again */
    bool evaluation_only; /* plans no backward pass */
    bool layout_only;     /* plans no pass at all: for layout, format and partitions */
    bool plan_only;       /* plans passes that it has no memory for: for graph_memory_plan */
    bool keeps_outputs;   /* graph_outputs will be asked for */
    int64_t logit_rows;   /* of a softmax cross-entropy's logits at a time (graph_head.c); 0: as shapes have it */

    /* A graph that runs one part of a model (graph_stage.h): */
    const struct graph_partition *partition; /* NULL: the whole model; read during graph_new only */
    unsigned part;
    const bool *held; /* by stage: whose parameters are in the layout; NULL: all */
    unsigned slots;   /* micro-batches under way at a time */
};

/* ERROR_INVALID names the layer and what does not fit; ERROR_NO_SPACE the plan's size. */
int graph_new(const struct graph_options *options, struct graph **ret_graph, struct error *error);
void graph_free(struct graph *graph);

const struct parameter_layout *graph_layout(const struct graph *graph); /* lives as long as the graph */
const struct example_format *graph_example_format(const struct graph *graph);
int64_t graph_max_examples(const struct graph *graph);
enum precision graph_precision(const struct graph *graph);
/* How values lie in the memory of graphs of this precision there, and between parts of a model. */
enum stored graph_stored_for(const struct device *device, enum precision precision);
int64_t graph_logit_rows(const struct graph *graph); /* graph_options.logit_rows */

/* Every tensor of the layout, or where a layer is split over devices its slices: which layer (of graph_layer_count()) has it,
 * and which elements of the flat array. Returns how many; `ret_pieces` may be NULL. */
struct parameter_piece {
    int64_t offset, elements;
    unsigned layer, number;     /* number: of the tensor, in the whole model */
    int64_t first_row, skipped; /* of the tensor: rows, and elements, before the slice */
};
unsigned graph_parameter_pieces(const struct graph *graph, struct parameter_piece *ret_pieces);
/* Where a piece of the whole model lies in a layout that holds a part of it; -1: elsewhere. */
int64_t parameter_piece_place(const struct parameter_piece *piece, const struct parameter_layout *layout);
/* Whether a layer's statistics are those of the global batch: then the passes of its shards must run side by side. */
bool graph_has_global_statistics(const struct graph *graph);
unsigned graph_layer_count(const struct graph *graph);
/* Multiply-adds count 2; forwards and backwards, per example. */
double graph_flops_per_example(const struct graph *graph);

/* Gradients in contiguous ranges of about GRAPH_BUCKET_BYTES, bucket 0 first to be final (the last layers). */
#define GRAPH_BUCKET_BYTES (1 << 20)
struct graph_bucket {
    int64_t offset, elements;
};
unsigned graph_bucket_count(const struct graph *graph);
struct graph_bucket graph_bucket(const struct graph *graph, unsigned index);
/* Recorded in every forward-backward pass once that bucket's gradients are final. */
struct device_event *graph_bucket_event(const struct graph *graph, unsigned index);

struct graph_pass {
    const float *parameters; /* device memory, graph_layout()->elements */
    const void *inputs;      /* shared memory, `examples` of example_input_bytes each */
    const void *targets;     /* shared memory */
    bool batch_is_near;      /* both are device memory instead, and need not be copied there */
    int64_t examples;        /* 0 .. max_examples; 0 gives zero gradients and zero sums */
    float scale;             /* 1 / targets of the global batch; gradients carry it, sums do not */
    float loss_scale;        /* gradients carry it as well; 0: 1 */
    float *gradients;        /* device memory, flat */
    bool accumulate;         /* add the finished gradients of this pass to what `gradients` holds */
    struct loss_sums *sums;  /* shared memory; overwritten; valid once the stream has passed */
    /* What dropouts are a function of; evaluations have none. */
    uint64_t seed;
    int64_t step;                     /* being computed, from 1 */
    const struct step_values *values; /* NULL, or device memory that says it in place of `step` and `loss_scale` */
    int64_t first_example;            /* number of the pass's first example in the global batch */
    /* With those that compute the batch's other shards, for layers with global statistics; NULL: the pass is the batch. */
    struct shard_exchange *exchange;
    unsigned shard; /* which this one is */
    /* The graph's last pass trained by these parameters: their rounded copy is there. */
    bool weights_stand;
    bool is_whole_step; /* nobody waits for a bucket: their events are not recorded */
};

/* Enqueues the pass. Fails only for a pass that does not fit the plan (ERROR_INVALID). */
int graph_forward_backward(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                           struct error *error);
/* Forward and loss only; `scale`, `gradients` and `accumulate` are not read. */
int graph_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                   struct error *error);

/* What the last layer gave in the last evaluation, example by example, before the loss: device memory, to be read once the
 * stream has passed and until the next pass. NULL where values do not lie as float32, or are not all there at a time
 * (graph_options.keeps_outputs). */
const float *graph_outputs(const struct graph *graph);

/* Values of a fresh model: a pure function of (layout, seed). Host memory. */
void graph_initialise(const struct parameter_layout *layout, uint64_t seed, float *parameters);

/* Bytes by purpose. */
#define MEMORY_PURPOSES(X)                                                                                             \
    X(PARAMETERS, "parameters")                                                                                        \
    X(GRADIENTS, "gradients")                                                                                          \
    X(OPTIMIZER, "optimizer")                                                                                          \
    X(ACTIVATIONS, "activations")                                                                                      \
    X(WORKSPACE, "workspace")                                                                                          \
    X(INPUT, "input")                                                                                                  \
    X(EXCHANGE, "exchange with others")                                                                                \
    X(STREAMS, "work spaces of streams")                                                                               \
    X(SNAPSHOT, "copy for checkpoints")                                                                                \
    X(PROGRAM, "program")
enum memory_purpose {
#define X(name, text) MEMORY_##name,
    MEMORY_PURPOSES(X)
#undef X
        MEMORY_PURPOSE_COUNT
};
struct memory_plan {
    int64_t bytes[MEMORY_PURPOSE_COUNT];
};
/* Of a process. Devices with memory of their own (GPUs) need about the same each: `device` is for the one that needs most, and
 * empty where devices share the host's. */
struct memory_plans {
    struct memory_plan host, device;
};
/* Where what lies in the device's own memory belongs. */
struct memory_plan *memory_plans_of(struct memory_plans *plans, const struct device *device);
void memory_plan_add(struct memory_plan *plan, const struct memory_plan *more);
/* Of one graph and one set of the flat arrays and the batch that its passes are given, which are the caller's.
 * `optimizer_slots`: flat arrays the optimizer keeps (optimizer.h). */
void graph_memory_plan(const struct graph *graph, unsigned optimizer_slots, struct memory_plan *ret_plan);
int64_t memory_plan_bytes(const struct memory_plan *plan);
/* "parameters 16 MiB, gradients 12.5 GiB, …": what there is of each purpose. */
void memory_plan_print(const struct memory_plan *plan, struct buffer *text);

#endif
