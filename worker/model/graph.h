/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a model on one device, for training, evaluation and inference: forward passes, loss and
 * backward passes. All memory of a pass is planned ahead in one arena, so that nothing is allocated
 * inside a step. Passes of any number of examples from 0 up to the planned maximum use the same plan.
 *
 * The graph does not own parameters or gradients: a pass is given flat arrays in the order of
 * graph_layout(). One graph serves one stream at a time.
 *
 * With PRECISION_BFLOAT16 and PRECISION_FLOAT16, activations, their gradients, the inputs, and the
 * weights and biases of products are rounded to that type. All arithmetic is float32, and so are
 * parameters, their gradients and the statistics of normalisations.
 *
 * Gradients become final in buckets, ranges of the flat array, from the last layers to the first. A
 * strategy can send one bucket to other processes while the device still computes the next:
 *
 *     graph_forward_backward(graph, stream, &pass, error);   returns at once
 *     for each bucket b from 0: wait for graph_bucket_event(graph, b), reduce the bucket
 */
#ifndef COXSWAIN_MODEL_GRAPH_H
#define COXSWAIN_MODEL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/model/example_format.h"
#include "worker/model/parameter_layout.h"

struct graph;
#define LOGIT_ROWS_ALL INT64_MAX
struct graph_partition;
struct shard_exchange;
struct program;

/* What a model gives for one example, before the loss. */
#define OUTPUT_RANK_MAX 7
enum output_meaning { OUTPUT_VALUES, OUTPUT_LOGITS, OUTPUT_PROBABILITIES }; /* the latter two: a value for each class */
struct output_format {
    enum element_type type;
    enum output_meaning meaning;
    unsigned rank;
    int64_t shape[OUTPUT_RANK_MAX];
    int64_t elements; /* the product of `shape`, each of four bytes */
};

struct graph_options {
    struct device *device;
    const struct model_spec *model; /* read during graph_new only */
    /* If it is not NULL, the graph runs this program, which the job gives or which is of the layers of `model`. It must outlive
     * the graph, and must be compiled unless layout_only or plan_only is set. Only devices that share the host's memory. */
    struct program *program;
    unsigned program_device; /* number of the program's own device on which this graph runs it */
    enum precision precision;
    int64_t max_examples; /* of one pass, at least 1: the largest logical shard or evaluation batch */
    /* Keep only the values at the borders of the part or of residual blocks; compute the others
     * again in the backward pass. */
    bool recompute;
    bool evaluation_only; /* plans no backward pass */
    bool layout_only;     /* plans no pass: for layout, format and partitions only */
    bool plan_only;       /* plans passes but allocates no memory: for graph_memory_plan */
    /* Keeps all outputs of the last layer, for graph_outputs. A program was opened for predictions then. */
    bool keeps_outputs;
    /* Rows of logits to compute at a time for a softmax cross-entropy (graph_head.c). 0: chosen
     * from the shapes. */
    int64_t logit_rows;

    /* For a graph that runs one part of a model (graph_stage.h): */
    const struct graph_partition *partition; /* NULL: the whole model; read during graph_new only */
    unsigned part;
    const bool *held; /* by stage: whether its parameters are in the layout; NULL: all are */
    unsigned slots;   /* micro-batches that may be in flight at a time */
};

/* Creates a graph. ERROR_INVALID names the layer and what does not fit; ERROR_NO_SPACE: the
 * memory plan does not fit. */
int graph_new(const struct graph_options *options, struct graph **ret_graph, struct error *error);
void graph_free(struct graph *graph);

const struct parameter_layout *graph_layout(const struct graph *graph); /* lives as long as the graph */
const struct example_format *graph_example_format(const struct graph *graph);
int64_t graph_max_examples(const struct graph *graph);
enum precision graph_precision(const struct graph *graph);
/* Returns how activations are stored by graphs of this precision on this device, and sent
 * between the parts of a model. */
enum stored graph_stored_for(const struct device *device, enum precision precision);
int64_t graph_logit_rows(const struct graph *graph); /* graph_options.logit_rows */

/* Lists the pieces of the layout: one per tensor, or one per slice if the layer is split over
 * devices. A piece says which layer (of graph_layer_count()) owns it and which elements of the
 * flat array it covers. Returns how many; `ret_pieces` may be NULL. */
struct parameter_piece {
    int64_t offset, elements;
    unsigned layer, number;     /* number: the tensor's number in the whole model */
    int64_t first_row, skipped; /* rows and elements of the tensor before the slice */
};
unsigned graph_parameter_pieces(const struct graph *graph, struct parameter_piece *ret_pieces);
/* Returns the offset of a piece of the whole model in a layout that holds a part of it; -1: not
 * there. */
