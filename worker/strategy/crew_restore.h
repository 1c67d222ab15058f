/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores a crew from a checkpoint when each rank holds a part of the training state (Pipeline, or a sharded
 * optimizer) and no live rank has some part: the chief (rank 0) chooses a checkpoint and restores its own part; then
 * the other ranks restore theirs from the same checkpoint.
 */
#ifndef COXSWAIN_STRATEGY_CREW_RESTORE_H
#define COXSWAIN_STRATEGY_CREW_RESTORE_H

#include "worker/strategy/strategy_table.h"

/* Restores this rank's part and waits until every rank has done so. Every rank must call it.
 * Until it succeeds, strategy->holds_state is false and the contents of the state must not be
 * used. */
int crew_restore_parts(struct strategy *strategy, struct collective *group, struct error *error);

#endif
