/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/command.h"
#include "operator/cli/job_evidence.h"
#include "operator/cli/sweep_print.h"
#include "operator/cli/sweep_read.h"

static const struct command_usage usage = {
    .text = "usage: cox why NAME\n"
            "\n"
            "Says in one sentence what the job waits for: a person, a quota, a node, an image, a volume, a pod that\n"
            "does not end or is not ready, the end of a back-off. `cox describe` shows all that is known about a job.\n"
            "Of a sweep it says the same, and why trials failed, with their values.\n"
            "\n"
            "Exit code: 0 printed, 1 there is no such job or the cluster did not answer, 2 wrong usage.\n",
    .options = "s",
    .names_min = 1,
    .names_max = 1};

/* `trial` NULL: about the sweep; otherwise about its trial of that name, which has no job if its values make no valid one. */
static int why_sweep(struct cluster *cluster, const char *name, const char *trial, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    SCOPED(sweep_trials_release) struct sweep_trials trials = {.count = 0};
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (sweep_read(cluster, name, &sweep, NULL, error) < 0 || sweep_trials_read(cluster, &sweep, &trials, error) < 0)
        return -1;
    if (!trial)
        sweep_print_why(&trials.view, &text);
    for (size_t i = 0; trial && i < trials.view.count; i++)
        if (strcmp(trials.view.trials[i]->name, trial) == 0 &&
            (trials.view.trials[i]->failed || trials.view.trials[i]->diverged))
            sweep_print_end(&sweep, trials.view.trials[i], &text);
    fputs(buffer_text(&text), stdout);
    return text.length > 0 ? 0 : -1;
}

static int why_no_job(struct cluster *cluster, const char *name)
{
    const char *dash = strrchr(name, '-');
    SCOPED_FREE char *before = dash ? memory_copy_bytes(name, (size_t)(dash - name)) : NULL;
    struct error unused = ERROR_INIT;
    if (why_sweep(cluster, name, NULL, &unused) == 0)
        return 0;
    return before && *before ? why_sweep(cluster, before, name, &unused) : -1;
}

static int why(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED(job_evidence_release) struct job_evidence evidence = {.job = NULL};
    if (job_evidence_gather(cluster, line->names[0], &evidence, error) < 0)
        return error->kind == ERROR_NOT_FOUND && why_no_job(cluster, line->names[0]) == 0 ? 0 : -1;
    struct why_input input = job_evidence_input(&evidence);
    SCOPED_BUFFER text = BUFFER_INIT(WHY_MAX);
    why_print(&input, &text);
    puts(buffer_text(&text));
    return 0;
}

int command_why(int count, char **words)
{
    return command_in_cluster(count, words, &usage, why);
}
