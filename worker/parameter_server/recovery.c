/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/recovery.h"

#include <stdlib.h>

void recovery_source_release(struct recovery_source *source)
{
    free(source->path);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&source->tickets[i]);
}

void recovery_plan_release(struct dispatcher_plan *plan, struct server_start starts[PS_SERVERS_MAX])
{
    ticket_set_release(&plan->finished);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&starts[i].tickets);
}

static bool is_synchronous(const struct recovery_options *options)
{
    return options->mode == PARAMETER_SERVER_SYNCHRONOUS;
}

/* ---------------------------------------------------------------- what to do */

static uint32_t newest_lineage(const struct recovery_options *options, const struct server_standing *standings)
{
    uint32_t lineage = 0;
    for (unsigned i = 0; i < options->server_count; i++)
        if (standings[i].holds_state && standings[i].lineage > lineage)
            lineage = standings[i].lineage;
    return lineage;
}

enum recovery_kind recovery_choose(const struct recovery_options *options,
                                   struct server_standing standings[PS_SERVERS_MAX])
{
    uint32_t lineage = newest_lineage(options, standings);
    unsigned holders = 0;
    for (unsigned i = 0; i < options->server_count; i++) {
        standings[i].holds_state &= standings[i].lineage == lineage;
        holders += standings[i].holds_state;
    }
    if (holders == options->server_count)
        return RECOVERY_GO_ON;
    return holders > 0 && !is_synchronous(options) ? RECOVERY_SOME : RECOVERY_ALL;
}

/* ---------------------------------------------------------------- plans */

/* Takes lineage and base from a server that holds state (all of them agree), and keeps only tickets
 * that all of them hold. */
static void take_terms(const struct server_standing *standing, struct dispatcher_plan *plan, bool others)
{
    plan->lineage = standing->lineage;
    plan->base_step = standing->base_step;
    plan->base_epoch = standing->base_epoch;
    plan->base_consumed = standing->base_consumed;
    if (!others || standing->updates < plan->step)
        plan->step = standing->updates;
    if (others)
        ticket_set_intersect(&plan->finished, &standing->tickets);
    else
        ticket_set_copy(&plan->finished, &standing->tickets);
}

static void take_all_terms(const struct recovery_options *options, const struct server_standing *standings,
                           struct dispatcher_plan *plan)
{
    bool any = false;
    for (unsigned i = 0; i < options->server_count; i++) {
        if (!standings[i].holds_state)
            continue;
        take_terms(&standings[i], plan, any);
        any = true;
    }
}

static void start_from(const struct recovery_options *options, const struct recovery_source *source, unsigned number,
                       struct server_start *start)
{
    start->needed = true;
    start->path = source->path;
    if (!is_synchronous(options) && source->server_count > 0) {
        ticket_set_copy(&start->tickets, &source->tickets[number]);
        start->updates = source->updates[number];
        start->empty = source->empty[number];
        return;
    }
    ticket_set_reset(&start->tickets, source->step * options->per_step);
    start->empty = is_synchronous(options) ? 0 : source->empty_before;
    start->updates = is_synchronous(options) ? source->step : source->step * options->per_step - start->empty;
}

/* Returns a lineage that nothing still in transit can have. It also exceeds that of an earlier
 * chief, which this one cannot know if no server holds a state. */
static uint32_t next_lineage(const struct recovery_options *options, const struct server_standing *standings)
{
    uint32_t lineage = newest_lineage(options, standings), least = options->chief_incarnation << 10;
    if (options->begun && options->lineage > lineage)
        lineage = options->lineage;
    return (lineage > least ? lineage : least) + 1;
}

static void plan_all(const struct recovery_options *options, const struct server_standing *standings,
                     const struct recovery_source *source, struct server_start *starts, struct dispatcher_plan *plan)
{
    for (unsigned i = 0; i < options->server_count; i++) {
        start_from(options, source, i, &starts[i]);
        if (i == 0)
            ticket_set_copy(&plan->finished, &starts[i].tickets);
        else
            ticket_set_intersect(&plan->finished, &starts[i].tickets);
    }
    plan->lineage = next_lineage(options, standings);
    plan->step = source->step;
    plan->base_step = source->step;
    plan->base_epoch = source->data_epoch;
    plan->base_consumed = source->consumed;
}

static bool has_moved(const struct server_standing *standing, const struct recovery_source *source, unsigned number)
{
    const struct ticket_set *saved = &source->tickets[number];
    return standing->updates != source->updates[number] || ticket_set_count_missing(&standing->tickets, saved) > 0 ||
           ticket_set_count_missing(saved, &standing->tickets) > 0;
}

/* Returns whether no server has applied anything since the source was saved, as when servers and
 * chief have left together. An update that one server has and another's shard lacks was then never
 * acknowledged by all. */
static bool all_are_at(const struct recovery_options *options, const struct server_standing *standings,
                       const struct recovery_source *source)
{
    for (unsigned i = 0; i < options->server_count; i++)
        if (standings[i].holds_state && has_moved(&standings[i], source, i))
            return false;
    return source->server_count == options->server_count;
}

/* A new chief cannot know which tickets all servers had acknowledged. It therefore counts all that
 * the continuing servers hold as finished, unless nothing has happened since the save. */
static void plan_some(const struct recovery_options *options, const struct server_standing *standings,
                      const struct recovery_source *source, struct server_start *starts, struct dispatcher_plan *plan)
{
    take_all_terms(options, standings, plan);
    for (unsigned i = 0; i < options->server_count; i++)
        if (!standings[i].holds_state)
            start_from(options, source, i, &starts[i]);
    plan->keeps_tickets = options->begun || !all_are_at(options, standings, source);
}

void recovery_plan(const struct recovery_options *options, enum recovery_kind kind,
                   const struct server_standing *standings, const struct recovery_source *source,
                   struct server_start starts[PS_SERVERS_MAX], struct dispatcher_plan *ret_plan)
{
    *ret_plan = (struct dispatcher_plan){.starts = starts};
    switch (kind) {
    case RECOVERY_GO_ON:
        take_all_terms(options, standings, ret_plan);
        ret_plan->keeps_tickets = options->begun;
        break;
    case RECOVERY_SOME:
        plan_some(options, standings, source, starts, ret_plan);
        break;
    case RECOVERY_ALL:
        plan_all(options, standings, source, starts, ret_plan);
        break;
    }
}
