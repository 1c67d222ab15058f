/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders waiting requests of the Kubernetes client (client.h) fairly between flows (a flow is a job or a namespace). Within a flow requests
 * leave in the order they came; between flows they leave round robin, one from each. A flow with a single request therefore waits for at
 * most one request of each other flow, however many requests those have. The caller owns the requests; the queue only links them.
 */
#ifndef COXSWAIN_KUBE_CALL_QUEUE_H
#define COXSWAIN_KUBE_CALL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "operator/kube/hash_map.h"

struct call_flow;

/* A place in the queue. Embedded in the caller's request, which owns it. */
struct call_ticket {
    struct call_flow *flow; /* NULL: not in the queue */
    struct call_ticket *previous, *next;
};

struct call_queue {
    struct hash_map flows;  /* name -> struct call_flow; only flows with waiting requests */
    struct call_flow *turn; /* the flow served next, in a ring of flows; NULL when empty */
    size_t count;
};

void call_queue_init(struct call_queue *queue);
/* The queue must be empty. */
void call_queue_release(struct call_queue *queue);

/* Appends `ticket` to its flow. The string `flow` is copied. */
void call_queue_push(struct call_queue *queue, const char *flow, struct call_ticket *ticket);
/* Removes and returns the ticket whose turn it is; NULL when the queue is empty. */
struct call_ticket *call_queue_pop(struct call_queue *queue);
/* Removes a ticket before its turn; does nothing when it is not in the queue. */
void call_queue_remove(struct call_queue *queue, struct call_ticket *ticket);

#endif
