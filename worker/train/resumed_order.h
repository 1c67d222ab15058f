/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of an epoch's examples depends on the seed and on how many there are
 * (data/sampler.h). Whoever goes on in the midst of an epoch needs both as they
 * were, or some examples would be seen twice in it and others never. The batch may change.
 */
#ifndef COXSWAIN_TRAIN_RESUMED_ORDER_H
#define COXSWAIN_TRAIN_RESUMED_ORDER_H

#include "common/error.h"
#include "worker/checkpoint/manifest.h"
#include "worker/data/sampler.h"

/* Into the manifest's `model`. */
void resumed_order_describe(struct json *model, const struct sampler *sampler, int64_t global_batch);
/* ERROR_INVALID, with what has changed; 0 at an epoch's beginning, whatever has. */
int resumed_order_check(const struct manifest *manifest, const struct sampler *sampler, struct error *error);
/* The global batch of its steps; 0: an earlier release, which did not tell, has written it. */
int64_t resumed_order_batch(const struct manifest *manifest);

#endif
