/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of a crew as one group (device/communicator.h), made for each
 * generation beside its collective, which carries the group's name and says
 * whether peers are still there: whoever waits for a device that waits for a lost
 * one is told so by the coordinator, through the collective, and not by the
 * library. All workers have equally many devices; those of a lone process need no
 * collective.
 *
 * All ranks come to the same verdict on whether there is such a group. Without
 * one, and with collective Auto, gradients go through the host.
 */
#ifndef COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H
#define COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H

#include "worker/device/communicator.h"
#include "worker/strategy/strategy.h"

struct crew_communicator;

/* What options point to is borrowed. */
struct crew_communicator *crew_communicator_new(const struct strategy_options *options);
/* Every rank calls it once the group is connected; a lone process with none. Pairs of this process's devices are tried before the
 * first group (device_pairs.h), and where one fails this process takes part in none. Fails where there must be one and is not:
 * ERROR_CONFLICT when such ranks never can be a group, ERROR_DEVICE when they have tried. A lone device has one, which has
 * nothing to do. */
int crew_communicator_form(struct crew_communicator *crew, struct collective *group, const struct world *world,
                           struct error *error);
/* "gradients go", of peers "what a worker's own GPUs tell each other goes", of a Pipeline "what crosses between stages goes", or
 * "gradients of replicas go" where each worker has all stages on its devices (`stages`, 0: as many as there are devices in all): for
 * people. */
const char *crew_communicator_cargo(enum strategy_type type, unsigned stages, unsigned devices);
bool crew_communicator_is_there(const struct crew_communicator *crew);
/* This process takes part in none from now on: what the library does between its devices would spoil what they copy to each other.
 * Where the caller has tried pairs itself, which then do not fail again. */
void crew_communicator_avoid(struct crew_communicator *crew);
/* One of this process's devices, where there is such a group, for a thread of its own: where it is the only one of the calls below,
 * made while other threads make theirs. Borrowed, and the same each time; nobody is in a call when the whole is ended. */
struct crew_communicator *crew_communicator_part(struct crew_communicator *crew, unsigned device);
/* Of parts: a step is done, so that failures before it do not count any more. Fine for NULL. */
void crew_communicator_note_step(struct crew_communicator *crew);
/* Before the group is closed, which is broken off: an abort may take until peers have called theirs, and they hear of it by the group
 * at once. Whatever is under way is ended. Fine when there is none. ERROR_TIMEOUT: communicator_abort's. */
int crew_communicator_end(struct crew_communicator *crew, struct error *error);
/* After crew_communicator_end. */
void crew_communicator_free(struct crew_communicator *crew);

/* Puts them on the streams, one a device; what is launched there next comes behind them. `count` may be 0. */
int crew_communicator_queue(struct crew_communicator *crew, struct device_stream *const *streams,
                            const struct communicator_operation *operations, unsigned count, struct error *error);
/* Before more is launched behind the event: until it is done, by which nothing is known to be right yet. A stream takes about 1,024
 * launches; the next one makes its caller wait, behind a lost peer for ever, and then nobody is there to end the communicator. */
int crew_communicator_keep_up(struct crew_communicator *crew, struct device_event *event, struct error *error);
/* Until the event is done, and nothing has gone wrong in what it stands behind. */
int crew_communicator_await(struct crew_communicator *crew, struct device_event *event, struct error *error);

/* How long this process stood still while it waited here, since the last call (collective_take_frozen_ns). Fine for NULL: not at all. */
int64_t crew_communicator_take_frozen_ns(struct crew_communicator *crew);

/* What each rank says of a device of its own. */
struct crew_device {
    struct communicator_standing standing;
    uint64_t machine;
};
/* Whether they can be a group, rank by rank `each` of them; else appends why not. */
bool crew_devices_fit(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                      unsigned size, struct buffer *why);

#endif
