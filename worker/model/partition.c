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
    *partition = (struct graph_partition){0};
}

/* ---- the order of the stages */

static bool deepen(const struct graph *graph, struct graph_partition *partition)
{
    bool changed = false;
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int before = graph->nodes[i].inputs[k];
            if (before == MODEL_INPUT || partition->stage_of[before] == partition->stage_of[i])
                continue;
            unsigned least = partition->depth[partition->stage_of[before]] + 1;
            unsigned *depth = &partition->depth[partition->stage_of[i]];
            changed |= *depth < least;
            *depth = *depth < least ? least : *depth;
        }
    return changed;
}

static int find_depths(const struct graph *graph, struct graph_partition *partition, struct error *error)
{
    unsigned rounds = 0;
    memset(partition->depth, 0, sizeof partition->depth);
    while (deepen(graph, partition))
        if (++rounds > partition->stages)
            return error_set(error, ERROR_INVALID,
                             "model.layers: stages read from each other in a circle; give the layers behind a join a "
                             "device of their own");
    partition->depths = 0;
    for (unsigned s = 0; s < partition->stages; s++)
        if (partition->depth[s] >= partition->depths)
            partition->depths = partition->depth[s] + 1;
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

/* A table that two layers share would have to be in two places. */
static int check_lenders(const struct graph *graph, const struct graph_partition *partition, struct error *error)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        int lender = graph->nodes[i].lender;
        if (lender != NO_LAYER && partition->stage_of[i] != partition->stage_of[lender])
            return error_set(error, ERROR_INVALID,
                             "layer %s takes the weights of %s (weightsOf), so that both must be in one stage; give it "
                             "weights of its own",
                             graph->nodes[i].layer.name, graph->nodes[lender].layer.name);
    }
    return 0;
}

static int finish(const struct graph *graph, struct graph_partition *partition, struct graph_partition *ret_partition,
                  struct error *error)
{
    if (check_stages(partition, error) < 0 || check_lenders(graph, partition, error) < 0 ||
        find_depths(graph, partition, error) < 0) {
        partition_release(partition);
        return -1;
    }
    *ret_partition = *partition;
    return 0;
}

static struct graph_partition begin(const struct graph *graph, unsigned stages)
{
    return (struct graph_partition){
        .stages = stages,
        .layers = graph->node_count,
        .stage_of = memory_allocate(graph->node_count, sizeof(unsigned)),
    };
}

int partition_from_list(const struct graph *graph, unsigned stages, const unsigned *stage_of,
                        struct graph_partition *ret_partition, struct error *error)
{
    struct graph_partition partition = begin(graph, stages);
    for (unsigned i = 0; i < graph->node_count; i++) {
        if (stage_of[i] >= stages) {
            partition_release(&partition);
            return error_set(error, ERROR_INVALID, "layer %s is on device %u; there are %u stages",
                             graph->nodes[i].layer.name, stage_of[i], stages);
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

/* The layers in groups that are never cut: a layer with what happens in its own memory. */
static unsigned group_layers(const struct graph *graph, const double *costs, unsigned *group_of, double *group_costs)
{
    unsigned groups = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        bool joins = i > 0 && graph->nodes[i].in_place && graph->nodes[i].inputs[0] == (int)i - 1;
        if (i == 0 || (!joins && graph_output_owner(graph, (int)i - 1) != MODEL_INPUT))
            group_costs[groups++] = 0;
        group_of[i] = groups - 1;
        group_costs[groups - 1] += costs[i];
    }
    return groups;
}

/* How many stages are needed when none may cost more than `limit`, or when the rest of the groups just suffices for the rest
 * of the stages. */
static unsigned cut(const double *costs, unsigned groups, unsigned stages, double limit, unsigned *stage_of_group)
{
    unsigned stage = 0;
    double sum = 0;
    for (unsigned g = 0; g < groups; g++) {
        bool full = g > 0 && sum + costs[g] > limit;
        bool scarce = stage < stages && groups - g < stages - stage;
        if (g > 0 && (full || (scarce && sum > 0))) {
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

/* The least limit that needs no more stages than there are, to a part in 2^40. */
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
