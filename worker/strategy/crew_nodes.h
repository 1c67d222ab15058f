/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which ranks of a crew run on the same machine, by comparing the boot IDs of their kernels.
 * MultiWorkerMirrored uses the result to form groups for the Hierarchical all-reduce (comm/schedule.h); the NCCL
 * communicator uses the boot ID to detect ranks that name the same GPU.
 */
#ifndef COXSWAIN_STRATEGY_CREW_NODES_H
#define COXSWAIN_STRATEGY_CREW_NODES_H

#include "worker/strategy/strategy.h"

/* Returns a hash of this machine's boot ID; 0 if the boot ID cannot be read. */
uint64_t crew_nodes_machine(void);

/* Sets ret_nodes[r] to the lowest rank on the machine of rank r. Every rank must call this
 * function at the same time. `machine` identifies this rank's machine; 0 means
 * crew_nodes_machine(). A rank whose machine is unknown counts as alone on its machine. */
int crew_nodes_find(struct strategy *strategy, uint64_t machine, unsigned ret_nodes[CREW_SIZE_MAX],
                    struct error *error);

#endif
