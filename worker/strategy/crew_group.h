/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes the group by which the ranks of a world exchange data (a collective,
 * collective.h), and runs three small operations on it: a sum of a few words, a barrier and a
 * broadcast.
 *
 * A world is the crew as the chief has last announced it: the members, their ranks and a
 * generation number (member.h). Each generation has a group of its own. While the group is open,
 * the process's member aborts it as soon as its generation ends, for example because a peer is
 * lost (member_guard); operations under way then fail.
 */
#ifndef COXSWAIN_STRATEGY_CREW_GROUP_H
#define COXSWAIN_STRATEGY_CREW_GROUP_H

#include "worker/strategy/strategy.h"

/* Creates the group and connects it. *ret_group may be set even if connecting fails; the caller
 * must then close it with crew_group_close. */
int crew_group_open(const struct strategy_options *options, const struct world *world,
                    enum collective_algorithm algorithm, const struct collective_reduction *reduction,
                    struct collective **ret_group, struct error *error);
/* Frees the group and sets *group to NULL. Does nothing if *group is NULL. */
void crew_group_close(const struct strategy_options *options, struct collective **group);

/* Sums `words` over all ranks, in place. Where the reduction expects several contributions from
 * a rank, the others are zeros. The sum is exact in each place where at most one rank has a
 * value other than zero. */
int crew_group_sum(struct collective *group, float *words, size_t count, struct error *error);
/* Waits until every rank has called this function; a rank may first have to write to its disk. */
int crew_group_meet(struct collective *group, struct error *error);
/* Broadcasts `bytes` from rank `root` to all ranks. */
int crew_group_tell(struct collective *group, unsigned root, void *bytes, size_t length, struct error *error);

#endif
