/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_saving.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "worker/checkpoint/disk_file.h"
#include "worker/data/step_record.h"
#include "worker/train/ps_share.h"
#include "worker/train/saving.h"

#define UPLOAD_SECONDS 900 /* the longest that the chief waits until the servers have uploaded their shards */

static bool is_synchronous(const struct trainer *trainer)
{
    return trainer->job->strategy.mode == PARAMETER_SERVER_SYNCHRONOUS;
}

/* Describes each server's tickets, so that every update counts once in a run that resumes from this
 * checkpoint. */
static struct json *describe_tickets(const struct trainer *trainer, int64_t lost, const struct server_saved *saved)
{
    struct json *tickets = json_new_object();
    json_set_integer(tickets, "perStep", trainer->plan.shares);
    json_set_integer(tickets, "lost", lost);
    struct json *servers = json_set_array(tickets, "servers");
    for (unsigned i = 0; i < trainer->crew.server_count; i++) {
        struct json *server = json_append(servers, json_new_object());
        json_set_integer(server, "updates", saved[i].updates);
        json_set_integer(server, "empty", saved[i].empty);
        json_set(server, "applied", ticket_set_to_json(&saved[i].tickets));
    }
    return tickets;
}

/* Returns the step that all servers have reached: steps applied, or tickets up to the first that a
 * server lacks. */
static int64_t saved_step(const struct trainer *trainer, const struct server_saved *saved)
{
    int64_t step = INT64_MAX;
    for (unsigned i = 0; i < trainer->crew.server_count; i++) {
        int64_t own = is_synchronous(trainer) ? saved[i].updates : saved[i].tickets.low / trainer->plan.shares;
        step = own < step ? own : step;
    }
    return step;
}

/* `started_ns`: when the servers were asked to save. */
static void tell_saved(struct trainer *trainer, int64_t step, int64_t started_ns)
{
    const struct checkpoint_counts counts = checkpoint_store_counts(trainer->files.store);
    report_checkpoint(trainer->report, step);
    report_save(trainer->report, NULL);
    if (counts.saved != trainer->saves.reported)
        report_saved(trainer->report, step, counts.last_bytes, clock_monotonic_ns() - started_ns);
    trainer->saves.reported = counts.saved;
}

static int commit(struct trainer *trainer, struct dispatcher *dispatcher, const struct ticket_grant *base,
                  const char *directory, const struct server_saved *saved, int64_t started_ns, struct error *error)
{
    unsigned count = trainer->crew.server_count;
    SCOPED_JSON *model = saving_describe_model(trainer);
    SCOPED_JSON *optimizer = saving_describe_optimizer(trainer);
    SCOPED_JSON *tickets =
        is_synchronous(trainer) ? NULL : describe_tickets(trainer, dispatcher_lost(dispatcher), saved);
    SCOPED_FREE struct manifest_file *files = memory_allocate(count, sizeof *files);
    for (unsigned i = 0; i < count; i++) {
        files[i] = (struct manifest_file){.bytes = saved[i].bytes, .crc32c = saved[i].crc};
        snprintf(files[i].name, sizeof files[i].name, "%s", saved[i].name);
    }
    struct manifest manifest = {
        .step = saved_step(trainer, saved),
        .workers = trainer->crew.expected,
        .logical_shards = trainer->plan.logical_shards,
        .seed = trainer->job->training.seed,
        .model = model,
        .optimizer = optimizer,
        .tickets = tickets,
        .files = files,
        .file_count = count,
    };
    ps_share_position(trainer, base, manifest.step, &manifest.data_epoch, &manifest.examples_consumed);
    /* Servers apply more while one ticket is out, and the step with it. Synchronous: a step is one state. */
    bool replaces = manifest.tickets != NULL;
    if (replaces || checkpoint_store_counts(trainer->files.store).committed_step != manifest.step)
        step_record_checkpoint(manifest.step, directory);
    if (checkpoint_shards_commit(trainer->files.store, directory, &manifest, replaces, error) < 0)
        return -1;
    tell_saved(trainer, manifest.step, started_ns);
    return 0;
}

int64_t ps_saving_progress(void *context, const char *directory)
{
    const struct trainer *trainer = context;
    uint64_t progress = 0;
    struct stat began;
    /* The progress of an upload cannot be seen, so until UPLOAD_SECONDS are over it counts as some. A server ends an upload that is stuck. */
    if (checkpoint_store_bucket(trainer->files.store))
        return stat(directory, &began) == 0 && time(NULL) - began.st_mtime < UPLOAD_SECONDS ? time(NULL) : 0;
    for (unsigned i = 0; i < trainer->crew.server_count; i++) {
        SCOPED_FREE char *path = memory_format("%s/" CHECKPOINT_SHARD_FORMAT, directory, (int)i);
        progress += (uint64_t)disk_file_progress(path);
    }
    return (int64_t)progress;
}

int ps_saving_save(struct trainer *trainer, struct dispatcher *dispatcher, const struct ticket_grant *base, bool last,
                   struct error *error)
{
    struct server_saved *saved = memory_allocate(PS_SERVERS_MAX, sizeof *saved);
    char *directory = NULL;
    int64_t started_ns = clock_monotonic_ns();
    int result = checkpoint_shards_begin(trainer->files.store, &directory, error);
    if (result == 0)
        result = dispatcher_save(dispatcher, directory, last, saved, error);
    if (result == 0)
        result = commit(trainer, dispatcher, base, directory, saved, started_ns, error);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&saved[i].tickets);
    free(saved);
    free(directory);
    return result;
}
