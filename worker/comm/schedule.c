/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/schedule.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/comm/schedule_parts.h"

/* ---------------------------------------------------------------- building */

struct schedule *schedule_new(unsigned parts)
{
    struct schedule *schedule = memory_allocate(1, sizeof(*schedule));
    schedule->parts = parts;
    return schedule;
}

void schedule_free(struct schedule *schedule)
{
    if (schedule == NULL)
        return;
    free(schedule->sends);
    free(schedule->receives);
    free(schedule->additions);
    free(schedule->buffers);
    free(schedule);
}

struct part_range schedule_whole(const struct schedule *schedule)
{
    return (struct part_range){0, schedule->parts};
}

void schedule_begin_step(struct schedule *schedule)
{
    schedule->steps++;
}

unsigned schedule_add_buffer(struct schedule *schedule, struct part_range range)
{
    schedule->buffers = memory_resize(schedule->buffers, schedule->buffer_count + 1, sizeof(*schedule->buffers));
    schedule->buffers[schedule->buffer_count] = range;
    return schedule->buffer_count++;
}

static void append_frame(struct schedule_frame **frames, unsigned *count, struct schedule_frame frame)
{
    for (unsigned i = 0; i < *count; i++)
        frame.number += (*frames)[i].rank == frame.rank;
    *frames = memory_resize(*frames, *count + 1, sizeof(**frames));
    (*frames)[(*count)++] = frame;
}

void schedule_add_send(struct schedule *schedule, unsigned rank, struct place place, struct part_range range)
{
    append_frame(&schedule->sends, &schedule->send_count,
                 (struct schedule_frame){.step = schedule->steps - 1, .rank = rank, .place = place, .range = range});
}

void schedule_add_receive(struct schedule *schedule, unsigned rank, struct place place, struct part_range range)
{
    append_frame(&schedule->receives, &schedule->receive_count,
                 (struct schedule_frame){.step = schedule->steps - 1, .rank = rank, .place = place, .range = range});
}

void schedule_add_addition(struct schedule *schedule, struct place into, struct place left, struct place right,
                           struct part_range range)
{
    schedule->additions =
        memory_resize(schedule->additions, schedule->addition_count + 1, sizeof(*schedule->additions));
    schedule->additions[schedule->addition_count++] =
        (struct schedule_addition){schedule->steps - 1, into, left, right, range};
}

/* ---------------------------------------------------------------- ring */

static struct part_range part(unsigned index)
{
    return (struct part_range){index, index + 1};
}

struct schedule *schedule_ring(unsigned rank, unsigned size)
{
    struct schedule *schedule = schedule_new(size);
    unsigned next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (unsigned step = 0; step + 1 < size; step++) {
        struct part_range out = part((rank + size - step) % size), in = part((before + size - step) % size);
        schedule_begin_step(schedule);
        unsigned buffer = schedule_add_buffer(schedule, in);
        schedule_add_send(schedule, next, step == 0 ? place_contribution(0) : place_result(), out);
        schedule_add_receive(schedule, before, place_buffer(buffer), in);
        schedule_add_addition(schedule, place_result(), place_contribution(0), place_buffer(buffer), in);
    }
    for (unsigned step = 0; step + 1 < size; step++) {
        schedule_begin_step(schedule);
        schedule_add_send(schedule, next, place_result(), part((rank + 1 + size - step) % size));
        schedule_add_receive(schedule, before, place_result(), part((rank + size - step) % size));
    }
    return schedule;
}

/* ---------------------------------------------------------------- pairs */

struct schedule *schedule_doubling(unsigned rank, unsigned size)
{
    struct schedule *schedule = schedule_new(1);
    struct place sum = place_contribution(0);
    for (unsigned distance = 1; distance < size; distance *= 2, sum = place_result()) {
        schedule_begin_step(schedule);
        unsigned buffer = schedule_add_buffer(schedule, part(0));
        schedule_add_send(schedule, rank ^ distance, sum, part(0));
        schedule_add_receive(schedule, rank ^ distance, place_buffer(buffer), part(0));
        schedule_add_addition(schedule, place_result(), sum, place_buffer(buffer), part(0));
    }
    return schedule;
}

/* The half of `range` that the rank keeps at that distance, and the one that its partner does. */
static void split(struct part_range range, bool upper, struct part_range *ret_own, struct part_range *ret_other)
{
    unsigned middle = (range.first + range.end) / 2;
    struct part_range halves[] = {{range.first, middle}, {middle, range.end}};
    *ret_own = halves[upper];
    *ret_other = halves[!upper];
}

struct schedule *schedule_halving(unsigned rank, unsigned size)
{
    struct schedule *schedule = schedule_new(size);
    struct part_range given[32], own = {0, size};
    struct place sum = place_contribution(0);
    unsigned level = 0;
    for (unsigned distance = 1; distance < size; distance *= 2, level++, sum = place_result()) {
        split(own, (rank & distance) != 0, &own, &given[level]);
        schedule_begin_step(schedule);
        unsigned buffer = schedule_add_buffer(schedule, own);
        schedule_add_send(schedule, rank ^ distance, sum, given[level]);
        schedule_add_receive(schedule, rank ^ distance, place_buffer(buffer), own);
        schedule_add_addition(schedule, place_result(), sum, place_buffer(buffer), own);
    }
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
        level--;
        schedule_begin_step(schedule);
        schedule_add_send(schedule, rank ^ distance, place_result(), own);
        schedule_add_receive(schedule, rank ^ distance, place_result(), given[level]);
        own.first = own.first < given[level].first ? own.first : given[level].first;
        own.end = own.end > given[level].end ? own.end : given[level].end;
    }
    return schedule;
}

static bool has_merge(const struct collective_reduction *reduction, unsigned count, unsigned into, unsigned from)
{
    for (unsigned i = 0; i < count; i++)
        if (reduction->merges[i].into == into && reduction->merges[i].from == from)
            return true;
    return false;
}

bool schedule_pairs_are_tree(unsigned size, const struct collective_reduction *reduction)
{
    if ((size & (size - 1)) != 0 || reduction->merges == NULL)
        return false;
    for (unsigned rank = 0; rank < size; rank++)
        if (reduction->contributions[rank] != 1)
            return false;
    for (unsigned distance = 1; distance < size; distance *= 2)
        for (unsigned into = 0; into < size; into += 2 * distance)
            if (!has_merge(reduction, size - 1, into, into + distance))
                return false;
    return true;
}
