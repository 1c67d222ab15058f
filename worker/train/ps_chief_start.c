/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/parameter_server/recovery.h"
#include "worker/train/ps_chief_parts.h"
#include "worker/train/ps_share.h"
#include "worker/train/restoring.h"
#include "worker/train/resumed_order.h"
#include "worker/train/saving.h"

/* ---------------------------------------------------------------- reading a checkpoint */

/* For a checkpoint of a version that did not count them. Where a crew of another size made a part of it, its shares were cut
 * otherwise: there are no more than what has no update. */
static int64_t count_empty(const struct ps_chief *chief, const struct recovery_source *source, unsigned server)
{
    const struct ticket_set *tickets = &source->tickets[server];
    struct ticket_grant grant = {.per_step = chief->per_step,
                                 .base_step = source->step,
                                 .base_epoch = source->data_epoch,
                                 .base_consumed = source->consumed};
    int64_t whole = tickets->low / chief->per_step;
    int64_t empty = ps_share_count_empty(chief->trainer, chief->per_step, whole);
    for (grant.ticket = whole * chief->per_step; grant.ticket < tickets->low; grant.ticket++)
        empty += ps_share_is_empty(chief->trainer, &grant);
    for (unsigned i = 0; i < tickets->above_count; i++) {
        grant.ticket = tickets->above[i];
        empty += ps_share_is_empty(chief->trainer, &grant);
    }
    int64_t most = tickets->low + tickets->above_count - source->updates[server];
    return empty < most ? empty : most;
}

/* Returns whether a ticket of the checkpoint stands for the same examples as now. */
static bool are_cut_alike(const struct ps_chief *chief, const struct manifest *manifest)
{
    int64_t batch = resumed_order_batch(manifest);
    return json_integer_at(manifest->tickets, "perStep", 0) == chief->per_step &&
           (batch == 0 || batch == chief->trainer->plan.global_batch);
}

int ps_chief_read_tickets(const struct ps_chief *chief, const struct manifest *manifest, struct recovery_source *source,
                          struct error *error)
{
    const struct json *servers = json_member(manifest->tickets, "servers");
    if (!are_cut_alike(chief, manifest) || json_count(servers) != chief->placement.server_count)
        return 0;
    for (const struct json *item = json_first(servers); item; item = json_next(item)) {
        unsigned i = source->server_count++;
        source->updates[i] = json_integer_at(item, "updates", 0);
        if (ticket_set_from_json(json_member(item, "applied"), &source->tickets[i], error) < 0)
            return error_wrap(error, "checkpoint of step %lld", (long long)source->step);
        const struct json *empty = json_member(item, "empty");
        source->empty[i] = empty ? json_integer_at(item, "empty", 0) : count_empty(chief, source, i);
    }
    return 0;
}

/* `directory` is the checkpoint's own. */
static int read_checkpoint(const struct ps_chief *chief, const char *directory, const struct checkpoint_image *image,
                           struct recovery_source *source, struct error *error)
{
    const struct manifest *manifest = &image->manifest;
    free(source->path);
    source->path = memory_copy_string(directory);
    source->step = manifest->step;
    source->data_epoch = manifest->data_epoch;
    source->consumed = manifest->examples_consumed;
    source->empty_before = ps_share_count_empty(chief->trainer, chief->per_step, manifest->step);
    return manifest->tickets ? ps_chief_read_tickets(chief, manifest, source, error) : 0;
}

static int find_source(const struct ps_chief *chief, struct recovery_source *source, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    struct checkpoint_image image = {0};
    bool found;
    *source = (struct recovery_source){.path = memory_copy_string("")};
    if (restoring_open_checkpoint(trainer, &found, &image, error) < 0)
        return -1;
    bool is_own = found;
    if (!found && restoring_open_init(trainer, &found, &image, error) < 0)
        return -1;
    if (!found)
        return 0;
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&image.name, name);
    SCOPED_FREE char *own = is_own ? file_path_join(trainer->checkpoint_directory, name) : NULL;
    int result = read_checkpoint(chief, is_own ? own : trainer->init_path, &image, source, error);
    checkpoint_image_release(&image);
    return result;
}

