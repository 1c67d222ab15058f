/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds schedules, the lists of sends, receives and additions by which a rank runs an all-reduce in steps
 * (schedule.h). The functions here append to the step begun last. Only schedule.c and schedule_hierarchical.c include
 * this header.
 */
#ifndef COXSWAIN_COMM_SCHEDULE_PARTS_H
#define COXSWAIN_COMM_SCHEDULE_PARTS_H

#include "worker/comm/schedule.h"

struct schedule *schedule_new(unsigned parts);
struct part_range schedule_whole(const struct schedule *schedule);
unsigned schedule_add_slot(struct schedule *schedule, struct part_range range);
/* Add to the step begun last. */
void schedule_add_send(struct schedule *schedule, unsigned rank, struct place place, struct part_range range);
void schedule_add_receive(struct schedule *schedule, unsigned rank, struct place place, struct part_range range);
void schedule_add_addition(struct schedule *schedule, struct place into, struct place left, struct place right,
                           struct part_range range);
void schedule_begin_step(struct schedule *schedule);

static inline struct place place_contribution(unsigned index)
{
    return (struct place){PLACE_CONTRIBUTION, index};
}

static inline struct place place_slot(unsigned index)
{
    return (struct place){PLACE_SLOT, index};
}

static inline struct place place_result(void)
{
    return (struct place){PLACE_RESULT, 0};
}

#endif
