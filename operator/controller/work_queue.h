/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs to look at, each at most once in the queue, in the order they came;
 * and which later. While a job's writes are under way it is not looked at; what
 * happens meanwhile brings it back afterwards.
 */
#ifndef COXSWAIN_CONTROLLER_WORK_QUEUE_H
#define COXSWAIN_CONTROLLER_WORK_QUEUE_H

#include "common/event_loop.h"
#include "operator/controller/execute/job_entry.h"

struct work_queue;

typedef void work_take(void *context, struct job_entry *entry);

struct work_queue *work_queue_new(struct event_loop *loop, work_take *take, void *context);
void work_queue_free(struct work_queue *queue);
/* Nothing is taken while `may_take` says no; it is asked again every few milliseconds. */
typedef bool work_gate(void *context);
void work_queue_set_gate(struct work_queue *queue, work_gate *may_take);

void work_queue_add(struct work_queue *queue, struct job_entry *entry);
/* At a time of the wall clock, unless an earlier one is set; PLAN_NEVER: nothing. */
void work_queue_add_at(struct work_queue *queue, struct job_entry *entry, int64_t at_ms);
/* Looked at again, and what was set for later is set anew by that look: the clock is another. */
void work_queue_clock_set(struct work_queue *queue, struct job_entry *entry);
/* The entry's writes are done. */
void work_queue_done(struct work_queue *queue, struct job_entry *entry);
/* They are answered, not all of them well: it is looked at again after WORK_RETRY_MS, doubled with each further failure
 * in a row, unless something changed meanwhile. */
#define WORK_RETRY_MS 200
void work_queue_failed(struct work_queue *queue, struct job_entry *entry);
/* Before an entry is freed. */
void work_queue_remove(struct work_queue *queue, struct job_entry *entry);

size_t work_queue_depth(const struct work_queue *queue);

#endif
