/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/train/ps_chief_parts.h"
#include "worker/train/ps_share.h"
#include "worker/train/restoring.h"
#include "worker/train/saving.h"

/* What a checkpoint, or a fresh run, says. */
struct source {
    char *path; /* "": afresh */
    int64_t step, data_epoch, consumed;
    unsigned server_count; /* 0: the checkpoint knows nothing of tickets */
    struct ticket_set tickets[PS_SERVERS_MAX];
    int64_t updates[PS_SERVERS_MAX];
};

static void release_source(struct source *source)
{
    free(source->path);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&source->tickets[i]);
}

/* ---------------------------------------------------------------- reading a checkpoint */

/* Tickets of a crew of another size are cut otherwise: what is above the step is then computed again. */
static int read_tickets(const struct ps_chief *chief, const struct json *tickets, struct source *source,
                        struct error *error)
{
    const struct json *servers = json_member(tickets, "servers");
    if (json_integer_at(tickets, "perStep", 0) != chief->per_step ||
        json_count(servers) != chief->placement.server_count)
        return 0;
    for (const struct json *item = json_first(servers); item; item = json_next(item)) {
        unsigned i = source->server_count++;
        source->updates[i] = json_integer_at(item, "updates", 0);
        if (ticket_set_from_json(json_member(item, "applied"), &source->tickets[i], error) < 0)
            return error_wrap(error, "checkpoint of step %lld", (long long)source->step);
    }
    return 0;
}

static int read_checkpoint(const struct ps_chief *chief, const struct checkpoint_image *image, struct source *source,
                           struct error *error)
{
    const struct manifest *manifest = &image->manifest;
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&image->name, name);
    free(source->path);
    source->path = file_path_join(chief->trainer->checkpoint_directory, name);
    source->step = manifest->step;
    source->data_epoch = manifest->data_epoch;
    source->consumed = manifest->examples_consumed;
    return manifest->tickets ? read_tickets(chief, manifest->tickets, source, error) : 0;
}

static int find_source(const struct ps_chief *chief, struct source *source, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    struct checkpoint_image image = {0};
    bool found;
    *source = (struct source){.path = memory_copy_string("")};
    if (restoring_open_checkpoint(trainer, &found, &image, error) < 0)
        return -1;
    if (!found)
        return 0;
    int result = read_checkpoint(chief, &image, source, error);
    checkpoint_image_release(&image);
    return result;
}

/* ---------------------------------------------------------------- plans */

static void start_server(const struct ps_chief *chief, const struct source *source, unsigned number,
                         struct server_start *start)
{
    bool synchronous = chief->mode == PARAMETER_SERVER_SYNCHRONOUS;
    start->needed = true;
    start->path = source->path;
    if (!synchronous && source->server_count > 0) {
        ticket_set_copy(&start->tickets, &source->tickets[number]);
        start->updates = source->updates[number];
        return;
    }
    ticket_set_reset(&start->tickets, source->step * chief->per_step);
    start->updates = synchronous ? source->step : source->step * chief->per_step;
}

/* Everybody starts from the source. */
static int start_all(struct ps_chief *chief, uint32_t lineage, struct dispatcher_plan *plan,
                     struct server_start starts[PS_SERVERS_MAX], struct error *error)
{
    struct source source;
    if (find_source(chief, &source, error) < 0) {
        release_source(&source);
        return -1;
    }
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        start_server(chief, &source, i, &starts[i]);
        starts[i].path = source.path;
        if (i == 0)
            ticket_set_copy(&plan->finished, &starts[i].tickets);
        else
            ticket_set_intersect(&plan->finished, &starts[i].tickets);
    }
    chief->trainer->restored_by_us = true;
    plan->lineage = lineage;
    plan->step = source.step;
    plan->base_step = source.step;
    plan->base_epoch = source.data_epoch;
    plan->base_consumed = source.consumed;
    plan->starts = starts;
    int64_t lost;
    if (source.path[0])
        report_say(chief->trainer->report, "resumes from the checkpoint of step %lld", (long long)source.step);
    else if (chief->trainer->init_path)
        report_say(chief->trainer->report, "starts from the weights in %s", chief->trainer->init_path);
    int result = dispatcher_begin(chief->dispatcher, plan, &lost, error);
    release_source(&source);
    return result;
}

/* What the plan says is what the holders agree on. */
static void take_terms(const struct server_standing *standing, struct dispatcher_plan *plan, bool others)
{
    plan->lineage = standing->lineage;
    plan->base_step = standing->base_step;
    plan->base_epoch = standing->base_epoch;
    plan->base_consumed = standing->base_consumed;
    if (others)
        ticket_set_intersect(&plan->finished, &standing->tickets);
    else
        ticket_set_copy(&plan->finished, &standing->tickets);
}

