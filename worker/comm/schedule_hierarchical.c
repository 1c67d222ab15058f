/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/schedule.h"
#include "worker/comm/schedule_parts.h"

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
        into = place_buffer(schedule_add_buffer(hierarchy->schedule, range));
    schedule_add_addition(hierarchy->schedule, into, left, hierarchy->places[merge.from], range);
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
    schedule_begin_step(schedule);
    for (unsigned input = 0; input < hierarchy->input_count; input++) {
        unsigned owner = hierarchy->owners[input];
        if (owner == hierarchy->rank) {
            hierarchy->places[input] = place_contribution(own++);
            if (leader != owner)
                schedule_add_send(schedule, leader, hierarchy->places[input], schedule_whole(schedule));
        } else if (leader == hierarchy->rank && leader_of(hierarchy, owner) == leader) {
            hierarchy->places[input] = place_buffer(schedule_add_buffer(schedule, schedule_whole(schedule)));
            schedule_add_receive(schedule, owner, hierarchy->places[input], schedule_whole(schedule));
        }
    }
    if (leader == hierarchy->rank)
        merge_all(hierarchy, true, schedule_whole(schedule));
}

/* Each leader's sums, part by part, to the leader that owns the part; what it makes of them, to all leaders. */
static void exchange(struct hierarchy *hierarchy)
{
    struct schedule *schedule = hierarchy->schedule;
    unsigned self = 0;
    while (hierarchy->leaders[self] != hierarchy->rank)
        self++;
    struct part_range own = {self, self + 1};
    schedule_begin_step(schedule);
    for (unsigned i = 0; i < hierarchy->leader_count; i++) {
        for (unsigned input = 0; input < hierarchy->input_count; input++) {
            unsigned leader = leader_of(hierarchy, hierarchy->owners[input]);
            if (!hierarchy->is_sum[input] || hierarchy->leaders[i] == hierarchy->rank)
                continue;
            if (leader == hierarchy->rank) {
                schedule_add_send(schedule, hierarchy->leaders[i], hierarchy->places[input],
                                  (struct part_range){i, i + 1});
            } else if (leader == hierarchy->leaders[i]) {
                hierarchy->places[input] = place_buffer(schedule_add_buffer(schedule, own));
                schedule_add_receive(schedule, leader, hierarchy->places[input], own);
            }
        }
    }
    merge_all(hierarchy, false, own);
    schedule_begin_step(schedule);
    for (unsigned i = 0; i < hierarchy->leader_count; i++) {
        if (i == self)
            continue;
        schedule_add_send(schedule, hierarchy->leaders[i], place_result(), own);
        schedule_add_receive(schedule, hierarchy->leaders[i], place_result(), (struct part_range){i, i + 1});
    }
}

static void give_back(struct hierarchy *hierarchy, unsigned leader)
{
    struct schedule *schedule = hierarchy->schedule;
    schedule_begin_step(schedule);
    if (leader != hierarchy->rank)
        schedule_add_receive(schedule, leader, place_result(), schedule_whole(schedule));
    for (unsigned rank = 0; rank < hierarchy->size && leader == hierarchy->rank; rank++)
        if (rank != leader && leader_of(hierarchy, rank) == leader)
            schedule_add_send(schedule, rank, place_result(), schedule_whole(schedule));
}

struct schedule *schedule_hierarchical(unsigned rank, unsigned size, const unsigned *nodes,
                                       const struct collective_reduction *reduction)
{
    struct hierarchy hierarchy = {.reduction = reduction, .nodes = nodes, .rank = rank, .size = size};
    number_inputs(&hierarchy);
    divide_merges(&hierarchy);
    hierarchy.schedule = schedule_new(hierarchy.leader_count);
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
