/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/cost/cost.h"

/* Each death stops the crew until its successor has the state of a peer, and costs a step at most. */
double cost_goodput_in_place(const struct cost_failures *failures, unsigned workers)
{
    return 1 / (1 + workers * failures->rate * (failures->recovery + failures->step));
}

/* Each death also costs half the time between two checkpoints. Young (1974): save + rate * interval^2 / 2 is least for
 * interval = sqrt(2 save / rate). */
double cost_goodput_restart(const struct cost_failures *failures, unsigned workers, double *ret_interval)
{
    double rate = workers * failures->rate, interval = sqrt(2 * failures->save / rate);
    if (interval < failures->save_least)
        interval = failures->save_least;
    *ret_interval = interval;
    return 1 / (1 + failures->save / interval + rate * (interval / 2 + failures->recovery));
}
