/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/schedule.h"

#include <math.h>

/* Returns the share of the full rate at `progress` (0 to 1) through the steps after the warm-up. */
static double decay(const struct optimizer_spec *spec, double progress)
{
    double end = isnan(spec->schedule.final_fraction) ? 0.0 : spec->schedule.final_fraction;
    switch (spec->schedule.type) {
    case SCHEDULE_LINEAR:
        return 1.0 - (1.0 - end) * progress;
    case SCHEDULE_COSINE:
        return end + (1.0 - end) * 0.5 * (1.0 + cos(3.141592653589793 * progress));
    case SCHEDULE_CONSTANT:
        break;
    }
    return 1.0;
}

double schedule_rate(const struct optimizer_spec *spec, int64_t step, int64_t total_steps)
{
    int64_t warmup = spec->schedule.warmup_steps == FIELD_UNSET ? 0 : spec->schedule.warmup_steps;
    if (step <= warmup)
        return spec->learning_rate * (double)step / (double)warmup;
    int64_t length = total_steps - warmup;
    double progress = length > 0 ? (double)(step - warmup) / (double)length : 1.0;
    return spec->learning_rate * decay(spec, progress < 1.0 ? progress : 1.0);
}
