/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is: waiting requests by flow (a job, a namespace). Within a flow first
 * come, first served; between flows one from each in turn (round robin), so that
 * one flow with a thousand requests does not delay another's only one by more
 * than the number of flows.
 */
#ifndef COXSWAIN_KUBE_CALL_QUEUE_H
#define COXSWAIN_KUBE_CALL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "operator/kube/hash_map.h"

struct call_flow;

/* Embedded in what waits; owned by the caller. */
struct call_ticket {
    struct call_flow *flow; /* NULL: not in the queue */
    struct call_ticket *previous, *next;
};

struct call_queue {
    struct hash_map flows;  /* name -> struct call_flow; only those that have something waiting */
    struct call_flow *turn; /* ring of flows; NULL when empty */
    size_t count;
};

void call_queue_init(struct call_queue *queue);
/* The queue must be empty. */
void call_queue_release(struct call_queue *queue);

/* `flow` is copied. */
void call_queue_push(struct call_queue *queue, const char *flow, struct call_ticket *ticket);
/* Whose turn it is, taken out; NULL when nothing waits. */
struct call_ticket *call_queue_pop(struct call_queue *queue);
/* Takes a ticket out of turn; one that does not wait is left alone. */
void call_queue_remove(struct call_queue *queue, struct call_ticket *ticket);

#endif
