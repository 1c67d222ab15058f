/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests whether the devices of one process copy to each other correctly.
 *
 * On some machines, direct copies between two devices corrupt data without an error. So each pair
 * is tested (device_reach) before the strategy or a library uses a direct path between them.
 */
#ifndef COXSWAIN_STRATEGY_DEVICE_PAIRS_H
#define COXSWAIN_STRATEGY_DEVICE_PAIRS_H

#include "worker/strategy/strategy.h"

/* Tests a pair in both directions. If a test fails, returns false and calls options->calls.on_warning
 * once for the pair; the two devices then copy through the host. A failed pair is reported only
 * once: later calls do not fail for it again. */
bool device_pair_try(const struct strategy_options *options, struct device *one, struct device *other);
/* Tests every pair of `devices`. Returns false if one or more pairs fail. */
bool device_pairs_try(const struct strategy_options *options, struct device *const *devices, unsigned count);

#endif