int64_t parameter_piece_place(const struct parameter_piece *piece, const struct parameter_layout *layout);
/* Returns whether a layer normalises over the global batch. If so, the passes of all shards of a
 * batch must run concurrently. */
bool graph_has_global_statistics(const struct graph *graph);
unsigned graph_layer_count(const struct graph *graph);
/* Returns the FLOPs of a forward and backward pass per example; a multiply-add counts as 2. */
double graph_flops_per_example(const struct graph *graph);

/* Buckets are contiguous ranges of gradients of about GRAPH_BUCKET_BYTES. They become final in
 * order: bucket 0, of the last layers, is first. */
#define GRAPH_BUCKET_BYTES (1 << 20)
struct graph_bucket {
    int64_t offset, elements;
};
unsigned graph_bucket_count(const struct graph *graph);
struct graph_bucket graph_bucket(const struct graph *graph, unsigned index);
/* Returns the event that a forward-backward pass records once the bucket's gradients are final
 * (unless graph_pass.is_whole_step). */
struct device_event *graph_bucket_event(const struct graph *graph, unsigned index);

/* One pass. The struct is read during the call only; the memory that it points to is used until the stream has executed the pass. */
struct graph_pass {
    const float *parameters; /* device memory, graph_layout()->elements */
    const void *inputs;      /* shared memory, `examples` of example_input_bytes each */
    const void *targets;     /* shared memory */
    bool batch_is_near;      /* inputs and targets are in device memory and are not copied there */
    int64_t examples;        /* 0 to max_examples; 0 gives zero gradients and zero sums */
    float scale;             /* 1 / targets of the global batch; multiplies the gradients, but not the sums */
    float loss_scale;        /* multiplies the gradients too; 0 means 1 */
    float *gradients;        /* device memory, flat */
    bool accumulate;         /* add this pass's gradients to the values in `gradients` */
    struct loss_sums *sums;  /* shared memory; overwritten; valid once the stream has executed the pass */
    /* Determine the dropouts, together with the example and the layer. Evaluations have no
     * dropouts. */
    uint64_t seed;
    int64_t step;                     /* the step being computed, from 1 */
    const struct step_values *values; /* NULL, or device memory that replaces `step` and `loss_scale` */
    int64_t first_example;            /* index of the pass's first example in the global batch */
    /* For layers with global statistics: connects this pass with those of the batch's other
     * shards. NULL: the pass is the whole batch. */
    struct shard_exchange *exchange;
    unsigned shard; /* index of this pass's shard */
    /* Set if the graph's last pass used the same parameters: then its rounded copy of them, or a
     * program's copy on its device, is reused. */
    bool weights_stand;
    bool is_whole_step; /* the caller waits for no bucket: bucket events are not recorded */
};

/* Enqueues a forward and backward pass. ERROR_INVALID: it has more examples than were planned. */
int graph_forward_backward(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                           struct error *error);
/* Enqueues the forward pass and the loss only. Ignores `scale`, `gradients` and `accumulate`. */
int graph_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                   struct error *error);

/* Returns the outputs of the last layer in the last evaluation, before the loss, example by
 * example. They are in device memory; read them once the stream has executed the pass and before
 * the next pass. Returns NULL if values are not stored as float32 or the logits are computed in
 * parts (graph_options.keeps_outputs prevents the latter), or if the graph of a program was created without
 * keeps_outputs. With keeps_outputs, a program computes neither loss nor correct predictions: only `count` of the
 * pass's loss_sums is set. */
const void *graph_outputs(const struct graph *graph);
struct output_format graph_output_format(const struct graph *graph);

/* Fills `parameters`, in host memory, with the initial values of a model: a pure function of
 * layout and seed. */
void graph_initialise(const struct parameter_layout *layout, uint64_t seed, float *parameters);

/* Bytes of memory by purpose. */
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
/* The memory of a process. GPUs need about the same each: `device` is for the one that needs
 * most. Empty if the devices use the host's memory. */
struct memory_plans {
    struct memory_plan host, device;
};
/* Returns the plan that the device's own memory belongs to: `host` if the device shares the
 * host's memory, else `device`. */
struct memory_plan *memory_plans_of(struct memory_plans *plans, const struct device *device);
void memory_plan_add(struct memory_plan *plan, const struct memory_plan *more);
/* Computes the memory of one graph, of one set of flat arrays and of one batch; the caller
 * allocates the latter two. `optimizer_slots`: number of flat arrays that the optimizer keeps
 * (optimizer.h). */
void graph_memory_plan(const struct graph *graph, unsigned optimizer_slots, struct memory_plan *ret_plan);
int64_t memory_plan_bytes(const struct memory_plan *plan);
/* Appends the bytes of each purpose that is not 0: "parameters 16 MiB, gradients 12.5 GiB, …". */
void memory_plan_print(const struct memory_plan *plan, struct buffer *text);

#endif
