/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica's inside, for the files that make it: replica.c (passes and sums) and
 * replica_update.c (the optimizer's step). Only they include it.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_PARTS_H
#define COXSWAIN_STRATEGY_REPLICA_PARTS_H

#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/strategy/replica.h"

/* Examples of one batch that this replica computes. Two of these: one is computed, the other read ahead. */
struct batch {
    bool filled;
    int64_t data_epoch, position; /* of the global batch */
    void *inputs, *targets;
};

struct replica_lanes;

struct replica {
    struct strategy_options options;
    unsigned shards, first, end;
    struct device_stream *stream;
    struct device_event *passed; /* all passes of the step, and what is summed after them */
    bool buckets_are_final;      /* the last pass writes straight into the contribution: its events will do */

    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned cover_count;
    float *gradients[REDUCTION_COVER_MAX];
    float *partial[REDUCTION_DEPTH_MAX]; /* partial sums above slot 0, shared by all subtrees */
    float controls[REDUCTION_COVER_MAX][CONTROL_WORDS_MAX];
    const float *control_pointers[REDUCTION_COVER_MAX];
    struct loss_sums *sums; /* one a shard of ours */
    double *norm_blocks;

    struct shard_exchange *exchange; /* NULL: each pass is for itself */
    struct replica_lanes *lanes;     /* with an exchange, and more than one shard */

    struct batch batches[2];
    unsigned current;
    int64_t *indices;
    int64_t max_examples; /* of ours in a batch */
    int64_t examples;     /* in the global batch of this step */
};

/* The pass of one of its shards, but for where its gradients go. */
struct graph_pass replica_pass(const struct replica *replica, unsigned shard);
/* Where the batch behind this one starts. */
void replica_next_position(const struct replica *replica, int64_t *data_epoch, int64_t *position);
/* What losses and gradients of this step divide by: examples, or target tokens. */
double replica_target_count(const struct replica *replica);

#endif
