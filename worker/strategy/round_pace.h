/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a rank takes over the steps of a round, as the others are told: the
 * longest, and the mean of the others. Sums of a long round would not fit a word
 * (strategy_vote_word).
 */
#ifndef COXSWAIN_STRATEGY_ROUND_PACE_H
#define COXSWAIN_STRATEGY_ROUND_PACE_H

#include <stdint.h>

struct round_pace {
    int64_t steps, total_ns, longest_ns;
};

void round_pace_add_step(struct round_pace *pace, int64_t ns);
/* The process stood still while it waited for others: no step of this round is slower for it. */
void round_pace_add_freeze(struct round_pace *pace, int64_t ns);
/* Of all but the longest; of one step, what it took, a freeze with it. */
int64_t round_pace_mean_ns(const struct round_pace *pace);

#endif
