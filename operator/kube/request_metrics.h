/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the requests that the Kubernetes client (client.h) sends, their durations and retries, and writes the counts for the operator's
 * /metrics (Prometheus).
 */
#ifndef COXSWAIN_KUBE_REQUEST_METRICS_H
#define COXSWAIN_KUBE_REQUEST_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

/* Upper bounds of the buckets in seconds; the last bucket has no bound. */
#define REQUEST_METRICS_BOUNDS                                                                                         \
    {                                                                                                                  \
        0.005, 0.025, 0.1, 0.5, 1, 5, 30                                                                               \
    }
#define REQUEST_METRICS_BUCKETS 8

struct request_count {
    const char *verb; /* a constant */
    char *resource;
    int code; /* HTTP status; 0: no answer */
    uint64_t count;
};

struct request_duration {
    const char *verb;
    uint64_t buckets[REQUEST_METRICS_BUCKETS]; /* not cumulative */
    uint64_t count;
    double sum_seconds;
};

struct request_metrics {
    struct request_count *counts;
    size_t counts_used;
    struct request_duration *durations;
    size_t durations_used;
    uint64_t retries;
};

void request_metrics_init(struct request_metrics *metrics);
void request_metrics_release(struct request_metrics *metrics);

/* Counts one request. Verbs and resources come from our own code, so the table stays small. */
void request_metrics_add(struct request_metrics *metrics, const char *verb, const char *resource, int code,
                         double seconds);

/* Appends Prometheus' text format. */
int request_metrics_write(const struct request_metrics *metrics, size_t pending, struct buffer *out,
                          struct error *error);

#endif
