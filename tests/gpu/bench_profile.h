/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures where a step's time goes: every launch on a device is waited for and timed, by operation and, for products, by shape. Nothing
 * overlaps then, so the launches add up to more than a step takes.
 */
#ifndef COXSWAIN_TESTS_GPU_BENCH_PROFILE_H
#define COXSWAIN_TESTS_GPU_BENCH_PROFILE_H

#include "worker/device/device.h"

struct bench_profile;

/* Profiles all streams that the device makes from now on. At most one per process. */
struct bench_profile *bench_profile_new(struct device *device);
void bench_profile_free(struct bench_profile *profile);
/* Forgets all measurements. */
void bench_profile_clear(struct bench_profile *profile);
/* Prints a line for each operation and shape, per step of `steps`, those that took longest first. `peak`: FLOP/s; 0: unknown. Returns the
 * milliseconds of all operations in a step. */
double bench_profile_print(const struct bench_profile *profile, int steps, double peak);

#endif