/* Whether each server without a state has a backup that holds it. */
static bool backups_hold_all(const struct ps_chief *chief, const struct server_standing *standings)
{
    unsigned count = chief->placement.server_count;
    for (unsigned i = 0; i < count; i++)
        if (!standings[i].holds_state && !standings[(i + 1) % count].holds_guest)
            return false;
    return chief->trainer->job->strategy.ps_backup;
}

/* Some hold what was trained, and go on; the others take what the source has. */
static int start_some(struct ps_chief *chief, const struct server_standing *standings, struct dispatcher_plan *plan,
                      struct server_start starts[PS_SERVERS_MAX], struct error *error)
{
    struct source source;
    bool any = false;
    if (find_source(chief, &source, error) < 0) {
        release_source(&source);
        return -1;
    }
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        if (!standings[i].holds_state) {
            start_server(chief, &source, i, &starts[i]);
            continue;
        }
        take_terms(&standings[i], plan, any);
        any = true;
    }
    plan->keeps_tickets = true;
    plan->starts = starts;
    int64_t lost = 0;
    int result = dispatcher_begin(chief->dispatcher, plan, &lost, error);
    for (unsigned i = 0; result == 0 && i < chief->placement.server_count; i++)
        if (starts[i].needed)
            report_warn(chief->trainer->report,
                        "ps %u goes on from %s%lld: %lld updates that it had acknowledged since are lost", i,
                        source.path[0] ? "the checkpoint of step " : "the start, step ", (long long)source.step,
                        (long long)lost);
    release_source(&source);
    return result;
}

/* Servers that have nothing get back what the next ones keep for them. */
static int fetch_from_backups(struct ps_chief *chief, const struct server_standing *standings,
                              struct dispatcher_plan *plan, struct server_start starts[PS_SERVERS_MAX],
                              struct error *error)
{
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        starts[i] = (struct server_start){.needed = !standings[i].holds_state, .path = SERVER_START_BACKUP};
    plan->fetches_only = true;
    plan->starts = starts;
    int64_t lost;
    return dispatcher_begin(chief->dispatcher, plan, &lost, error);
}

/* All hold what was trained: a new chief takes over, or a connection was lost. */
static int go_on(struct ps_chief *chief, const struct server_standing *standings, struct dispatcher_plan *plan,
                 struct server_start starts[PS_SERVERS_MAX], struct error *error)
{
    bool synchronous = chief->mode == PARAMETER_SERVER_SYNCHRONOUS, any = false;
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        take_terms(&standings[i], plan, any);
        if (synchronous && (!any || standings[i].updates < plan->step))
            plan->step = standings[i].updates;
        any = true;
    }
    plan->keeps_tickets = chief->begun;
    plan->starts = starts;
    int64_t lost;
    return dispatcher_begin(chief->dispatcher, plan, &lost, error);
}

static int choose(struct ps_chief *chief, struct server_standing *standings, struct dispatcher_plan *plan,
                  struct server_start starts[PS_SERVERS_MAX], struct error *error)
{
    unsigned holders = 0;
    uint32_t lineage = 0;
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        if (standings[i].holds_state && standings[i].lineage > lineage)
            lineage = standings[i].lineage;
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        standings[i].holds_state &= standings[i].lineage == lineage; /* what the crew has left is worth nothing */
        holders += standings[i].holds_state;
    }
    if (holders == chief->placement.server_count)
        return go_on(chief, standings, plan, starts, error);
    if (backups_hold_all(chief, standings))
        return fetch_from_backups(chief, standings, plan, starts, error);
    if (holders > 0 && chief->mode != PARAMETER_SERVER_SYNCHRONOUS)
        return start_some(chief, standings, plan, starts, error);
    if (chief->base.lineage > lineage)
        lineage = chief->base.lineage;
    /* A lineage of its own for whatever may still be on its way from before. */
    return start_all(chief, lineage + 1, plan, starts, error);
}

int ps_chief_start(struct ps_chief *chief, struct error *error)
{
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct dispatcher_plan plan = {0};
    int result = dispatcher_await_servers(chief->dispatcher, standings, error);
    if (result == 0) {
        result = choose(chief, standings, &plan, starts, error);
        for (unsigned i = 0; i < chief->placement.server_count; i++)
            server_standing_release(&standings[i]);
    }
    if (result == 0) {
        chief->base = (struct ticket_grant){.lineage = plan.lineage,
                                            .per_step = chief->per_step,
                                            .base_step = plan.base_step,
                                            .base_epoch = plan.base_epoch,
                                            .base_consumed = plan.base_consumed};
        if (!plan.keeps_tickets)
            chief->step = plan.finished.low / chief->per_step;
        chief->begun = true;
    }
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&starts[i].tickets);
    ticket_set_release(&plan.finished);
    free(starts);
    return result;
}
