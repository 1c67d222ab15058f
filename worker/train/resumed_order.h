/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a run which resumes within an epoch visits the examples in the same order. The order
 * depends on the seed and on the number of examples (data/sampler.h); if either changed, some
 * examples would be seen twice in the epoch and others never. The batch size may change.
 */
#ifndef COXSWAIN_TRAIN_RESUMED_ORDER_H
#define COXSWAIN_TRAIN_RESUMED_ORDER_H

#include "common/error.h"
#include "worker/checkpoint/manifest.h"
#include "worker/data/sampler.h"

/* Writes the number of examples and the global batch into the manifest's `model`. */
void resumed_order_describe(struct json *model, const struct sampler *sampler, int64_t global_batch);
/* Fails with ERROR_INVALID, naming what has changed, if the order of the resumed epoch would
 * differ. Always succeeds at the beginning of an epoch. */
int resumed_order_check(const struct manifest *manifest, const struct sampler *sampler, struct error *error);
/* Returns the global batch of the checkpoint's steps; 0 if an earlier release, which did not record
 * it, wrote the checkpoint. */
int64_t resumed_order_batch(const struct manifest *manifest);

#endif
