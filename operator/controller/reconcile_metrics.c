/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/reconcile_metrics.h"

#include <inttypes.h>

static const double bounds[RECONCILE_BUCKETS] = {0.00001, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.1, 1};

void reconcile_metrics_observe(struct reconcile_metrics *metrics, int64_t ns)
{
    double seconds = (double)ns / 1e9;
    unsigned bucket = 0;
    while (bucket < RECONCILE_BUCKETS && seconds > bounds[bucket])
        bucket++;
    metrics->buckets[bucket]++;
    metrics->seconds += seconds;
    metrics->planned++;
}

static void write_histogram(const struct reconcile_metrics *metrics, struct buffer *out)
{
    uint64_t below = 0;
    buffer_format(out, "# HELP coxswain_reconcile_duration_seconds Time to plan a job and issue its requests.\n"
                       "# TYPE coxswain_reconcile_duration_seconds histogram\n");
    for (unsigned i = 0; i < RECONCILE_BUCKETS; i++) {
        below += metrics->buckets[i];
        buffer_format(out, "coxswain_reconcile_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", bounds[i], below);
    }
    buffer_format(out, "coxswain_reconcile_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", metrics->planned);
    buffer_format(out, "coxswain_reconcile_duration_seconds_sum %.9f\n", metrics->seconds);
    buffer_format(out, "coxswain_reconcile_duration_seconds_count %" PRIu64 "\n", metrics->planned);
}

int reconcile_metrics_write(const struct reconcile_metrics *metrics, struct buffer *out, struct error *error)
{
    write_histogram(metrics, out);
    if (buffer_format(out,
                      "# HELP coxswain_reconciles_total Looks at a job, by what came of them.\n"
                      "# TYPE coxswain_reconciles_total counter\n"
                      "coxswain_reconciles_total{result=\"planned\"} %" PRIu64 "\n"
                      "coxswain_reconciles_total{result=\"failed\"} %" PRIu64 "\n"
                      "coxswain_reconciles_total{result=\"waited\"} %" PRIu64 "\n",
                      metrics->planned, metrics->failed, metrics->waited) < 0)
        return error_set(error, ERROR_TOO_LARGE, "the metrics do not fit into %zu bytes", out->ceiling);
    return 0;
}
