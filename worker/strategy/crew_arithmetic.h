/* SPDX-License-Identifier: Apache-2.0
 *
 * A crew's members compute with one arithmetic (coordination/arithmetic.h): when a
 * world has been agreed on, each has all its devices take it, before anything is
 * computed there. A later world may take a lesser one, which another member brings:
 * the weights' bits are then no longer those of the crew's first.
 */
#ifndef COXSWAIN_STRATEGY_CREW_ARITHMETIC_H
#define COXSWAIN_STRATEGY_CREW_ARITHMETIC_H

#include "worker/strategy/strategy.h"

/* All devices of this process take the world's. People are told when that is not the best that they have, and warned by whoever
 * holds the state when it is not what that was computed with. */
int strategy_devices_set_arithmetic(const struct strategy_options *options, const struct world *world,
                                    struct error *error);

#endif
