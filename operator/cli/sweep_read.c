/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_read.h"

#include <stdlib.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/job_condition.h"

int sweep_read(struct cluster *cluster, const char *name, struct training_sweep *ret_sweep, struct json **ret_object,
               struct error *error)
{
    struct resource_path path = cluster_sweep_path(cluster, name);
    SCOPED_JSON *object = NULL;
    if (cluster_get(cluster, &path, &object, error) < 0)
        return -1;
    training_sweep_parse(object, ret_sweep, NULL);
    if (ret_object) {
        *ret_object = object;
        object = NULL;
    }
    return 0;
}

void sweep_trials_release(struct sweep_trials *trials)
{
    sweep_view_release(&trials->view);
    for (size_t i = 0; i < trials->count; i++)
        trial_line_free(trials->lines[i]);
    free(trials->lines);
}

static void trials_add(struct sweep_trials *trials, struct trial_line *line)
{
    trials->lines[trials->count++] = line;
    if (line->number >= 0)
        sweep_view_add(&trials->view, line);
}

int sweep_trials_read(struct cluster *cluster, const struct training_sweep *sweep, struct sweep_trials *ret_trials,
                      struct error *error)
{
    SCOPED_FREE char *selector = memory_format("%s=%s", LABEL_SWEEP_NAME, sweep->name);
    SCOPED_JSON *jobs = NULL;
    *ret_trials = (struct sweep_trials){.view = {.sweep = sweep}};
    if (cluster_list(cluster, (struct kube_resource){API_GROUP, API_VERSION, TRAINING_JOB_PLURAL}, cluster->name_space,
                     selector, &jobs, error) < 0)
        return -1;
    ret_trials->lines = memory_allocate(json_count(jobs) + 1, sizeof *ret_trials->lines);
    ret_trials->view.interrupted = cluster->kept && !sweep_is_over(sweep);
    ret_trials->view.again = cluster->again;
    for (struct json *job = json_first(jobs); job; job = json_next(job)) {
        if (ret_trials->view.interrupted)
            job_mark_interrupted(job, cluster->again);
        trials_add(ret_trials, trial_line_new(sweep, job));
    }
    sweep_view_complete(&ret_trials->view);
    return 0;
}
