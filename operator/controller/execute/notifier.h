/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends notifications (plan/notice.h) to the sink that the operator's administrator named, each as one
 * POST of a CloudEvent in structured mode. The sink is part of the command line and of nothing that a
 * user of the cluster can write, so no user can make the operator send requests elsewhere; redirects
 * are not followed.
 *
 * An answer of 2xx ends a notification. No answer, 408, 429 and 5xx are tried again after one second,
 * then twice as long each time, or later if Retry-After says so, but after a minute at most, until the
 * notification's time is over; those that have waited longest come first. Any other answer ends it at once. At most
 * NOTIFIER_QUEUE notifications wait; while there are so many, no other is accepted.
 */
#ifndef COXSWAIN_CONTROLLER_NOTIFIER_H
#define COXSWAIN_CONTROLLER_NOTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/http_client.h"
#include "operator/controller/plan/plan.h"

#define NOTIFIER_QUEUE 1024

struct notifier;

/* `key` as given to notifier_send. */
typedef void notifier_done(void *context, const char *key, const char *id, bool delivered);

struct notifier_options {
    const char *sink;      /* URL, http or https */
    int64_t retry_base_ms; /* 0: 1000 */
    notifier_done *done;   /* called from the loop, once for each notification that was queued */
    void *context;
};

/* Copies `options`. */
int notifier_new(struct event_loop *loop, const struct notifier_options *options, struct notifier **ret_notifier,
                 struct error *error);
/* Drops notifications that were not delivered, without calling `done`. NULL: does nothing. */
void notifier_free(struct notifier *notifier);

/* Queues a copy, with the job's key ("namespace/name"), unless a notification with the same id waits already. Returns false if the queue is
 * full. */
bool notifier_send(struct notifier *notifier, const char *key, const struct notice *notice);

/* Appends Prometheus text: coxswain_notifications_total{result}. */
void notifier_write_metrics(const struct notifier *notifier, struct buffer *out);

#endif
