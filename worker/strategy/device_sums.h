/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums gradients in the memory of the devices that computed them, for one process or for a crew
 * whose workers have equally many devices. On each device, a separate stream waits for each part of
 * the backward pass in turn.
 *
 * In the tree's order, each device owns a slice of each part. All devices send their contributions
 * to a slice to its owner, which adds them in the tree's order and sends the sum to all. This gives
 * the same bits as one device alone. In any order, the library's all-reduce adds one sum from each
 * device.
 */
#ifndef COXSWAIN_STRATEGY_DEVICE_SUMS_H
#define COXSWAIN_STRATEGY_DEVICE_SUMS_H

#include "worker/model/graph.h"
#include "worker/optimizer/shard_plan.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/replica_set.h"

struct device_sums;

struct device_sums_options {
    const struct strategy_device *devices; /* of this process, each with its own gradients; borrowed */
    unsigned device_count;
    unsigned rank, size;         /* of the process, among those that sum */
    unsigned first_rank, stride; /* these are the crew's first_rank, first_rank + stride, …; 0: all of it */
    unsigned shards;             /* leaves of the tree, dealt to the ranks and by them to their devices */
    int64_t elements;            /* of vectors that are summed whole; 0: those are gradients, in the graph's buckets */
    bool in_any_order;
    /* NULL: everybody gets all sums. Else in the tree's order, of ranks with plan->devices each: sums stay with the owners of shards
     * and with those who mirror them, of a rank's devices with the one whose pieces they are. */
    const struct shard_plan *plan;
};

/* Options are copied. */
int device_sums_new(const struct device_sums_options *options, struct device_sums **ret_sums, struct error *error);
/* Adds what each device will allocate, for what comes in from others. Graphs may be those that
 * only plan. */
void device_sums_memory_plan(const struct device_sums_options *options, struct memory_plans *plans);
/* At most so many bytes come in with a part, whichever of the devices it is. */
int64_t device_sums_incoming(const struct device_sums_options *options);
/* Frees the sums. Nothing may be under way. */
void device_sums_free(struct device_sums *sums);

/* Queues the sums of a step behind its passes, which are under way. */
int device_sums_start(struct device_sums *sums, struct crew_communicator *crew, const struct replica_set *set,
                      struct error *error);
/* Likewise of a vector that each rank's lone device contributes, in place; nothing else touches
 * it by then. */
int device_sums_start_vector(struct device_sums *sums, struct crew_communicator *crew, float *vector,
                             struct error *error);
/* Likewise of all its contributions, as many as it has by the tree; the sum comes to lie in the
 * first. */
int device_sums_start_vectors(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                              struct error *error);
/* With a plan: what the owners have of a vector, which each device of this process has, goes to
 * those who have not summed it. */
int device_sums_start_gather(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error);
/* Of a lone process: what its first device has of a vector, which each of them has, goes to the
 * others. Nothing else touches theirs by then. */
int device_sums_start_spread(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error);
/* Waits until everything that was started is complete. The sums are in each device's first
 * contribution. */
int device_sums_wait(struct device_sums *sums, struct crew_communicator *crew, struct error *error);
/* After a failure and crew_communicator_end: waits until no memory is read or written any more. */
int device_sums_settle(struct device_sums *sums, struct error *error);

/* Consecutive buckets that go out together, so that each message is long enough. */
#define DEVICE_PART_ELEMENTS (2 << 20)
struct device_part {
    int64_t offset, elements;
    unsigned last; /* bucket */
};
/* Buckets lie side by side, from the end to the start. `ret_parts`: room for one a bucket;
 * returns how many. */
unsigned device_parts_plan(const struct graph_bucket *buckets, unsigned count, int64_t least,
                           struct device_part *ret_parts);

/* What of a part `owner` of `size` devices sums: [*ret_first, *ret_end), may be empty. */
void device_part_slice(int64_t elements, unsigned owner, unsigned size, int64_t *ret_first, int64_t *ret_end);

#endif
