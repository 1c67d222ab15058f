/* SPDX-License-Identifier: Apache-2.0
 *
 * How a crew whose ranks hold a part of the state each starts: the chief chooses
 * a checkpoint, however long that takes; then each takes its own part of it.
 */
#ifndef COXSWAIN_STRATEGY_CREW_RESTORE_H
#define COXSWAIN_STRATEGY_CREW_RESTORE_H

#include "worker/strategy/strategy_table.h"

/* The state is fresh in every rank; what it holds is not to be relied on before. */
int crew_restore_parts(struct strategy *strategy, struct collective *group, struct error *error);

#endif
