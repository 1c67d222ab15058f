/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds schedules, the lists of sends, receives and additions by which a rank runs an all-reduce in steps
 * (schedule.h). Only schedule.c and schedule_hierarchical.c include this header.
 */
#ifndef COXSWAIN_COMM_SCHEDULE_PARTS_H
#define COXSWAIN_COMM_SCHEDULE_PARTS_H

#include "worker/comm/schedule.h"

/* Creates a schedule without steps; free it with schedule_free. */
struct schedule *schedule_new(unsigned parts);
/* Returns the range of all parts. */
struct part_range schedule_whole(const struct schedule *schedule);
/* Adds a temporary buffer for one range. Returns its number, for place_buffer. */
unsigned schedule_add_buffer(struct schedule *schedule, struct part_range range);
/* Begins a step; the functions below append to the current one. */
void schedule_begin_step(struct schedule *schedule);
void schedule_add_send(struct schedule *schedule, unsigned rank, struct place place, struct part_range range);
void schedule_add_receive(struct schedule *schedule, unsigned rank, struct place place, struct part_range range);
void schedule_add_addition(struct schedule *schedule, struct place into, struct place left, struct place right,
                           struct part_range range);

static inline struct place place_contribution(unsigned index)
{
    return (struct place){PLACE_CONTRIBUTION, index};
}

static inline struct place place_buffer(unsigned index)
{
    return (struct place){PLACE_BUFFER, index};
}

static inline struct place place_result(void)
{
    return (struct place){PLACE_RESULT, 0};
}

#endif
