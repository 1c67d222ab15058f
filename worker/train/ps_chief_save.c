/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "worker/checkpoint/disk_file.h"
#include "worker/data/step_record.h"
#include "worker/train/ps_chief_parts.h"
#include "worker/train/ps_share.h"
#include "worker/train/saving.h"

#define UPLOAD_SECONDS 900 /* the longest that the chief waits until the servers have uploaded their shards */

/* Describes each server's tickets, so that every update counts once in a run that resumes from this
 * checkpoint. */
static struct json *describe_tickets(const struct ps_chief *chief, const struct server_saved *saved)
{
    struct json *tickets = json_new_object();
    json_set_integer(tickets, "perStep", chief->per_step);
    json_set_integer(tickets, "lost", dispatcher_lost(chief->dispatcher));
    struct json *servers = json_set_array(tickets, "servers");
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        struct json *server = json_append(servers, json_new_object());
        json_set_integer(server, "updates", saved[i].updates);
        json_set_integer(server, "empty", saved[i].empty);
        json_set(server, "applied", ticket_set_to_json(&saved[i].tickets));
    }
    return tickets;
}

/* Returns the step that all servers have reached: steps applied, or tickets up to the first that a
 * server lacks. */
static int64_t saved_step(const struct ps_chief *chief, const struct server_saved *saved)
{
    int64_t step = INT64_MAX;
    for (unsigned i = 0; i < chief->placement.server_count; i++) {
        int64_t own =
            chief->mode == PARAMETER_SERVER_SYNCHRONOUS ? saved[i].updates : saved[i].tickets.low / chief->per_step;
        step = own < step ? own : step;
    }
    return step;
}

/* `started_ns`: when the servers were asked to save. */
static void tell_saved(struct trainer *trainer, int64_t step, int64_t started_ns)
{
    const struct checkpoint_counts counts = checkpoint_store_counts(trainer->store);
    report_checkpoint(trainer->report, step);
    report_save(trainer->report, NULL);
    if (counts.saved != trainer->reported_saves)
        report_saved(trainer->report, step, counts.last_bytes, clock_monotonic_ns() - started_ns);
    trainer->reported_saves = counts.saved;
}

static int commit(struct ps_chief *chief, const char *directory, const struct server_saved *saved, int64_t started_ns,
                  struct error *error)
{
    struct trainer *trainer = chief->trainer;
    unsigned count = chief->placement.server_count;
    SCOPED_JSON *model = saving_describe_model(trainer);
    SCOPED_JSON *optimizer = saving_describe_optimizer(trainer);
    SCOPED_JSON *tickets = chief->mode == PARAMETER_SERVER_SYNCHRONOUS ? NULL : describe_tickets(chief, saved);
    SCOPED_FREE struct manifest_file *files = memory_allocate(count, sizeof *files);
    for (unsigned i = 0; i < count; i++) {
        files[i] = (struct manifest_file){.bytes = saved[i].bytes, .crc32c = saved[i].crc};
        snprintf(files[i].name, sizeof files[i].name, "%s", saved[i].name);
    }
    struct manifest manifest = {
        .step = saved_step(chief, saved),
        .workers = trainer->crew.expected,
        .logical_shards = trainer->plan.logical_shards,
        .seed = trainer->job->training.seed,
        .model = model,
        .optimizer = optimizer,
        .tickets = tickets,
        .files = files,
        .file_count = count,
    };
    ps_share_position(trainer, &chief->base, manifest.step, &manifest.data_epoch, &manifest.examples_consumed);
    /* Servers apply more while one ticket is out, and the step with it. Synchronous: a step is one state. */
    bool replaces = manifest.tickets != NULL;
    if (replaces || checkpoint_store_counts(trainer->store).committed_step != manifest.step)
        step_record_checkpoint(manifest.step, directory);
    if (checkpoint_shards_commit(trainer->store, directory, &manifest, replaces, error) < 0)
        return -1;
    tell_saved(trainer, manifest.step, started_ns);
    return 0;
}

int64_t ps_chief_written(void *context, const char *directory)
{
    const struct trainer *trainer = context;
    uint64_t progress = 0;
    struct stat began;
    /* The progress of an upload cannot be seen, so until UPLOAD_SECONDS are over it counts as some. A server ends an upload that is stuck. */
    if (checkpoint_store_bucket(trainer->store))
        return stat(directory, &began) == 0 && time(NULL) - began.st_mtime < UPLOAD_SECONDS ? time(NULL) : 0;
    for (unsigned i = 0; i < trainer->crew.server_count; i++) {
        SCOPED_FREE char *path = memory_format("%s/" CHECKPOINT_SHARD_FORMAT, directory, (int)i);
        progress += (uint64_t)disk_file_progress(path);
    }
    return (int64_t)progress;
}

int ps_chief_save(struct ps_chief *chief, bool last, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    struct server_saved *saved = memory_allocate(PS_SERVERS_MAX, sizeof *saved);
    char *directory = NULL;
    int64_t started_ns = clock_monotonic_ns();
    int result = checkpoint_shards_begin(trainer->store, &directory, error);
    if (result == 0)
        result = dispatcher_save(chief->dispatcher, directory, last, saved, error);
    if (result == 0)
        result = commit(chief, directory, saved, started_ns, error);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        ticket_set_release(&saved[i].tickets);
    free(saved);
    free(directory);
    if (result == 0) {
        chief->saved_step = chief->step;
        chief->saved_ns = clock_monotonic_ns();
    }
    return result;
}

static bool is_due(const struct ps_chief *chief)
{
    const struct checkpoint_spec *spec = &chief->trainer->job->checkpoint;
    if (chief->step == chief->saved_step)
        return false;
    if (spec->every_steps != FIELD_UNSET && chief->step / spec->every_steps != chief->saved_step / spec->every_steps)
        return true;
    return spec->every_seconds != FIELD_UNSET &&
           clock_monotonic_ns() - chief->saved_ns >= spec->every_seconds * 1000000000;
}

int ps_chief_save_if_due(struct ps_chief *chief, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (chief->trainer->store == NULL || !is_due(chief))
        return 0;
    int64_t step = chief->step;
    if (ps_chief_save(chief, false, &cause) == 0)
        return 0;
    if (cause.kind == ERROR_STALE || cause.kind == ERROR_CONFLICT || cause.kind == ERROR_CANCELLED)
        return error_set(error, cause.kind, "%s", cause.message);
    chief->saved_step = step; /* not again before the next is due */
    report_save(chief->trainer->report, &cause);
    return 0;
}
