/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of one process that copy to each other, or leave it to a library: each
 * pair is tried (device_reach) before anything is left to its direct way, which on
 * some machines spoils what it copies without a word.
 */
#ifndef COXSWAIN_STRATEGY_DEVICE_PAIRS_H
#define COXSWAIN_STRATEGY_DEVICE_PAIRS_H

#include "worker/strategy/strategy.h"

/* Either way. False: it has failed, and they copy by way of the host from now on; options->on_warning is told in a line for both. Once:
 * what has failed is no failure any more. */
bool device_pair_try(const struct strategy_options *options, struct device *one, struct device *other);
/* Each of them with each other. False: for a pair or more. */
bool device_pairs_try(const struct strategy_options *options, struct device *const *devices, unsigned count);

#endif
