/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the learning rate of a step: linear warm-up to the full rate, then constant, linear or
 * cosine decay (Loshchilov and Hutter 2017, one period) to `final_fraction` of it at the last
 * step. A pure function of its arguments.
 */
#ifndef COXSWAIN_OPTIMIZER_SCHEDULE_H
#define COXSWAIN_OPTIMIZER_SCHEDULE_H

#include <stdint.h>

#include "common/job/job_document.h"

/* Returns the learning rate of `step`, which counts from 1 to `total_steps`. During warm-up it
 * is step / warmup_steps of the full rate. */
double schedule_rate(const struct optimizer_spec *spec, int64_t step, int64_t total_steps);

#endif
