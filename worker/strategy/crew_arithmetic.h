/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes all devices of this process compute with the arithmetic (instruction set) on which the crew has agreed
 * (coordination/arithmetic.h), so that every member produces the same bits. The strategies for several processes call
 * it after each agreement on a world (the crew's current members), before anything is computed in that world.
 *
 * A member that joins later may support only a lesser arithmetic; the whole crew then uses that one, and the bits of
 * the weights may differ from what the first crew would have produced.
 */
#ifndef COXSWAIN_STRATEGY_CREW_ARITHMETIC_H
#define COXSWAIN_STRATEGY_CREW_ARITHMETIC_H

#include "worker/strategy/strategy.h"

/* Sets the world's arithmetic on every device of this process; does nothing if the world names
 * none. If that changes the arithmetic, calls on_warning in a member that holds the training
 * state (its earlier steps used the other arithmetic), and on_notice in any other member. Fails
 * if a device cannot compute with it. */
int strategy_devices_set_arithmetic(const struct strategy_options *options, const struct world *world,
                                    struct error *error);

#endif
