/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/ranked_trial.h"

#include <stdlib.h>

static int by_loss(const void *one, const void *other)
{
    const struct ranked_trial *a = one, *b = other;
    if (a->loss != b->loss)
        return a->loss < b->loss ? -1 : 1;
    return (a->trial > b->trial) - (a->trial < b->trial);
}

void ranked_trials_sort(struct ranked_trial *trials, size_t count)
{
    qsort(trials, count, sizeof *trials, by_loss);
}
