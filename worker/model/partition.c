/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/partition.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/model/graph_internal.h"

unsigned graph_layer_count(const struct graph *graph)
{
    return graph->node_count;
}

const char *graph_layer_name(const struct graph *graph, unsigned layer)
{
    return graph->nodes[layer].layer.name;
}

bool partition_is_given(const struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].layer.spec.device != FIELD_UNSET)
            return true;
    return false;
}

void partition_release(struct graph_partition *partition)
{
    free(partition->stage_of);
    free(partition->part_of);
    free(partition->stage_of_part);
    free(partition->depth);
    *partition = (struct graph_partition){0};
}

/* ---- parts */

/* Computes the level of each layer; the layers of one stage and level are a part. A layer's
 * level is that of its inputs, plus one if an input is on another stage; `least` raises it where
 * the order of a sum requires it. So a part reads only from parts of lower levels. */
static void find_levels(const struct graph *graph, const unsigned *stage_of, const unsigned *least, unsigned *level)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        level[i] = least[i];
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int before = graph->nodes[i].inputs[k];
            unsigned needed = before == MODEL_INPUT ? 0 : level[before] + (stage_of[before] != stage_of[i]);
            level[i] = level[i] < needed ? needed : level[i];
        }
    }
}

static unsigned find_part(const struct graph_partition *partition, const unsigned *level, unsigned stage,
                          unsigned stage_level)
{
    for (unsigned p = 0; p < partition->parts; p++)
        if (partition->stage_of_part[p] == stage && level[p] == stage_level)
            return p;
    return partition->parts;
}

/* Numbers the parts in the order of their levels, so that each reads only from lower numbers. */
static void number_parts(struct graph_partition *partition, const unsigned *level)
{
    unsigned highest = 0;
    SCOPED_FREE unsigned *part_level = memory_allocate(partition->layers, sizeof *part_level);
    for (unsigned i = 0; i < partition->layers; i++)
        highest = level[i] > highest ? level[i] : highest;
    partition->parts = 0;
    for (unsigned at = 0; at <= highest; at++)
        for (unsigned i = 0; i < partition->layers; i++) {
            if (level[i] != at)
                continue;
            unsigned part = find_part(partition, part_level, partition->stage_of[i], at);
            partition->part_of[i] = part;
            if (part < partition->parts)
                continue;
            part_level[partition->parts] = at;
            partition->stage_of_part[partition->parts++] = partition->stage_of[i];
        }
}

static bool deepen(const struct graph *graph, struct graph_partition *partition)
{
    bool changed = false;
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int before = graph->nodes[i].inputs[k];
            if (before == MODEL_INPUT || partition->part_of[before] == partition->part_of[i])
                continue;
            unsigned least = partition->depth[partition->part_of[before]] + 1;
            unsigned *depth = &partition->depth[partition->part_of[i]];
            changed |= *depth < least;
            *depth = *depth < least ? least : *depth;
        }
    return changed;
}

/* Finds the depths of the parts. Returns whether the parts have an order. */
static bool find_depths(const struct graph *graph, struct graph_partition *partition)
{
    unsigned rounds = 0;
    memset(partition->depth, 0, partition->layers * sizeof *partition->depth);
    while (deepen(graph, partition))
        if (++rounds > partition->parts)
            return false;
    partition->depths = 0;
    for (unsigned p = 0; p < partition->parts; p++)
        if (partition->depth[p] >= partition->depths)
            partition->depths = partition->depth[p] + 1;
    return true;
}

/* ---- the order of sums */

/* Lists the readers of a layer's output from the last to the first, the order in which one
 * device adds their gradients. Returns how many. */
static unsigned list_readers(const struct graph *graph, unsigned layer, unsigned *ret_readers)
{
    unsigned count = 0;
    for (unsigned i = graph->node_count; i-- > layer + 1;)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph->nodes[i].inputs[k] == (int)layer)
                ret_readers[count++] = i;
    return count;
}

/* Checks the order in which the gradients of a value are added. A part sums what its own layers
 * contribute to another part's value before it sends the sum; that is the right order only for
 * the first readers, or for a single one. The value's own part adds its gradients last. Returns
 * the reader that must be in a separate part, and in *ret_from the layer that it must be
 * separated from; -1: the order is right. */
static int find_disorder(const struct graph_partition *partition, unsigned layer, const unsigned *readers,
                         unsigned count, unsigned *ret_from)
{
    if (count < 3) /* a + b is b + a */
        return -1;
    unsigned home = partition->part_of[layer];
    for (unsigned r = 0; r + 1 < count; r++)
        if (partition->part_of[readers[r]] == home && partition->part_of[readers[r + 1]] != home) {
            *ret_from = layer;
            return (int)readers[r];
        }
    for (unsigned r = 1; r < count; r++) {
        unsigned part = partition->part_of[readers[r]];
        bool prefix = true;
        if (part == home)
            continue;
        for (unsigned before = r; before-- > 0;) {
            prefix &= partition->part_of[readers[before]] == part;
            if (!prefix && partition->part_of[readers[before]] == part && readers[before] != readers[r]) {
                *ret_from = readers[r];
                return (int)readers[before];
            }
        }
        for (unsigned behind = r + 1; !prefix && behind < count; behind++)
            if (partition->part_of[readers[behind]] == part && readers[behind] != readers[r]) {
                *ret_from = readers[behind];
                return (int)readers[r];
            }
    }
    return -1;
}

