/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller counts about itself, for Prometheus.
 */
#ifndef COXSWAIN_CONTROLLER_RECONCILE_METRICS_H
#define COXSWAIN_CONTROLLER_RECONCILE_METRICS_H

#include <stdint.h>

#include "common/buffer.h"

#define RECONCILE_BUCKETS 8

struct reconcile_metrics {
    uint64_t planned, failed, waited; /* waited: for the cache to show an own write */
    uint64_t buckets[RECONCILE_BUCKETS + 1];
    double seconds;
};

/* One plan took `ns`. */
void reconcile_metrics_observe(struct reconcile_metrics *metrics, int64_t ns);
int reconcile_metrics_write(const struct reconcile_metrics *metrics, struct buffer *out, struct error *error);

#endif
