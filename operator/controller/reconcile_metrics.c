/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/reconcile_metrics.h"

#include <inttypes.h>

static const double bounds[DURATION_BUCKETS] = {0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005,
                                                0.01,    0.02,    0.05,    0.1,    0.2,    0.5,    1,     2,     5};

void durations_observe(struct durations *durations, int64_t ns)
{
    double seconds = (double)ns / 1e9;
    unsigned bucket = 0;
    while (bucket < DURATION_BUCKETS && seconds > bounds[bucket])
        bucket++;
    durations->buckets[bucket]++;
    durations->seconds += seconds;
    durations->count++;
}

static void write_histogram(const struct durations *durations, const char *name, const char *help, struct buffer *out)
{
    uint64_t below = 0;
    buffer_format(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (unsigned i = 0; i < DURATION_BUCKETS; i++) {
        below += durations->buckets[i];
        buffer_format(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, bounds[i], below);
    }
    buffer_format(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, durations->count);
    buffer_format(out, "%s_sum %.9f\n", name, durations->seconds);
    buffer_format(out, "%s_count %" PRIu64 "\n", name, durations->count);
}

int reconcile_metrics_write(const struct reconcile_metrics *metrics, struct buffer *out, struct error *error)
{
    write_histogram(&metrics->planning, "coxswain_reconcile_duration_seconds",
                    "Time to plan a job and issue its requests.", out);
    write_histogram(&metrics->watch_lag, "coxswain_watch_lag_seconds",
                    "Time from the answer to a status write until the watch shows it (a sample of the writes).", out);
    if (buffer_format(out,
                      "# HELP coxswain_reconciles_total Reconciles of jobs, by result.\n"
                      "# TYPE coxswain_reconciles_total counter\n"
                      "coxswain_reconciles_total{result=\"planned\"} %" PRIu64 "\n"
                      "coxswain_reconciles_total{result=\"failed\"} %" PRIu64 "\n"
                      "coxswain_reconciles_total{result=\"waited\"} %" PRIu64 "\n",
                      metrics->planning.count, metrics->failed, metrics->waited) < 0)
        return error_set(error, ERROR_TOO_LARGE, "the metrics do not fit into %zu bytes", out->ceiling);
    return 0;
}
