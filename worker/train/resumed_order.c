/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/resumed_order.h"

#define EXAMPLES "examples"
#define GLOBAL_BATCH "globalBatch"

void resumed_order_describe(struct json *model, const struct sampler *sampler, int64_t global_batch)
{
    json_set_integer(model, EXAMPLES, sampler->count);
    json_set_integer(model, GLOBAL_BATCH, global_batch);
}

int64_t resumed_order_batch(const struct manifest *manifest)
{
    return json_integer_at(manifest->model, GLOBAL_BATCH, 0);
}

static int refuse(const struct manifest *manifest, const char *what, int64_t then, int64_t now, struct error *error)
{
    return error_set(
        error, ERROR_INVALID,
        "it is within epoch %lld, and the order of its examples was drawn with %s %lld; with "
        "%lld it would differ, so that some examples would count twice and others never: go on as before, or "
        "use another checkpoint.path and init",
        (long long)manifest->data_epoch, what, (long long)then, (long long)now);
}

int resumed_order_check(const struct manifest *manifest, const struct sampler *sampler, struct error *error)
{
    int64_t count = json_integer_at(manifest->model, EXAMPLES, sampler->count); /* earlier releases did not tell */
    if (manifest->examples_consumed == 0)
        return 0;
    if (manifest->seed != (int64_t)sampler->seed)
        return refuse(manifest, "training.seed", manifest->seed, (int64_t)sampler->seed, error);
    if (count != sampler->count)
        return refuse(manifest, "a number of examples of", count, sampler->count, error);
    return 0;
}
