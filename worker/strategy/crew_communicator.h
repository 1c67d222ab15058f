/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the GPUs of a crew into one NCCL communicator (device/communicator.h), so that strategies can sum gradients and
 * send values from GPU to GPU. A crew here is all processes that train together; a process that trains alone can join
 * its own GPUs.
 *
 * A communicator is created for each generation (the crew from one change of its membership to the next), beside the
 * generation's collective (comm/collective.h). The collective carries the communicator's ID, and reports lost peers:
 * NCCL itself would wait for a lost peer for ever. All workers must have the same number of devices.
 *
 * All ranks agree on whether there is a communicator. If there is none and strategy.collective is
 * Auto, gradients go through the host.
 */
#ifndef COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H
#define COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H

#include "worker/device/communicator.h"
#include "worker/strategy/strategy.h"

struct crew_communicator;

/* Creates a crew without a communicator. `options` are copied; what they point to must outlive
 * the crew. */
struct crew_communicator *crew_communicator_new(const struct strategy_options *options);
/* Creates the communicator, if all devices can join one. Every rank must call it after `group`
 * is connected; a process that trains alone passes NULL. Before the first attempt, the pairs of
 * this process's devices are tested (device_pairs.h); if a pair fails, this process refuses to
 * join. Returns 0 without a communicator if NCCL is optional. If the job requires NCCL, fails
 * with ERROR_CONFLICT if these devices cannot form a communicator, ERROR_DEVICE if connecting
 * them failed. A single device in all counts as having one, which has nothing to do. */
int crew_communicator_form(struct crew_communicator *crew, struct collective *group, const struct world *world,
                           struct error *error);
/* Returns the start of a log message that says what goes by NCCL or through the host, such as
 * "gradients go". It depends on the strategy, and for a Pipeline on whether each worker has all
 * `stages` on its `devices` (0 stages: as many as there are devices in all). */
const char *crew_communicator_cargo(enum strategy_type type, unsigned stages, unsigned devices);
/* Returns whether there is a communicator, or a single device in all; false for NULL. */
bool crew_communicator_is_there(const struct crew_communicator *crew);
/* Keeps this process out of every communicator from now on, because direct copies between its
 * devices corrupt data. For a caller that has tested pairs itself: a later test would not fail
 * again. */
void crew_communicator_avoid(struct crew_communicator *crew);
/* Returns a view of the crew for one device of this process, so that a thread can use that
 * device while other threads use theirs. Requires a communicator. The view is borrowed and the
 * same at each call; no thread may be in a call on it when crew_communicator_end is called for
 * the crew. */
struct crew_communicator *crew_communicator_part(struct crew_communicator *crew, unsigned device);
/* Records that a step has succeeded, which resets the count of NCCL's failures in a row. Only
 * needed when views (crew_communicator_part) do the work. Does nothing for NULL. */
void crew_communicator_note_step(struct crew_communicator *crew);
/* Aborts the communicator and breaks off the group; operations under way end. Call it before the
 * group is closed: an abort may take until the peers abort, too, and they learn of it through
 * the group. Does nothing if there is no communicator. Fails with ERROR_TIMEOUT as
 * communicator_abort does. */
int crew_communicator_end(struct crew_communicator *crew, struct error *error);
/* Frees the crew. Call crew_communicator_end first. */
void crew_communicator_free(struct crew_communicator *crew);

/* Queues operations on the streams, one stream for each device, and waits until NCCL has taken
 * them over; work that is launched on these streams later runs after them. Does nothing if
 * `count` is 0. Fails if a peer is lost, NCCL fails, or the step's deadline passes. */
int crew_communicator_queue(struct crew_communicator *crew, struct device_stream *const *streams,
                            const struct communicator_operation *operations, unsigned count, struct error *error);
/* Waits until the event is done, without checking that the work before it succeeded. Call it
 * before launching more work: a stream holds about 1,024 launches, and the next launch blocks
 * its caller. If the queued work waits for a lost peer, the launch would block for ever, and this thread
 * could not abort the communicator. */
int crew_communicator_keep_up(struct crew_communicator *crew, struct device_event *event, struct error *error);
/* Waits until the event is done, and fails if work that was queued before the event has failed. */
int crew_communicator_await(struct crew_communicator *crew, struct device_event *event, struct error *error);

/* Returns for how many nanoseconds this process was suspended while it waited here, since the last call
 * (see collective_take_frozen_ns). Returns 0 for NULL. */
int64_t crew_communicator_take_frozen_ns(struct crew_communicator *crew);

/* What each rank announces about each of its devices. */
struct crew_device {
    struct communicator_capabilities capabilities;
    uint64_t machine;
};
/* Returns whether the devices can join one communicator; if not, appends the reason to `why`.
 * `devices` holds `each` devices for every rank, in rank order. */
bool crew_devices_fit(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                      unsigned size, struct buffer *why);

#endif
