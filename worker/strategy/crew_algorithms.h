/* SPDX-License-Identifier: Apache-2.0
 *
 * A crew's devices compute products and convolutions by one record
 * (device/algorithm_record.h): that of whoever the state comes from, who has trained
 * by it, or else of the chief. Each time a crew forms it is told to all, before
 * anything is computed. Where one of them cannot compute by it, nobody does: all go
 * by what their libraries take first.
 */
#ifndef COXSWAIN_STRATEGY_CREW_ALGORITHMS_H
#define COXSWAIN_STRATEGY_CREW_ALGORITHMS_H

#include "worker/device/algorithm_record.h"
#include "worker/strategy/strategy.h"

/* For base->world. Nothing where the job's crew has no GPUs. */
int crew_algorithms_agree(struct strategy *base, struct collective *group, struct error *error);

/* By all devices of a worker; an error leaves some with what they had. */
int crew_algorithms_take(const struct strategy_device *devices, unsigned count, const struct algorithm_record *record,
                         struct error *error);

#endif
