/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a replica: one device's copy of the model and that device's part of
 * each training step (replica.h). Only replica_set.c and the files that implement a replica
 * include this header:
 *
 *     replica.c          runs the forward and backward passes and sums the shards' gradients
 *     replica_batch.c    reads the replica's examples and copies them to the device
 *     replica_update.c   applies the optimizer's update
 *     replica_lanes.c    computes several logical shards at the same time, not one after another
 *     replica_ahead.c    queues a step before the host knows the result of the step before
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_PARTS_H
#define COXSWAIN_STRATEGY_REPLICA_PARTS_H

#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/strategy/repeated_launches.h"
#include "worker/strategy/replica.h"

/* The examples of one batch that this replica computes. There are two: one is computed while the other is read ahead. If the device has
 * memory of its own, a batch is copied there as soon as it is read, while passes run. Each shard is aligned there like a buffer, so
 * that matrix products have the same bits wherever the shard is computed. */
struct batch {
    bool filled;
    int64_t data_epoch, position, size; /* of the global batch */
    void *inputs, *targets;             /* shared memory */
    void *near_inputs, *near_targets;   /* the device's own memory; NULL: the device reads shared memory */
    struct device_event *copied, *used; /* near memory has been filled; has been read by all passes */
};

struct replica_lanes;

struct replica {
    struct strategy_options options;
    unsigned shards, first, end;
    struct device_stream *stream;
    struct device_event *passed; /* all passes of the step and the sums after them are done */
    _Atomic int64_t passed_ns;   /* clock_monotonic_ns at that moment; 0: not recorded */
    bool buckets_are_final;      /* the last pass writes straight into the contribution, so its bucket events suffice */

    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned cover_count;
    float *gradients[REDUCTION_COVER_MAX];
    float *partial[REDUCTION_DEPTH_MAX]; /* partial sums above slot 0, shared by all subtrees */
    float controls[REDUCTION_COVER_MAX][CONTROL_WORDS_MAX];
    const float *control_pointers[REDUCTION_COVER_MAX];
    struct loss_sums *sums; /* one for each own shard; written by passes */
    struct loss_sums *seen; /* what the host reads: the same memory, except with replica_ahead.c */
    const struct step_values
        *values;              /* device memory from which passes read their step; NULL: it is in their arguments */
    bool is_whole_step;       /* no bucket events are needed */
    struct step_values *told; /* device memory for `values` while passes are recorded; NULL: they are not */
    struct repeated_stream launches; /* with `told`: records the passes of each batch buffer */
    struct repeated_launches passes[2];
    double *norm_blocks;

    struct shard_exchange *exchange; /* NULL: passes exchange no values */
    struct replica_lanes *lanes;     /* with an exchange and more than one own shard */

    struct batch batches[2];
    unsigned current;
    struct device_stream *copies; /* copies batches to the device; NULL: none are copied */
    int64_t *indices;
    int64_t max_examples; /* own ones in a batch */
    int64_t examples;     /* in the global batch of the current step */
};

/* Returns the pass of one of its shards; the caller sets where the gradients go. */
struct graph_pass replica_pass(const struct replica *replica, unsigned shard);
/* Returns the largest number of examples in a shard. */
int64_t replica_largest_shard(const struct strategy_options *options, unsigned shards);

int replica_batches_allocate(struct replica *replica, struct error *error);
void replica_batches_free(struct replica *replica);
bool replica_batch_is(const struct batch *batch, int64_t data_epoch, int64_t position);
/* Reads the batch on this thread and starts to copy it to the device, unless it is already there. */
int replica_batch_read(struct replica *replica, struct batch *batch, int64_t data_epoch, int64_t position,
                       struct error *error);
/* Returns how many examples of a global batch of `size` belong to this replica, and the index of the first. */
int64_t replica_batch_share(const struct replica *replica, int64_t size, int64_t *ret_first);
/* The examples that a pass reads. */
struct batch_shard {
    int64_t first, count; /* examples of the global batch */
    const void *inputs, *targets;
};
struct batch_shard replica_batch_shard(const struct replica *replica, const struct batch *batch, unsigned shard);
/* Call these before and after launching the passes that read a batch. The passes wait until the batch is copied to the device, and the
 * copy is not overwritten before the passes are done. */
void replica_batch_begin_use(struct replica *replica, struct batch *batch);
void replica_batch_end_use(struct replica *replica, struct batch *batch);

/* Advances a position by one global batch. */
void replica_next_position(const struct replica *replica, int64_t *data_epoch, int64_t *position);
/* Returns the number of targets in `examples` examples, by which losses and gradients of a step are divided. */
double replica_target_count(const struct replica *replica, int64_t examples);
/* Makes the batch at the state's position the current one, and reads it if it was not read ahead. */
int replica_take_batch(struct replica *replica, struct error *error);
/* Queues the passes of the current batch. With `values`, batches of one size in one buffer always give the same launches. */
int replica_queue_shards(struct replica *replica, struct error *error);
/* Returns the key for recording the passes of a batch; with NULL, the key for launches that read no batch. */
struct repeated_key replica_key(const struct replica *replica, const struct batch *batch);
/* Writes this replica's examples of a batch to the step record (data/step_record.h). */
void replica_record_share(const struct replica *replica, const struct batch *batch);
/* Sums replica->seen into the control words of its contributions. */
void replica_sum_controls(struct replica *replica, unsigned rank, unsigned votes);

#endif
