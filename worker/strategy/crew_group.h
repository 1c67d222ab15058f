/* SPDX-License-Identifier: Apache-2.0
 *
 * The collective of a world: made for each generation, guarded by the member, so
 * that a lost peer ends whatever it is at.
 */
#ifndef COXSWAIN_STRATEGY_CREW_GROUP_H
#define COXSWAIN_STRATEGY_CREW_GROUP_H

#include "worker/strategy/strategy.h"

/* Makes the group and connects it. *ret_group is set as soon as there is one, also when connecting it fails: crew_group_close. */
int crew_group_open(const struct strategy_options *options, const struct world *world,
                    enum collective_algorithm algorithm, const struct collective_reduction *reduction,
                    struct collective **ret_group, struct error *error);
/* Sets *group to NULL; fine when it is. */
void crew_group_close(const struct strategy_options *options, struct collective **group);

/* Adds `words` over all ranks, in place: what a rank puts in is its own and, where the reduction asks for more contributions,
 * zeros. Exact where at most one rank has another value than zero in a place. */
int crew_group_sum(struct collective *group, float *words, size_t count, struct error *error);
/* Returns when every rank has called it, however long one of them is at its disk. */
int crew_group_meet(struct collective *group, struct error *error);
/* From rank `root` to everybody. */
int crew_group_tell(struct collective *group, unsigned root, void *bytes, size_t length, struct error *error);

#endif