static int find_any_disorder(const struct graph *graph, const struct graph_partition *partition, unsigned *ret_from)
{
    SCOPED_FREE unsigned *readers = memory_allocate((size_t)graph->node_count * LAYER_INPUTS_MAX, sizeof *readers);
    for (unsigned i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].consumers < 3)
            continue;
        int late = find_disorder(partition, i, readers, list_readers(graph, i, readers), ret_from);
        if (late >= 0)
            return late;
    }
    return -1;
}

/* Tries to make each stage one part. Returns whether that is possible. */
static bool take_whole_stages(const struct graph *graph, struct graph_partition *partition)
{
    unsigned from;
    partition->parts = partition->stages;
    for (unsigned s = 0; s < partition->stages; s++)
        partition->stage_of_part[s] = s;
    memcpy(partition->part_of, partition->stage_of, partition->layers * sizeof *partition->part_of);
    return find_depths(graph, partition) && find_any_disorder(graph, partition, &from) < 0;
}

/* Cuts stages into parts until all sums have the right order. This ends, because levels only
 * rise, to at most twice the number of layers: a layer is raised above one that comes before it. */
static void cut_stages(const struct graph *graph, struct graph_partition *partition)
{
    SCOPED_FREE unsigned *least = memory_allocate(partition->layers, sizeof *least);
    SCOPED_FREE unsigned *level = memory_allocate(partition->layers, sizeof *level);
    for (;;) {
        unsigned from;
        find_levels(graph, partition->stage_of, least, level);
        number_parts(partition, level);
        int late = find_any_disorder(graph, partition, &from);
        if (late < 0)
            break;
        least[late] = level[from] + 1;
    }
    find_depths(graph, partition);
}

/* ---- what is not cut */

/* Returns the first of the layers that one product computes together with this one, in the
 * forward or backward pass (graph_fuse_gelus); the layer itself if there are none. */
static unsigned joined_from(const struct graph *graph, unsigned layer)
{
    const struct graph_node *node = &graph->nodes[layer];
    if (!device_joins_gelus(graph->device, graph->stored) || node->inputs[0] == MODEL_INPUT)
        return layer;
    const struct graph_node *before = &graph->nodes[node->inputs[0]];
    if (node->layer.kind->type == LAYER_GELU && before->layer.kind->can_fuse_gelu)
        return (unsigned)node->inputs[0];
    bool back = before->layer.kind->type == LAYER_GELU && before->consumers == 1 && node->layer.kind->can_fuse_gelu;
    return back && before->inputs[0] != MODEL_INPUT ? (unsigned)before->inputs[0] : layer;
}

static bool is_joined(const struct graph *graph, unsigned layer)
{
    for (unsigned i = layer; i < graph->node_count; i++)
        if (joined_from(graph, i) < layer)
            return true;
    return false;
}

static int check_joined(const struct graph *graph, const struct graph_partition *partition, struct error *error)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        unsigned from = joined_from(graph, i), part = partition->part_of[i];
        bool apart = partition->part_of[from] != part;
        apart |= from != i && partition->part_of[graph->nodes[i].inputs[0]] != part;
        if (apart)
            return error_set(error, ERROR_INVALID,
                             "layers %s to %s: cuBLASLt makes a GELU and a dense layer beside it in one product; place "
                             "them on one device, or leave COXSWAIN_GPU_LT out",
                             graph->nodes[from].layer.name, graph->nodes[i].layer.name);
    }
    return 0;
}

static int check_stages(const struct graph_partition *partition, struct error *error)
{
    bool used[STAGES_MAX] = {false};
    for (unsigned i = 0; i < partition->layers; i++)
        used[partition->stage_of[i]] = true;
    for (unsigned s = 0; s < partition->stages; s++)
        if (!used[s])
            return error_set(error, ERROR_INVALID,
                             "stage %u of %u has no layer; place one on device %u or lower strategy.stages", s,
                             partition->stages, s);
    return 0;
}

static int finish(const struct graph *graph, struct graph_partition *partition, struct graph_partition *ret_partition,
                  struct error *error)
{
    if (check_stages(partition, error) < 0) {
        partition_release(partition);
        return -1;
    }
    if (!take_whole_stages(graph, partition))
        cut_stages(graph, partition);
    if (check_joined(graph, partition, error) < 0) {
        partition_release(partition);
        return -1;
    }
    *ret_partition = *partition;
    return 0;
}

