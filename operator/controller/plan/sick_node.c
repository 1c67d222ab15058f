/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/sick_node.h"

#include <string.h>

#include "operator/controller/plan/node_blame.h"

#define OUTAGE_MS 60000

static bool counts(const struct sick_failures *failures, const struct sick_failure *failure, const char *node,
                   int64_t since_ms)
{
    return failure->at_ms > since_ms && failure->at_ms <= failures->now_ms &&
           failures->now_ms - failure->at_ms < failures->window_ms && strcmp(failure->node, node) == 0;
}

static bool is_outage(const struct sick_failure *failure)
{
    return strncmp(failure->reason, NODE_BLAME_LOST, strlen(NODE_BLAME_LOST)) == 0;
}

/* Returns whether another job has noticed the same outage of the node before. */
static bool was_noticed(const struct sick_failures *failures, size_t at, int64_t since_ms)
{
    const struct sick_failure *failure = &failures->list[at];
    for (size_t i = 0; i < failures->count && is_outage(failure); i++) {
        const struct sick_failure *other = &failures->list[i];
        bool is_before = other->at_ms < failure->at_ms || (other->at_ms == failure->at_ms && i < at);
        if (is_before && failure->at_ms - other->at_ms < OUTAGE_MS && is_outage(other) &&
            counts(failures, other, failure->node, since_ms) && strcmp(other->program, failure->program) != 0)
            return true;
    }
    return false;
}

struct sick_node sick_node_count(const struct sick_failures *failures, const char *node, int64_t since_ms)
{
    struct sick_node sick = {0};
    for (size_t i = 0; i < failures->count; i++) {
        const struct sick_failure *failure = &failures->list[i];
        bool is_first = true;
        if (!counts(failures, failure, node, since_ms))
            continue;
        for (size_t before = 0; before < i && is_first; before++)
            is_first = !counts(failures, &failures->list[before], node, since_ms) ||
                       strcmp(failures->list[before].program, failure->program) != 0;
        sick.failures += !was_noticed(failures, i, since_ms);
        sick.jobs += is_first;
        if (!sick.last || failure->at_ms > sick.last->at_ms)
            sick.last = failure;
    }
    return sick;
}

bool sick_node_is_sick(const struct sick_node *node)
{
    return node->failures >= SICK_NODE_FAILURES && node->jobs >= SICK_NODE_JOBS;
}

/* A time beyond the next window was written by another clock, or by hand. */
bool sick_node_is_over(const struct sick_failures *failures, int64_t since_ms, int64_t lasts_ms)
{
    return failures->now_ms >= since_ms + lasts_ms || since_ms > failures->now_ms + lasts_ms;
}

size_t sick_nodes_most(size_t total)
{
    return total < 20 ? 1 : total / 10;
}
