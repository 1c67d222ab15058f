/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/request_metrics.h"

#include <string.h>

#include "common/memory.h"

static const double bounds[] = REQUEST_METRICS_BOUNDS;
_Static_assert(sizeof bounds / sizeof bounds[0] + 1 == REQUEST_METRICS_BUCKETS, "one bucket more than bounds");

void request_metrics_init(struct request_metrics *metrics)
{
    *metrics = (struct request_metrics){0};
}

void request_metrics_release(struct request_metrics *metrics)
{
    for (size_t i = 0; i < metrics->counts_used; i++)
        free(metrics->counts[i].resource);
    free(metrics->counts);
    free(metrics->durations);
    request_metrics_init(metrics);
}

static struct request_count *count_of(struct request_metrics *metrics, const char *verb, const char *resource, int code)
{
    for (size_t i = 0; i < metrics->counts_used; i++) {
        struct request_count *count = &metrics->counts[i];
        if (count->code == code && strcmp(count->verb, verb) == 0 && strcmp(count->resource, resource) == 0)
            return count;
    }
    metrics->counts = memory_resize(metrics->counts, metrics->counts_used + 1, sizeof *metrics->counts);
    struct request_count *added = &metrics->counts[metrics->counts_used++];
    *added = (struct request_count){.verb = verb, .resource = memory_copy_string(resource), .code = code};
    return added;
}

static struct request_duration *duration_of(struct request_metrics *metrics, const char *verb)
{
    for (size_t i = 0; i < metrics->durations_used; i++) {
        if (strcmp(metrics->durations[i].verb, verb) == 0)
            return &metrics->durations[i];
    }
    metrics->durations = memory_resize(metrics->durations, metrics->durations_used + 1, sizeof *metrics->durations);
    struct request_duration *added = &metrics->durations[metrics->durations_used++];
    *added = (struct request_duration){.verb = verb};
    return added;
}

void request_metrics_add(struct request_metrics *metrics, const char *verb, const char *resource, int code,
                         double seconds)
{
    count_of(metrics, verb, resource, code)->count++;
    struct request_duration *duration = duration_of(metrics, verb);
    size_t bucket = 0;
    while (bucket + 1 < REQUEST_METRICS_BUCKETS && seconds > bounds[bucket])
        bucket++;
    duration->buckets[bucket]++;
    duration->count++;
    duration->sum_seconds += seconds;
}

static void write_duration(const struct request_duration *duration, struct buffer *out)
{
    uint64_t cumulated = 0;
    for (size_t i = 0; i + 1 < REQUEST_METRICS_BUCKETS; i++) {
        cumulated += duration->buckets[i];
        buffer_format(out, "coxswain_kube_request_duration_seconds_bucket{verb=\"%s\",le=\"%g\"} %llu\n",
                      duration->verb, bounds[i], (unsigned long long)cumulated);
    }
    buffer_format(out,
                  "coxswain_kube_request_duration_seconds_bucket{verb=\"%s\",le=\"+Inf\"} %llu\n"
                  "coxswain_kube_request_duration_seconds_sum{verb=\"%s\"} %.6f\n"
                  "coxswain_kube_request_duration_seconds_count{verb=\"%s\"} %llu\n",
                  duration->verb, (unsigned long long)duration->count, duration->verb, duration->sum_seconds,
                  duration->verb, (unsigned long long)duration->count);
}

int request_metrics_write(const struct request_metrics *metrics, size_t pending, struct buffer *out,
                          struct error *error)
{
    buffer_format(out, "# HELP coxswain_kube_requests_total Requests to the API server by HTTP code (0: no answer).\n"
                       "# TYPE coxswain_kube_requests_total counter\n");
    for (size_t i = 0; i < metrics->counts_used; i++) {
        const struct request_count *count = &metrics->counts[i];
        buffer_format(out, "coxswain_kube_requests_total{verb=\"%s\",resource=\"%s\",code=\"%d\"} %llu\n", count->verb,
                      count->resource, count->code, (unsigned long long)count->count);
    }
    buffer_format(out, "# HELP coxswain_kube_request_duration_seconds Time from sending a request to its answer.\n"
                       "# TYPE coxswain_kube_request_duration_seconds histogram\n");
    for (size_t i = 0; i < metrics->durations_used; i++)
        write_duration(&metrics->durations[i], out);
    int written = buffer_format(out,
                                "# HELP coxswain_kube_retries_total Requests sent once more.\n"
                                "# TYPE coxswain_kube_retries_total counter\n"
                                "coxswain_kube_retries_total %llu\n"
                                "# HELP coxswain_kube_requests_pending Requests that wait or are on the wire.\n"
                                "# TYPE coxswain_kube_requests_pending gauge\n"
                                "coxswain_kube_requests_pending %zu\n",
                                (unsigned long long)metrics->retries, pending);
    return written < 0 ? error_set(error, ERROR_TOO_LARGE, "metrics longer than %zu bytes", out->ceiling) : 0;
}
