/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "operator/cli/command.h"
#include "operator/cli/job_control.h"

static const struct command_usage suspend_usage = {
    .text = "usage: cox suspend NAME…\n"
            "\n"
            "Suspends jobs: the operator removes all their pods, until `cox resume` lets them continue from the last\n"
            "checkpoint. Coxswain's own workers save their state before they end (checkpoint.onPreemption). The time "
            "during\n"
            "which a job is suspended does not count towards activeDeadlineSeconds.\n"
            "\n"
            "Exit code: 0 requested (`cox wait NAME --for Suspended` waits until all pods are gone), 1 the cluster "
            "refused,\n"
            "2 wrong usage.\n",
    .use = COMMAND_CONTROLS,
    .options = "",
    .names_min = 1,
    .names_max = 1000};

static int suspend(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count && !cluster->interrupted; i++) {
        if (job_suspend(cluster, line->names[i], true, error) < 0)
            return -1;
        printf("%s is being suspended\n", line->names[i]);
    }
    return 0;
}

int command_suspend(int count, char **words)
{
    return command_in_cluster(count, words, &suspend_usage, suspend);
}

static const struct command_usage resume_usage = {
    .text = "usage: cox resume NAME…\n"
            "\n"
            "Resumes suspended jobs: the operator creates their pods again, which continue from the last checkpoint.\n"
            "\n"
            "Exit code: 0 requested, 1 the cluster refused, 2 wrong usage.\n",
    .use = COMMAND_CONTROLS,
    .options = "",
    .names_min = 1,
    .names_max = 1000};

static int resume(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count && !cluster->interrupted; i++) {
        if (job_suspend(cluster, line->names[i], false, error) < 0)
            return -1;
        printf("%s goes on\n", line->names[i]);
    }
    return 0;
}

int command_resume(int count, char **words)
{
    return command_in_cluster(count, words, &resume_usage, resume);
}
