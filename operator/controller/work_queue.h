/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues the jobs that the controller is to reconcile, now or at a later time, on its event loop. A
 * job is in the queue at most once; jobs are taken in the order in which they were added. A job is
 * not taken while requests of its last plan are in flight; if it is added meanwhile, it is queued
 * when those requests end. The queue borrows the entries: remove an entry before it is freed.
 */
#ifndef COXSWAIN_CONTROLLER_WORK_QUEUE_H
#define COXSWAIN_CONTROLLER_WORK_QUEUE_H

#include "common/event_loop.h"
#include "operator/controller/execute/job_entry.h"

struct work_queue;

/* Takes a job out of the queue. If it starts requests, it sets entry->executing, and work_queue_done or work_queue_failed must follow. */
typedef void work_take(void *context, struct job_entry *entry);

struct work_queue *work_queue_new(struct event_loop *loop, work_take *take, void *context);
void work_queue_free(struct work_queue *queue);
/* Sets a function that is called before each job is taken. While it returns false no job is taken;
 * it is called again every few milliseconds. */
typedef bool work_gate(void *context);
void work_queue_set_gate(struct work_queue *queue, work_gate *may_take);

void work_queue_add(struct work_queue *queue, struct job_entry *entry);
/* Adds the entry at a wall-clock time, unless an earlier time is set. Does nothing for
 * PLAN_NEVER. */
void work_queue_add_at(struct work_queue *queue, struct job_entry *entry, int64_t at_ms);
/* Call it for each entry after somebody has set the wall clock. Adds the entry now and cancels its
 * later time, which its next plan sets anew. */
void work_queue_clock_was_set(struct work_queue *queue, struct job_entry *entry);
/* Ends the execution of the entry's plan, after all requests succeeded. */
void work_queue_done(struct work_queue *queue, struct job_entry *entry);
/* Ends the execution of the entry's plan, after a request failed. The entry is added again after
 * WORK_RETRY_MS, doubled with each further failure in a row (up to a limit), but not doubled if the
 * job changed meanwhile. */
#define WORK_RETRY_MS 200
void work_queue_failed(struct work_queue *queue, struct job_entry *entry);
/* Removes the entry and cancels its timer. Call it before the entry is freed. */
void work_queue_remove(struct work_queue *queue, struct job_entry *entry);

size_t work_queue_depth(const struct work_queue *queue);

#endif
