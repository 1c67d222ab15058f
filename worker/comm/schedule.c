/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

/* ---------------------------------------------------------------- building */

static struct place place_contribution(unsigned index)
{
    return (struct place){PLACE_CONTRIBUTION, index};
}

static struct place place_buffer(unsigned index)
{
    return (struct place){PLACE_BUFFER, index};
}

static struct place place_result(void)
{
    return (struct place){PLACE_RESULT, 0};
}

static struct schedule *new_schedule(unsigned parts)
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

static struct part_range all_parts(const struct schedule *schedule)
{
    return (struct part_range){0, schedule->parts};
}

/* Begins a step; the functions below append to the current one. */
static void begin_step(struct schedule *schedule)
{
    schedule->steps++;
}

/* Adds a temporary buffer for one range. Returns its number, for place_buffer. */
static unsigned add_buffer(struct schedule *schedule, struct part_range range)
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

static void add_send(struct schedule *schedule, unsigned rank, struct place place, struct part_range range)
{
    append_frame(&schedule->sends, &schedule->send_count,
                 (struct schedule_frame){.step = schedule->steps - 1, .rank = rank, .place = place, .range = range});
}

static void add_receive(struct schedule *schedule, unsigned rank, struct place place, struct part_range range)
{
    append_frame(&schedule->receives, &schedule->receive_count,
                 (struct schedule_frame){.step = schedule->steps - 1, .rank = rank, .place = place, .range = range});
}

static void add_addition(struct schedule *schedule, struct place into, struct place left, struct place right,
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
    struct schedule *schedule = new_schedule(size);
    unsigned next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (unsigned step = 0; step + 1 < size; step++) {
        struct part_range out = part((rank + size - step) % size), in = part((before + size - step) % size);
        begin_step(schedule);
        unsigned buffer = add_buffer(schedule, in);
        add_send(schedule, next, step == 0 ? place_contribution(0) : place_result(), out);
        add_receive(schedule, before, place_buffer(buffer), in);
        add_addition(schedule, place_result(), place_contribution(0), place_buffer(buffer), in);
    }
    for (unsigned step = 0; step + 1 < size; step++) {
        begin_step(schedule);
        add_send(schedule, next, place_result(), part((rank + 1 + size - step) % size));
        add_receive(schedule, before, place_result(), part((rank + size - step) % size));
    }
    return schedule;
}

/* ---------------------------------------------------------------- pairs */

