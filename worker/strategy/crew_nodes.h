/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks of a crew run on one machine: they tell each other the boot that
 * their kernel is of.
 */
#ifndef COXSWAIN_STRATEGY_CREW_NODES_H
#define COXSWAIN_STRATEGY_CREW_NODES_H

#include "worker/strategy/strategy.h"

/* A number of this machine; 0 where its kernel has none. */
uint64_t crew_nodes_machine(void);

/* ret_nodes[r]: the lowest rank on the machine of rank r. Every rank calls it at the same time; `machine`: 0 for this one's own
 * number. */
int crew_nodes_find(struct strategy *strategy, uint64_t machine, unsigned ret_nodes[CREW_SIZE_MAX],
                    struct error *error);

#endif
