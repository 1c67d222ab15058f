/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/exit_code.h"
#include "common/contract/labels.h"
#include "common/job/job_status.h"
#include "common/job/string_format.h"
#include "common/memory.h"
#include "operator/controller/observed/owner.h"

static void copy_metrics(const struct progress_metric *metrics, unsigned count, struct trial_view *trial)
{
    trial->metrics = arena_allocate(&trial->arena, count, sizeof *trial->metrics);
    trial->metric_count = count;
    for (unsigned i = 0; i < count; i++) {
        trial->metrics[i].name = arena_copy_string(&trial->arena, metrics[i].name);
        trial->metrics[i].value = arena_copy_string(&trial->arena, metrics[i].value);
        trial->metrics[i].step = metrics[i].step;
    }
}

static int64_t count_pods(const struct json *spec)
{
    int64_t pods = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        pods += spec_role_count(spec, (enum role)role);
    return pods;
}

static void read_status(const struct json *object, struct trial_view *trial)
{
    struct job_status status;
    struct arena arena = {0};
    job_status_read(object, &status, &arena);
    const struct condition *failed = &status.conditions[CONDITION_FAILED];
    trial->succeeded = job_status_state(&status) == CONDITION_SUCCEEDED;
    trial->failed = job_status_state(&status) == CONDITION_FAILED;
    trial->diverged = trial->failed && strcmp(failed->reason, REASON_DIVERGED) == 0;
    trial->suspended = job_status_state(&status) == CONDITION_SUSPENDED;
    trial->message = trial->failed ? arena_copy_string(&trial->arena, failed->message) : "";
    trial->step = status.progress.step;
    trial->total_steps = status.progress.total_steps;
    trial->start_ms = status.start_ms;
    trial->end_ms = trial->suspended ? status.conditions[CONDITION_SUSPENDED].last_transition_ms : status.completion_ms;
    trial->suspended_ms = status.suspended_ms;
    copy_metrics(status.progress.metrics, status.progress.metric_count, trial);
    arena_release(&arena);
}

struct trial_view *trial_view_new(const struct json *object)
{
    struct trial_view *trial = memory_allocate(1, sizeof *trial);
    struct owner owner = owner_of(object);
    bool is_trial = strcmp(owner.kind, TRAINING_SWEEP_KIND) == 0;
    trial->name = arena_copy_string(&trial->arena, json_string_at(object, "metadata.name", ""));
    trial->sweep_uid = arena_copy_string(&trial->arena, is_trial ? owner.uid : "");
    trial->sweep_name = arena_copy_string(&trial->arena, is_trial ? owner.name : "");
    trial->pause_step = training_job_pause_step(object);
    trial->suspend = json_boolean_at(object, "spec.suspend", false);
    trial->pods = count_pods(json_member(object, "spec"));
    read_status(json_member(object, "status"), trial);
    return trial;
}

struct trial_view *trial_view_copy(const struct trial_view *trial)
{
    struct trial_view *copy = memory_allocate(1, sizeof *copy);
    *copy = *trial;
    copy->arena = (struct arena){0};
    copy->name = arena_copy_string(&copy->arena, trial->name);
    copy->sweep_uid = arena_copy_string(&copy->arena, trial->sweep_uid);
    copy->sweep_name = arena_copy_string(&copy->arena, trial->sweep_name);
    copy->message = arena_copy_string(&copy->arena, trial->message);
    copy_metrics(trial->metrics, trial->metric_count, copy);
    return copy;
}

void trial_view_free(struct trial_view *trial)
{
    arena_release(&trial->arena);
    free(trial);
}

bool trial_view_has_moved(const struct trial_view *before, const struct trial_view *after)
{
    return before->succeeded != after->succeeded || before->failed != after->failed ||
           before->suspend != after->suspend || before->suspended != after->suspended ||
           before->suspended_ms != after->suspended_ms || strcmp(before->sweep_uid, after->sweep_uid) != 0;
}

/* NULL: there is none with a finite value. */
static const struct progress_metric *find_metric(const struct trial_view *trial, const char *name)
{
    for (unsigned i = 0; i < trial->metric_count; i++) {
        const struct progress_metric *metric = &trial->metrics[i];
        double number;
        if (metric->name && metric->value && strcmp(metric->name, name) == 0)
            return finite_number(metric->value, &number) ? metric : NULL;
    }
    return NULL;
}

const char *trial_view_metric(const struct trial_view *trial, const char *name)
{
    const struct progress_metric *metric = find_metric(trial, name);
    return metric ? metric->value : NULL;
}

int64_t trial_view_steps(const struct trial_view *trial, const char *name)
{
    const struct progress_metric *metric = find_metric(trial, name);
    if (!metric)
        return -1;
    return metric->step != FIELD_UNSET ? metric->step : trial->step != FIELD_UNSET ? trial->step : -1;
}
