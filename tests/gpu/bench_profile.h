/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step's time goes: every launch on a device is waited for and timed, by
 * operation and, where it multiplies, by shape. Beside others' work nothing is
 * waited for, so launches add up to more than a step takes.
 */
#ifndef COXSWAIN_TESTS_GPU_BENCH_PROFILE_H
#define COXSWAIN_TESTS_GPU_BENCH_PROFILE_H

#include "worker/device/device.h"

struct bench_profile;

/* Of all streams that the device makes from now on. One at a time in a process. */
struct bench_profile *bench_profile_new(struct device *device);
void bench_profile_free(struct bench_profile *profile);
/* Forgets what it has. */
void bench_profile_clear(struct bench_profile *profile);
/* A line for each operation and shape, those that took longest first: of `steps` steps, in each. `peak`: FLOP/s, 0: not known.
 * Returns the milliseconds of all in a step. */
double bench_profile_print(const struct bench_profile *profile, int steps, double peak);

#endif
