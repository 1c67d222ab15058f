/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a replica, for the files that implement it: replica.c (passes and
 * sums), replica_batch.c (examples), replica_update.c (the optimizer's step), replica_lanes.c
 * (shards side by side) and replica_ahead.c (steps without the host), and for replica_set.c.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_PARTS_H
#define COXSWAIN_STRATEGY_REPLICA_PARTS_H

#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/strategy/repeated_launches.h"
#include "worker/strategy/replica.h"

/* Examples of one batch that this replica computes. Two of these: one is computed, the other
 * read ahead. Where the device has a memory of its own what is read is copied there at once,
 * beside the passes; each shard begins there as a buffer does, so that a product has the same
 * bits wherever its shard is computed. */
struct batch {
    bool filled;
    int64_t data_epoch, position, size; /* of the global batch */
    void *inputs, *targets;             /* shared memory */
    void *near_inputs, *near_targets;   /* the device's own; NULL: the device reads shared memory */
    struct device_event *copied, *used; /* the device's own has been filled; has been read by all passes */
};

struct replica_lanes;

struct replica {
    struct strategy_options options;
    unsigned shards, first, end;
    struct device_stream *stream;
    struct device_event *passed; /* all passes of the step, and what is summed after them */
    _Atomic int64_t passed_ns;   /* clock_monotonic_ns by then; 0: nobody has looked */
    bool buckets_are_final;      /* the last pass writes straight into the contribution: its events will do */

    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned cover_count;
    float *gradients[REDUCTION_COVER_MAX];
    float *partial[REDUCTION_DEPTH_MAX]; /* partial sums above slot 0, shared by all subtrees */
    float controls[REDUCTION_COVER_MAX][CONTROL_WORDS_MAX];
    const float *control_pointers[REDUCTION_COVER_MAX];
    struct loss_sums *sums; /* one a shard of ours: where passes leave them, */
    struct loss_sums *seen; /* and where the host finds them: the same, but for replica_ahead.c */
    const struct step_values
        *values;        /* device memory that tells passes their step; NULL: they are told by their arguments */
    bool is_whole_step; /* nobody waits for a bucket */
    struct step_values
        *told; /* device memory, for passes that are recorded and the step is the host's; NULL: they are not */
    struct repeated_stream launches;    /* then, */
    struct repeated_launches passes[2]; /* of each batch */
    double *norm_blocks;

    struct shard_exchange *exchange; /* NULL: each pass is for itself */
    struct replica_lanes *lanes;     /* with an exchange, and more than one shard */

    struct batch batches[2];
    unsigned current;
    struct device_stream *copies; /* of batches, to the device; NULL: there are none */
    int64_t *indices;
    int64_t max_examples; /* of ours in a batch */
    int64_t examples;     /* in the global batch of the step that is being taken */
};

/* The pass of one of its shards, but for where its gradients go. */
struct graph_pass replica_pass(const struct replica *replica, unsigned shard);
/* The largest number of examples that a shard has. */
int64_t replica_largest_shard(const struct strategy_options *options, unsigned shards);

int replica_batches_allocate(struct replica *replica, struct error *error);
void replica_batches_free(struct replica *replica);
bool replica_batch_is(const struct batch *batch, int64_t data_epoch, int64_t position);
/* Unless it is there already: reads it, on this thread, and starts to copy it to the device. */
int replica_batch_read(struct replica *replica, struct batch *batch, int64_t data_epoch, int64_t position,
                       struct error *error);
/* Of a global batch of `size` this replica has so many examples, from *ret_first on. */
int64_t replica_batch_share(const struct replica *replica, int64_t size, int64_t *ret_first);
/* What a pass reads. */
struct batch_shard {
    int64_t first, count; /* examples of the global batch */
    const void *inputs, *targets;
};
struct batch_shard replica_batch_shard(const struct replica *replica, const struct batch *batch, unsigned shard);
/* Around the launches of passes that read it: they wait for its copies, which are not
 * overwritten before they are done. */
void replica_batch_begin_use(struct replica *replica, struct batch *batch);
void replica_batch_end_use(struct replica *replica, struct batch *batch);

/* Where the batch behind this one starts. */
void replica_next_position(const struct replica *replica, int64_t *data_epoch, int64_t *position);
/* What losses and gradients of a step divide by: the targets of so many examples. */
double replica_target_count(const struct replica *replica, int64_t examples);
/* The batch of the state's position becomes the current one. */
int replica_take_batch(struct replica *replica, struct error *error);
/* Queues the passes of the current batch: launches alone, the same ones for batches of a size in
 * the same buffer, where passes are told their step by `values`. */
int replica_queue_shards(struct replica *replica, struct error *error);
/* What a recording of such passes holds for; without a batch, of launches that read none. */
struct repeated_key replica_key(const struct replica *replica, const struct batch *batch);
/* The examples of a batch count as this replica's in the step that is being taken. */
void replica_record_share(const struct replica *replica, const struct batch *batch);
/* replica->seen into the control words of its contributions. */
void replica_sum_controls(struct replica *replica, unsigned rank, unsigned votes);

#endif
