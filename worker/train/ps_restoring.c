/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_restoring.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/train/ps_share.h"
#include "worker/train/restoring.h"
#include "worker/train/resumed_order.h"

/* For a checkpoint of a version that did not count them. Where a crew of another size made a part of it, its shares were cut
 * otherwise: there are no more than what has no update. */
static int64_t count_empty(const struct trainer *trainer, const struct recovery_source *source, unsigned server)
{
    const struct ticket_set *tickets = &source->tickets[server];
    struct ticket_grant grant = {.per_step = trainer->plan.shares,
                                 .base_step = source->step,
                                 .base_epoch = source->data_epoch,
                                 .base_consumed = source->consumed};
    int64_t whole = tickets->low / trainer->plan.shares;
    int64_t empty = ps_share_count_empty(trainer, trainer->plan.shares, whole);
    for (grant.ticket = whole * trainer->plan.shares; grant.ticket < tickets->low; grant.ticket++)
        empty += ps_share_is_empty(trainer, &grant);
    for (unsigned i = 0; i < tickets->above_count; i++) {
        grant.ticket = tickets->above[i];
        empty += ps_share_is_empty(trainer, &grant);
    }
    int64_t most = tickets->low + tickets->above_count - source->updates[server];
    return empty < most ? empty : most;
}

/* Returns whether a ticket of the checkpoint stands for the same examples as now. */
static bool are_cut_alike(const struct trainer *trainer, const struct manifest *manifest)
{
    int64_t batch = resumed_order_batch(manifest);
    return json_integer_at(manifest->tickets, "perStep", 0) == trainer->plan.shares &&
           (batch == 0 || batch == trainer->plan.global_batch);
}

int ps_restoring_read_tickets(const struct trainer *trainer, const struct manifest *manifest,
                              struct recovery_source *source, struct error *error)
{
    const struct json *servers = json_member(manifest->tickets, "servers");
    if (!are_cut_alike(trainer, manifest) || json_count(servers) != trainer->crew.server_count)
        return 0;
    for (const struct json *item = json_first(servers); item; item = json_next(item)) {
        unsigned i = source->server_count++;
        source->updates[i] = json_integer_at(item, "updates", 0);
        if (ticket_set_from_json(json_member(item, "applied"), &source->tickets[i], error) < 0)
            return error_wrap(error, "checkpoint of step %lld", (long long)source->step);
        const struct json *empty = json_member(item, "empty");
        source->empty[i] = empty ? json_integer_at(item, "empty", 0) : count_empty(trainer, source, i);
    }
    return 0;
}

/* `directory` is the checkpoint's own. */
static int read_checkpoint(const struct trainer *trainer, const char *directory, const struct checkpoint_image *image,
                           struct recovery_source *source, struct error *error)
{
    const struct manifest *manifest = &image->manifest;
    free(source->path);
    source->path = memory_copy_string(directory);
    source->step = manifest->step;
    source->data_epoch = manifest->data_epoch;
    source->consumed = manifest->examples_consumed;
    source->empty_before = ps_share_count_empty(trainer, trainer->plan.shares, manifest->step);
    return manifest->tickets ? ps_restoring_read_tickets(trainer, manifest, source, error) : 0;
}

int ps_restoring_find_source(struct trainer *trainer, struct recovery_source *source, struct error *error)
{
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
    SCOPED_FREE char *own = is_own ? file_path_join(trainer->files.checkpoint_directory, name) : NULL;
    int result = read_checkpoint(trainer, is_own ? own : trainer->files.init_path, &image, source, error);
    checkpoint_image_release(&image);
    return result;
}
