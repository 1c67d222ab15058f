/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums gradients from GPU to GPU, in the memory of the devices that computed them, through the crew's communicator
 * (crew_communicator.h): for one process, or for a crew whose workers have equally many devices. The strategies use it
 * in place of sums through the host. On each device, a separate stream waits for each part of the gradients
 * (consecutive buckets, which are sent together) to become final in the backward pass, so that sums overlap the pass.
 *
 * In the order of the reduction tree (reduction_tree.h), each device owns a slice of each part. All devices send their
 * contributions to a slice to its owner, which adds them in the tree's order and sends the sum to all. The result has
 * the same bits as on one device alone. With `in_any_order`, NCCL's all-reduce adds one sum from each device instead;
 * then the bits depend on the number of devices.
 *
 * Functions queue work and return; device_sums_wait waits for it.
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
    unsigned rank, size; /* of this process, among the processes that sum */
    unsigned first_rank,
        stride;      /* these processes are the crew's ranks first_rank, first_rank + stride, …; 0: all ranks */
    unsigned shards; /* leaves of the tree, divided among the ranks, and within a rank among its devices */
    int64_t
        elements; /* length of the vectors; 0: they are gradients, summed in parts as the graph's buckets become final */
    bool in_any_order;
    /* NULL: every device gets all sums. With a plan, the tree's order is used, and a sum stays in the ranks that own or mirror its
     * shard, each time on the one device whose piece it is. Every rank has plan->devices devices. */
    const struct shard_plan *plan;
};

/* Options are copied. */
int device_sums_new(const struct device_sums_options *options, struct device_sums **ret_sums, struct error *error);
/* Adds what each device will allocate for data from other devices. Graphs may be without memory. */
void device_sums_memory_plan(const struct device_sums_options *options, struct memory_plans *plans);
/* Returns the most bytes that a device receives with one part, over all devices. */
int64_t device_sums_incoming(const struct device_sums_options *options);
/* Frees the sums. Nothing may be under way. */
void device_sums_free(struct device_sums *sums);

/* Queues the sums of a step behind its passes, which are under way. */
int device_sums_start(struct device_sums *sums, struct crew_communicator *crew, const struct replica_set *set,
                      struct error *error);
/* Queues the sum of one vector of each rank, in place. For ranks with one device. Nothing else may use the vector until it is
 * summed. */
int device_sums_start_vector(struct device_sums *sums, struct crew_communicator *crew, float *vector,
                             struct error *error);
/* Like device_sums_start_vector, for a rank that contributes several vectors, one for each of its subtrees (reduction_tree.h); the sum
 * is in the first. */
int device_sums_start_vectors(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                              struct error *error);
/* With a plan: queues copies of the owners' parts of a vector to all devices that did not sum these parts. `vectors`: the vector on each
 * device of this process. */
int device_sums_start_gather(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error);
/* For a process that trains alone: queues copies of the first device's vector to its other devices. Nothing else may use their vectors
 * until then. */
int device_sums_start_spread(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error);
/* Waits until everything that was started is complete. The sums are in each device's first
 * contribution. */
int device_sums_wait(struct device_sums *sums, struct crew_communicator *crew, struct error *error);
/* After a failure and crew_communicator_end: waits until no memory is read or written any more. */
int device_sums_settle(struct device_sums *sums, struct error *error);

/* Consecutive buckets that are sent together, so that messages are long. */
#define DEVICE_PART_ELEMENTS (2 << 20)
struct device_part {
    int64_t offset, elements;
    unsigned last; /* the index of its last bucket */
};
/* Groups buckets, which lie side by side from the end to the start, into parts of at least `least` elements, except the last. `ret_parts`
 * has room for one part a bucket. Returns the number of parts. */
unsigned device_parts_plan(const struct graph_bucket *buckets, unsigned count, int64_t least,
                           struct device_part *ret_parts);

/* Sets [*ret_first, *ret_end) to the slice of a part that device `owner` of `size` sums; may be empty. */
void device_part_slice(int64_t elements, unsigned owner, unsigned size, int64_t *ret_first, int64_t *ret_end);

#endif
