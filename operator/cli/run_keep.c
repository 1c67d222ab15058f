/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_keep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/run_mark.h"
#include "operator/cli/sweep_view.h"

#define WRITE_EVERY_MS 5000

static void tell(struct run_keep *keep, const struct error *error)
{
    if (!keep->reported)
        fprintf(stderr, "cox run: %s; `cox runs` and `cox predict` will not know this run\n", error->message);
    keep->reported = true;
}

static void write_record(struct run_keep *keep, int64_t now_ms)
{
    struct error error = ERROR_INIT;
    keep->written_ms = now_ms;
    if (run_record_write(keep->state, &keep->record, &error) < 0)
        tell(keep, &error);
}

/* With absolute paths: commands that read them may be called elsewhere. */
static struct json *absolute_volumes(const struct run_keep_options *options)
{
    struct json *object = json_new_object();
    for (unsigned i = 0; i < options->volume_count; i++) {
        const char *equals = strchr(options->volumes[i], '=');
        SCOPED_FREE char *claim = memory_copy_bytes(options->volumes[i], (size_t)(equals - options->volumes[i]));
        SCOPED_FREE char *path = realpath(equals + 1, NULL);
        json_set_string(object, claim, path ? path : equals + 1);
    }
    return object;
}

static bool is_same_run(const struct run_record *left, const struct run_record *right)
{
    return strcmp(left->name, right->name) == 0 && strcmp(left->name_space, right->name_space) == 0;
}

static void take_progress(struct run_record *record, const struct run_record *earlier)
{
    record->step = earlier->step;
    record->total_steps = earlier->total_steps;
    record->loss = earlier->loss;
    record->score = earlier->score;
}

void run_keep_begin(struct run_keep *keep, const char *state, const struct manifest *manifest,
                    const struct run_keep_options *options, int64_t now_ms)
{
    struct run_record *record = &keep->record;
    struct error error = ERROR_INIT;
    keep->state = memory_copy_string(state);
    run_record_init(record);
    snprintf(record->name, sizeof record->name, "%s", manifest->name);
    snprintf(record->name_space, sizeof record->name_space, "%s", manifest->name_space);
    record->is_sweep = manifest->is_sweep;
    record->state = RUN_RUNNING;
    record->volumes = absolute_volumes(options);
    record->command = options->command ? memory_copy_string(options->command) : NULL;
    run_record_read(state, &keep->earlier, NULL);
    if (is_same_run(&keep->earlier, record))
        take_progress(record, &keep->earlier); /* until the job says more */
    record->started_ms =
        is_same_run(&keep->earlier, record) && keep->earlier.started_ms > 0 ? keep->earlier.started_ms : now_ms;
    record->updated_ms = now_ms;
    if (run_record_write_manifest(state, manifest->effective, &error) < 0)
        tell(keep, &error);
    write_record(keep, now_ms);
    if (run_mark_volumes(state, record->volumes, &error) < 0)
        fprintf(stderr, "cox run: %s; `cox runs delete` may delete volumes that this run uses\n", error.message);
}

static void take_suspension(struct run_keep *keep, bool suspended, int64_t now_ms)
{
    enum run_state state = suspended ? RUN_SUSPENDED : RUN_RUNNING;
    if (keep->record.state == state)
        return;
    keep->record.state = state;
    keep->record.updated_ms = now_ms;
    write_record(keep, now_ms);
}

static void updated(struct run_keep *keep, int64_t now_ms)
{
    keep->record.updated_ms = now_ms;
    if (now_ms - keep->written_ms >= WRITE_EVERY_MS)
        write_record(keep, now_ms);
}

void run_keep_job(struct run_keep *keep, const struct job_view *view, int64_t now_ms)
{
    struct run_record *record = &keep->record;
    bool is_first = record->step < 0 && view->step >= 0;
    if (keep->state && view->seen)
        take_suspension(keep, view->suspended, now_ms);
    if (!keep->state || (view->step < 0 && record->step >= 0))
        return;
    record->step = view->step;
    record->total_steps = view->total_steps;
    record->loss = view->loss;
    record->score = job_view_score(view);
    if (is_first) /* this process may be killed before it writes again */
        write_record(keep, now_ms);
    updated(keep, now_ms);
}

void run_keep_sweep(struct run_keep *keep, const struct training_sweep *sweep, int64_t now_ms)
{
    struct run_record *record = &keep->record;
    if (!keep->state)
        return;
    take_suspension(keep, sweep->suspend && !sweep_is_over(sweep), now_ms);
    record->step = sweep_done(sweep);
    record->total_steps = sweep->status.trials.total;
    snprintf(record->metric, sizeof record->metric, "%s", sweep->objective.metric ? sweep->objective.metric : "");
    record->best = sweep->status.best.objective ? strtod(sweep->status.best.objective, NULL) : NAN;
    updated(keep, now_ms);
}

void run_keep_take_over(struct run_keep *keep, const struct run_record *before, int64_t step)
{
    struct run_record *record = &keep->record;
    if (!keep->state || record->step >= 0 || step < 0 || before->step != step || !is_same_run(before, record))
        return;
    take_progress(record, before);
    record->started_ms = before->started_ms;
    run_record_release(&keep->earlier);
    keep->earlier = *before; /* for the time of its end */
    keep->earlier.volumes = NULL;
    keep->earlier.command = NULL;
}

void run_keep_end(struct run_keep *keep, enum run_state state, int64_t now_ms)
{
    struct run_record *record = &keep->record;
    const struct run_record *earlier = &keep->earlier;
    if (!keep->state)
        return;
    if (state != RUN_INTERRUPTED || record->state != RUN_SUSPENDED)
        record->state = state;
    record->updated_ms = now_ms;
    if (is_same_run(earlier, record) && earlier->state == record->state && earlier->step == record->step &&
        earlier->updated_ms > 0)
        record->updated_ms = earlier->updated_ms;
    write_record(keep, now_ms);
}

void run_keep_release(struct run_keep *keep)
{
    run_record_release(&keep->record);
    run_record_release(&keep->earlier);
    free(keep->state);
    keep->state = NULL;
}
