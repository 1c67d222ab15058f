/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "common/clock.h"
#include "operator/cli/command.h"
#include "operator/cli/job_describe.h"
#include "operator/cli/job_evidence.h"
#include "operator/cli/sweep_print.h"
#include "operator/cli/sweep_read.h"

static const struct command_usage usage = {
    .text = "usage: cox describe NAME…\n"
            "\n"
            "Shows all that is known about jobs: their spec, progress, conditions, pods and last events and, in\n"
            "the last line, what they wait for. Of sweeps: their progress, their trials, and what `cox why` says.\n"
            "\n"
            "Exit code: 0 shown, 1 there is no such job or the cluster did not answer, 2 wrong usage.\n",
    .options = "s",
    .names_min = 1,
    .names_max = 1000};

static int describe_sweep(struct cluster *cluster, const char *name, struct buffer *out, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    SCOPED(sweep_trials_release) struct sweep_trials trials = {.count = 0};
    if (sweep_read(cluster, name, &sweep, NULL, error) < 0 || sweep_trials_read(cluster, &sweep, &trials, error) < 0)
        return -1;
    sweep_print_block(&trials.view, clock_now_ms(), UINT_MAX, out);
    buffer_append_byte(out, '\n', NULL);
    sweep_print_table(&trials.view, out);
    buffer_append_byte(out, '\n', NULL);
    sweep_print_why(&trials.view, out);
    return 0;
}

static int describe_job(struct cluster *cluster, const char *name, struct buffer *out, struct error *error)
{
    SCOPED(job_evidence_release) struct job_evidence evidence = {.job = NULL};
    if (job_evidence_gather(cluster, name, &evidence, error) < 0)
        return -1;
    struct why_input input = job_evidence_input(&evidence);
    job_describe(&input, out);
    return 0;
}

static int describe(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count; i++) {
        SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
        if (describe_job(cluster, line->names[i], &text, error) < 0 &&
            (error->kind != ERROR_NOT_FOUND || describe_sweep(cluster, line->names[i], &text, NULL) < 0))
            return -1;
        printf("%s%s", i > 0 ? "\n" : "", buffer_text(&text));
    }
    return 0;
}

int command_describe(int count, char **words)
{
    return command_in_cluster(count, words, &usage, describe);
}
