/* SPDX-License-Identifier: Apache-2.0
 *
 * The learning rate of a step: linear warm-up to the full rate, then constant,
 * linear or cosine (Loshchilov and Hutter 2017, one period) down to
 * `final_fraction` of it at the last step. A pure function.
 */
#ifndef COXSWAIN_OPTIMIZER_SCHEDULE_H
#define COXSWAIN_OPTIMIZER_SCHEDULE_H

#include <stdint.h>

#include "common/job/job_document.h"

/* `step` counts from 1 to `total_steps`; warm-up gives step/warmup_steps of the rate. */
double schedule_rate(const struct optimizer_spec *spec, int64_t step, int64_t total_steps);

#endif
