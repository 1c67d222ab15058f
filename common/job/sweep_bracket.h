/* SPDX-License-Identifier: Apache-2.0
 *
 * Divides the trials of a sweep among the brackets of Hyperband (Li et al. 2018, "Hyperband: a novel bandit-based approach to
 * hyperparameter optimization"). Trials of bracket b are judged from rung b on, and only against each other: bracket 0 has many trials and
 * stops most of them early, the last one has few and lets them run longest. Of B brackets with reduction factor F, bracket b has
 * ceil(B / (B - b) * F^(B - 1 - b)) trials of a round, so that all brackets take about as many steps. Rounds follow each other until there
 * are no more trials. The bracket of a trial follows from its number.
 */
#ifndef COXSWAIN_JOB_SWEEP_BRACKET_H
#define COXSWAIN_JOB_SWEEP_BRACKET_H

#include <stdint.h>

/* Returns how many trials a round has, at least one bracket given; at most SWEEP_TRIALS_MAX + 1. */
int64_t sweep_round_size(int64_t brackets, int64_t factor);
/* Returns the bracket of a trial, from 0. */
int64_t sweep_bracket_of(int64_t brackets, int64_t factor, int64_t trial);

#endif
