/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/support.h"

static int check_strategy(const struct job_document *job, unsigned crew_size, struct error *error)
{
    enum strategy_type type = job->strategy.type;
    if (type != STRATEGY_ONE_DEVICE && type != STRATEGY_MULTI_WORKER_MIRRORED)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.type: %s is not in this worker yet; it trains OneDevice and MultiWorkerMirrored",
                         strategy_type_name(type));
    if (type == STRATEGY_ONE_DEVICE && crew_size != 1)
        return error_set(error, ERROR_INVALID, "strategy.type: OneDevice has one worker, but the crew has %u",
                         crew_size);
    return 0;
}

/* Auto and Ring are one here: chunks summed by their owners in the tree's order, with the bytes of a ring. */
static int check_collective(enum collective_type collective, struct error *error)
{
    if (collective == COLLECTIVE_AUTO || collective == COLLECTIVE_RING)
        return 0;
    return error_set(error, ERROR_UNSUPPORTED, "strategy.collective: this worker knows Auto and Ring; leave it out");
}

int support_check(const struct job_document *job, unsigned crew_size, struct error *error)
{
    if (check_strategy(job, crew_size, error) < 0 || check_collective(job->strategy.collective, error) < 0)
        return -1;
    if (job->training.precision != PRECISION_FLOAT32)
        return error_set(error, ERROR_UNSUPPORTED, "training.precision: this worker computes in float32 only");
    return 0;
}
