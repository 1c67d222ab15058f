/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long a rank's steps take in a round of local steps (local_rounds.h), for the report to the other ranks,
 * from which the chief finds stragglers: the longest step, and the mean of the others. It does not report the sum,
 * because a sum over a long round would not fit the word in which a rank reports its time (strategy_vote_word).
 */
#ifndef COXSWAIN_STRATEGY_ROUND_PACE_H
#define COXSWAIN_STRATEGY_ROUND_PACE_H

#include <stdint.h>

struct round_pace {
    int64_t steps, total_ns, longest_ns;
};

void round_pace_add_step(struct round_pace *pace, int64_t ns);
/* Records that the process was stopped for `ns` while it waited for other ranks. This time
 * counts towards the longest and the total, but not as a step. */
void round_pace_add_freeze(struct round_pace *pace, int64_t ns);
/* Returns the mean of all steps except the longest. If there is only one step, returns the
 * total, which includes freezes. */
int64_t round_pace_mean_ns(const struct round_pace *pace);

#endif