static struct graph_partition begin(const struct graph *graph, unsigned stages)
{
    size_t most = graph->node_count > stages ? graph->node_count : stages;
    return (struct graph_partition){
        .stages = stages,
        .layers = graph->node_count,
        .stage_of = memory_allocate(graph->node_count, sizeof(unsigned)),
        .part_of = memory_allocate(graph->node_count, sizeof(unsigned)),
        .stage_of_part = memory_allocate(most, sizeof(unsigned)),
        .depth = memory_allocate(most, sizeof(unsigned)),
    };
}

int partition_from_list(const struct graph *graph, unsigned stages, const unsigned *stage_of,
                        struct graph_partition *ret_partition, struct error *error)
{
    struct graph_partition partition = begin(graph, stages);
    for (unsigned i = 0; i < graph->node_count; i++) {
        if (stage_of[i] >= stages) {
            partition_release(&partition);
            return error_set(error, ERROR_INVALID,
                             "layer %s is on device %u, but there are %u stages, whose devices are 0 to %u",
                             graph->nodes[i].layer.name, stage_of[i], stages, stages - 1);
        }
        partition.stage_of[i] = stage_of[i];
    }
    return finish(graph, &partition, ret_partition, error);
}

int partition_given(const struct graph *graph, unsigned stages, struct graph_partition *ret_partition,
                    struct error *error)
{
    SCOPED_FREE unsigned *stage_of = memory_allocate(graph->node_count, sizeof *stage_of);
    unsigned stage = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        int64_t device = graph->nodes[i].layer.spec.device;
        stage = device == FIELD_UNSET ? stage : (unsigned)device;
        stage_of[i] = stage;
    }
    return partition_from_list(graph, stages, stage_of, ret_partition, error);
}

/* ---- stages of equal cost */

/* Groups layers that are never separated: a layer with those that work in its memory, and layers
 * that one product computes. */
static unsigned group_layers(const struct graph *graph, const double *costs, unsigned *group_of, double *group_costs)
{
    unsigned groups = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        bool joins =
            i > 0 && ((graph->nodes[i].in_place && graph->nodes[i].inputs[0] == (int)i - 1) || is_joined(graph, i));
        if (i == 0 || (!joins && graph_output_owner(graph, (int)i - 1) != MODEL_INPUT))
            group_costs[groups++] = 0;
        group_of[i] = groups - 1;
        group_costs[groups - 1] += costs[i];
    }
    return groups;
}

/* Returns how many stages are needed if none may cost more than `limit`. Also starts a new stage
 * when the remaining groups are just enough for the remaining stages. */
static unsigned cut(const double *costs, unsigned groups, unsigned stages, double limit, unsigned *stage_of_group)
{
    unsigned stage = 0;
    double sum = 0;
    for (unsigned g = 0; g < groups; g++) {
        bool full = g > 0 && sum + costs[g] > limit;
        bool scarce = stage < stages && groups - g < stages - stage;
        if (g > 0 && (full || scarce)) {
            stage++;
            sum = 0;
        }
        sum += costs[g];
        stage_of_group[g] = stage;
    }
    return stage + 1;
}

static double total(const double *costs, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += costs[i];
    return sum;
}

/* Finds the lowest limit that needs no more stages than there are, to a part in 2^40. */
static void balance(const double *costs, unsigned groups, unsigned stages, unsigned *stage_of_group)
{
    double low = 0, high = total(costs, groups);
    for (unsigned round = 0; round < 40; round++) {
        double middle = (low + high) / 2;
        if (cut(costs, groups, stages, middle, stage_of_group) <= stages)
            high = middle;
        else
            low = middle;
    }
    cut(costs, groups, stages, high, stage_of_group);
}

int partition_by_cost(const struct graph *graph, unsigned stages, const double *costs,
                      struct graph_partition *ret_partition, struct error *error)
{
    unsigned count = graph->node_count;
    SCOPED_FREE unsigned *group_of = memory_allocate(count, sizeof *group_of);
    SCOPED_FREE unsigned *stage_of_group = memory_allocate(count, sizeof *stage_of_group);
    SCOPED_FREE unsigned *stage_of = memory_allocate(count, sizeof *stage_of);
    SCOPED_FREE double *group_costs = memory_allocate(count, sizeof *group_costs);
    unsigned groups = group_layers(graph, costs, group_of, group_costs);
    if (groups < stages)
        return error_set(error, ERROR_INVALID,
                         "strategy.stages: the model has %u layers that can stand apart, too few for %u stages", groups,
                         stages);
    balance(group_costs, groups, stages, stage_of_group);
    for (unsigned i = 0; i < count; i++)
        stage_of[i] = stage_of_group[group_of[i]];
    return partition_from_list(graph, stages, stage_of, ret_partition, error);
}