/* ---------------------------------------------------------------- beginning */

static void tell_source(const struct ps_chief *chief, const struct recovery_source *source)
{
    const char *init = chief->trainer->init_path;
    if (source->path[0] && init && strcmp(source->path, init) == 0)
        report_say(chief->trainer->report, RESTORING_FORKS, (long long)source->step, init);
    else if (source->path[0])
        report_say(chief->trainer->report, "resumes from the checkpoint of step %lld", (long long)source->step);
    else if (init)
        report_say(chief->trainer->report, "starts from the weights in %s", init);
}

static void tell_losses(const struct ps_chief *chief, const struct recovery_source *source,
                        const struct server_start *starts, int64_t lost)
{
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        if (starts[i].needed)
            report_warn(chief->trainer->report,
                        "ps %u goes on from %s%lld: %lld updates that it had acknowledged since are lost", i,
                        source->path[0] ? "the checkpoint of step " : "the start, step ", (long long)source->step,
                        (long long)lost);
}

static struct recovery_options options_of(const struct ps_chief *chief)
{
    return (struct recovery_options){.mode = chief->mode,
                                     .server_count = chief->placement.server_count,
                                     .per_step = chief->per_step,
                                     .chief_incarnation = (uint32_t)chief->trainer->identity->incarnation,
                                     .begun = chief->begun,
                                     .lineage = chief->base.lineage};
}

static int begin(struct ps_chief *chief, enum recovery_kind kind, const struct recovery_source *source,
                 const struct dispatcher_plan *plan, struct error *error)
{
    int64_t lost = 0;
    if (kind == RECOVERY_ALL) {
        chief->trainer->restored_by_us = true;
        tell_source(chief, source);
    }
    if (dispatcher_begin(chief->dispatcher, plan, &lost, error) < 0)
        return -1;
    if (kind == RECOVERY_SOME)
        tell_losses(chief, source, plan->starts, lost);
    servers_link_follow(chief->values, plan->lineage);
    chief->base = (struct ticket_grant){.lineage = plan->lineage,
                                        .per_step = chief->per_step,
                                        .base_step = plan->base_step,
                                        .base_epoch = plan->base_epoch,
                                        .base_consumed = plan->base_consumed};
    if (!plan->keeps_tickets)
        chief->step = plan->finished.low / chief->per_step;
    chief->begun = true;
    return 0;
}

/* Sets the run's end, which depends on where it begins. */
static void set_end(struct ps_chief *chief, struct dispatcher_plan *plan)
{
    struct step_plan *steps = &chief->trainer->plan;
    step_plan_go_on(steps, plan->base_step, plan->base_epoch, plan->base_consumed);
    plan->end = steps->total_steps * chief->per_step;
}

static int choose_and_begin(struct ps_chief *chief, struct server_standing standings[PS_SERVERS_MAX],
                            struct error *error)
{
    const struct recovery_options options = options_of(chief);
    struct recovery_source source = {0};
    struct dispatcher_plan plan = {0};
    enum recovery_kind kind = recovery_choose(&options, standings);
    int result = 0;
    if (kind == RECOVERY_SOME || kind == RECOVERY_ALL)
        result = find_source(chief, &source, error);
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    if (result == 0) {
        recovery_plan(&options, kind, standings, &source, starts, &plan);
        set_end(chief, &plan);
        result = begin(chief, kind, &source, &plan, error);
    }
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
    return result;
}

int ps_chief_start(struct ps_chief *chief, struct error *error)
{
    struct server_standing standings[PS_SERVERS_MAX];
    if (dispatcher_await_servers(chief->dispatcher, standings, error) < 0)
        return -1;
    int result = choose_and_begin(chief, standings, error);
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        server_standing_release(&standings[i]);
    return result;
}
