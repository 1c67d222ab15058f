/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks trials by their losses: the lowest comes first, of equal ones the trial with the lower number.
 */
#ifndef COXSWAIN_CONTROLLER_RANKED_TRIAL_H
#define COXSWAIN_CONTROLLER_RANKED_TRIAL_H

#include <stddef.h>
#include <stdint.h>

struct ranked_trial {
    double loss; /* not NAN */
    int64_t trial;
};

void ranked_trials_sort(struct ranked_trial *trials, size_t count);

#endif
