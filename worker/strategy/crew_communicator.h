/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of a crew as one group (device/communicator.h), made for each
 * generation beside its collective, which carries the group's name and says
 * whether peers are still there: whoever waits for a device that waits for a lost
 * one is told so by the coordinator, through the collective, and not by the
 * library.
 *
 * All ranks come to the same verdict on whether there is such a group. Without
 * one, and with collective Auto, gradients go through the host.
 */
#ifndef COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H
#define COXSWAIN_STRATEGY_CREW_COMMUNICATOR_H

#include "worker/device/communicator.h"
#include "worker/strategy/strategy.h"

struct crew_communicator;

/* Options are borrowed. */
struct crew_communicator *crew_communicator_new(const struct strategy_options *options);
/* Every rank calls it once the group is connected. Fails where there must be one and is not: ERROR_CONFLICT when such ranks never
 * can be a group, ERROR_DEVICE when they have tried. A crew of one has one, which has nothing to do. */
int crew_communicator_form(struct crew_communicator *crew, struct collective *group, const struct world *world,
                           struct error *error);
bool crew_communicator_is_there(const struct crew_communicator *crew);
/* Before the group is closed; whatever is under way is ended. Fine when there is none. ERROR_TIMEOUT: communicator_abort's. */
int crew_communicator_end(struct crew_communicator *crew, struct error *error);
/* After crew_communicator_end. */
void crew_communicator_free(struct crew_communicator *crew);

/* Puts them on the stream; what is launched there next comes behind them. `count` may be 0. */
int crew_communicator_queue(struct crew_communicator *crew, struct device_stream *stream,
                            const struct communicator_operation *operations, unsigned count, struct error *error);
/* Until the event is done, and nothing has gone wrong in what it stands behind. */
int crew_communicator_await(struct crew_communicator *crew, struct device_event *event, struct error *error);

/* What each rank says of itself. */
struct crew_device {
    struct communicator_standing standing;
    uint64_t machine;
};
/* Whether such ranks can be a group; else appends why not. */
bool crew_devices_fit(const struct crew_device *devices, const struct collective_peer *peers, unsigned size,
                      struct buffer *why);

#endif
