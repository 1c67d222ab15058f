/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the reconciles of jobs and measures their durations, and the time until the watch shows a
 * status write, for Prometheus. controller.c fills in the numbers; reconcile_metrics_write appends
 * them to the text that the operator serves at /metrics.
 */
#ifndef COXSWAIN_CONTROLLER_RECONCILE_METRICS_H
#define COXSWAIN_CONTROLLER_RECONCILE_METRICS_H

#include <stdint.h>

#include "common/buffer.h"

#define DURATION_BUCKETS 18

struct durations {
    uint64_t buckets[DURATION_BUCKETS + 1], count;
    double seconds;
};

struct reconcile_metrics {
    struct durations planning, watch_lag;
    uint64_t failed, waited; /* waited: put off, because the cache did not show the operator's own last write yet */
};

void durations_observe(struct durations *durations, int64_t ns);
int reconcile_metrics_write(const struct reconcile_metrics *metrics, struct buffer *out, struct error *error);

#endif
