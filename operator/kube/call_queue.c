/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/call_queue.h"

#include "common/memory.h"

struct call_flow {
    char *name;
    struct call_ticket *first, *last;
    struct call_flow *previous, *next; /* ring */
};

void call_queue_init(struct call_queue *queue)
{
    *queue = (struct call_queue){0};
    hash_map_init(&queue->flows);
}

void call_queue_release(struct call_queue *queue)
{
    hash_map_release(&queue->flows, NULL);
}

/* Adds a flow at the end of the round, just before the flow that is next. */
static struct call_flow *flow_add(struct call_queue *queue, const char *name)
{
    struct call_flow *flow = memory_allocate(1, sizeof *flow);
    flow->name = memory_copy_string(name);
    if (queue->turn) {
        flow->next = queue->turn;
        flow->previous = queue->turn->previous;
        flow->previous->next = flow;
        flow->next->previous = flow;
    } else {
        flow->next = flow->previous = flow;
        queue->turn = flow;
    }
    hash_map_set(&queue->flows, name, flow);
    return flow;
}

static void flow_drop(struct call_queue *queue, struct call_flow *flow)
{
    if (queue->turn == flow)
        queue->turn = flow->next == flow ? NULL : flow->next;
    flow->previous->next = flow->next;
    flow->next->previous = flow->previous;
    hash_map_remove(&queue->flows, flow->name);
    free(flow->name);
    free(flow);
}

void call_queue_push(struct call_queue *queue, const char *name, struct call_ticket *ticket)
{
    struct call_flow *flow = hash_map_get(&queue->flows, name);
    if (flow == NULL)
        flow = flow_add(queue, name);
    *ticket = (struct call_ticket){.flow = flow, .previous = flow->last};
    if (flow->last)
        flow->last->next = ticket;
    else
        flow->first = ticket;
    flow->last = ticket;
    queue->count++;
}

void call_queue_remove(struct call_queue *queue, struct call_ticket *ticket)
{
    struct call_flow *flow = ticket->flow;
    if (flow == NULL)
        return;
    if (ticket->previous)
        ticket->previous->next = ticket->next;
    else
        flow->first = ticket->next;
    if (ticket->next)
        ticket->next->previous = ticket->previous;
    else
        flow->last = ticket->previous;
    *ticket = (struct call_ticket){0};
    queue->count--;
    if (flow->first == NULL)
        flow_drop(queue, flow);
}

struct call_ticket *call_queue_pop(struct call_queue *queue)
{
    struct call_flow *flow = queue->turn;
    if (flow == NULL)
        return NULL;
    struct call_ticket *ticket = flow->first;
    queue->turn = flow->next;
    call_queue_remove(queue, ticket);
    return ticket;
}