struct schedule *schedule_doubling(unsigned rank, unsigned size)
{
    struct schedule *schedule = new_schedule(1);
    struct place sum = place_contribution(0);
    for (unsigned distance = 1; distance < size; distance *= 2, sum = place_result()) {
        begin_step(schedule);
        unsigned buffer = add_buffer(schedule, part(0));
        add_send(schedule, rank ^ distance, sum, part(0));
        add_receive(schedule, rank ^ distance, place_buffer(buffer), part(0));
        add_addition(schedule, place_result(), sum, place_buffer(buffer), part(0));
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
    struct schedule *schedule = new_schedule(size);
    struct part_range given[32], own = {0, size};
    struct place sum = place_contribution(0);
    unsigned level = 0;
    for (unsigned distance = 1; distance < size; distance *= 2, level++, sum = place_result()) {
        split(own, (rank & distance) != 0, &own, &given[level]);
        begin_step(schedule);
        unsigned buffer = add_buffer(schedule, own);
        add_send(schedule, rank ^ distance, sum, given[level]);
        add_receive(schedule, rank ^ distance, place_buffer(buffer), own);
        add_addition(schedule, place_result(), sum, place_buffer(buffer), own);
    }
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
        level--;
        begin_step(schedule);
        add_send(schedule, rank ^ distance, place_result(), own);
        add_receive(schedule, rank ^ distance, place_result(), given[level]);
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

/* ---------------------------------------------------------------- hierarchical */

/* All ranks' contributions are inputs, numbered by rank; a sum keeps the number of its leftmost input. */
struct hierarchy {
    struct schedule *schedule;
    const struct collective_reduction *reduction;
    const unsigned *nodes;
    unsigned rank, size;
    unsigned leaders[CREW_SIZE_MAX], leader_count; /* the first rank of each node */
    unsigned input_count;
    unsigned *owners;     /* rank that put the input in */
    bool *is_sum;         /* of its own node: the sum is to be sent on under this number */
    bool *merged;         /* merge i is made within a node */
    struct place *places; /* where this rank has the input, or the sum that it began */
};

static unsigned leader_of(const struct hierarchy *hierarchy, unsigned rank)
{
    unsigned leader = 0;
    while (hierarchy->nodes[leader] != hierarchy->nodes[rank])
        leader++;
    return leader;
}

static void number_inputs(struct hierarchy *hierarchy)
{
    for (unsigned rank = 0; rank < hierarchy->size; rank++) {
        if (leader_of(hierarchy, rank) == rank)
            hierarchy->leaders[hierarchy->leader_count++] = rank;
        hierarchy->input_count += hierarchy->reduction->contributions[rank];
    }
    hierarchy->owners = memory_allocate(hierarchy->input_count, sizeof(*hierarchy->owners));
    hierarchy->is_sum = memory_allocate(hierarchy->input_count, sizeof(*hierarchy->is_sum));
    hierarchy->merged = memory_allocate(hierarchy->input_count, sizeof(*hierarchy->merged));
    hierarchy->places = memory_allocate(hierarchy->input_count, sizeof(*hierarchy->places));
    for (unsigned rank = 0, input = 0; rank < hierarchy->size; rank++)
        for (unsigned i = 0; i < hierarchy->reduction->contributions[rank]; i++, input++)
            hierarchy->owners[input] = rank;
}

/* A merge is made within a node when both sums are whole there; else both go to the level between nodes. */
static void divide_merges(struct hierarchy *hierarchy)
{
    SCOPED_FREE bool *blocked = memory_allocate(hierarchy->input_count, sizeof(*blocked));
    for (unsigned i = 0; i < hierarchy->input_count; i++)
        hierarchy->is_sum[i] = true;
    for (unsigned i = 0; i + 1 < hierarchy->input_count; i++) {
        struct reduction_merge merge = hierarchy->reduction->merges[i];
        bool near = hierarchy->nodes[hierarchy->owners[merge.into]] == hierarchy->nodes[hierarchy->owners[merge.from]];
        hierarchy->merged[i] = near && !blocked[merge.into] && !blocked[merge.from];
        if (hierarchy->merged[i])
            hierarchy->is_sum[merge.from] = false;
        else
            blocked[merge.into] = true;
    }
}

/* Adds two sums over `range` that this rank has; where the left one may be overwritten, it is. */
static void merge_here(struct hierarchy *hierarchy, struct reduction_merge merge, struct part_range range, bool last)
{
    struct place left = hierarchy->places[merge.into], into = left;
    if (last)
        into = place_result();
    else if (left.kind != PLACE_BUFFER)
        into = place_buffer(add_buffer(hierarchy->schedule, range));
    add_addition(hierarchy->schedule, into, left, hierarchy->places[merge.from], range);
    hierarchy->places[merge.into] = into;
}

static void merge_all(struct hierarchy *hierarchy, bool within_node, struct part_range range)
{
    unsigned count = hierarchy->input_count - 1;
    for (unsigned i = 0; i < count; i++) {
        struct reduction_merge merge = hierarchy->reduction->merges[i];
        bool ours = hierarchy->nodes[hierarchy->owners[merge.into]] == hierarchy->nodes[hierarchy->rank];
        if (hierarchy->merged[i] == within_node && (ours || !within_node))
            merge_here(hierarchy, merge, range, i + 1 == count);
    }
}

/* Every member's contributions to the node's leader. */
static void gather(struct hierarchy *hierarchy, unsigned leader)
{
    struct schedule *schedule = hierarchy->schedule;
    unsigned own = 0;
    begin_step(schedule);
    for (unsigned input = 0; input < hierarchy->input_count; input++) {
        unsigned owner = hierarchy->owners[input];
        if (owner == hierarchy->rank) {
            hierarchy->places[input] = place_contribution(own++);
            if (leader != owner)
                add_send(schedule, leader, hierarchy->places[input], all_parts(schedule));
        } else if (leader == hierarchy->rank && leader_of(hierarchy, owner) == leader) {
            hierarchy->places[input] = place_buffer(add_buffer(schedule, all_parts(schedule)));
            add_receive(schedule, owner, hierarchy->places[input], all_parts(schedule));
        }
    }
    if (leader == hierarchy->rank)
        merge_all(hierarchy, true, all_parts(schedule));
}

/* Each leader's sums, part by part, to the leader that owns the part; what it makes of them, to all leaders. */
static void exchange(struct hierarchy *hierarchy)
{
    struct schedule *schedule = hierarchy->schedule;
    unsigned self = 0;
    while (hierarchy->leaders[self] != hierarchy->rank)
        self++;
    struct part_range own = {self, self + 1};
    begin_step(schedule);
    for (unsigned i = 0; i < hierarchy->leader_count; i++) {
        for (unsigned input = 0; input < hierarchy->input_count; input++) {
            unsigned leader = leader_of(hierarchy, hierarchy->owners[input]);
            if (!hierarchy->is_sum[input] || hierarchy->leaders[i] == hierarchy->rank)
                continue;
            if (leader == hierarchy->rank) {
                add_send(schedule, hierarchy->leaders[i], hierarchy->places[input], (struct part_range){i, i + 1});
            } else if (leader == hierarchy->leaders[i]) {
                hierarchy->places[input] = place_buffer(add_buffer(schedule, own));
                add_receive(schedule, leader, hierarchy->places[input], own);
            }
        }
    }
    merge_all(hierarchy, false, own);
    begin_step(schedule);
    for (unsigned i = 0; i < hierarchy->leader_count; i++) {
        if (i == self)
            continue;
        add_send(schedule, hierarchy->leaders[i], place_result(), own);
        add_receive(schedule, hierarchy->leaders[i], place_result(), (struct part_range){i, i + 1});
    }
}

static void give_back(struct hierarchy *hierarchy, unsigned leader)
{
    struct schedule *schedule = hierarchy->schedule;
    begin_step(schedule);
    if (leader != hierarchy->rank)
        add_receive(schedule, leader, place_result(), all_parts(schedule));
    for (unsigned rank = 0; rank < hierarchy->size && leader == hierarchy->rank; rank++)
        if (rank != leader && leader_of(hierarchy, rank) == leader)
            add_send(schedule, rank, place_result(), all_parts(schedule));
}

struct schedule *schedule_hierarchical(unsigned rank, unsigned size, const unsigned *nodes,
                                       const struct collective_reduction *reduction)
{
    struct hierarchy hierarchy = {.reduction = reduction, .nodes = nodes, .rank = rank, .size = size};
    number_inputs(&hierarchy);
    divide_merges(&hierarchy);
    hierarchy.schedule = new_schedule(hierarchy.leader_count);
    unsigned leader = leader_of(&hierarchy, rank);
    gather(&hierarchy, leader);
    if (leader == rank && hierarchy.leader_count > 1)
        exchange(&hierarchy);
    give_back(&hierarchy, leader);
    free(hierarchy.owners);
    free(hierarchy.is_sum);
    free(hierarchy.merged);
    free(hierarchy.places);
    return hierarchy.schedule;
}
