/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "operator/cli/command.h"
#include "operator/cli/job_describe.h"
#include "operator/cli/job_evidence.h"

static const struct command_usage usage = {
    .text = "usage: cox describe NAME…\n"
            "\n"
            "Shows all that is known about jobs: their spec, progress, conditions, pods and last events and, in\n"
            "the last line, what they wait for.\n"
            "\n"
            "Exit code: 0 shown, 1 there is no such job or the cluster did not answer, 2 wrong usage.\n",
    .options = "s",
    .names_min = 1,
    .names_max = 1000};

static int describe(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count; i++) {
        SCOPED(job_evidence_release) struct job_evidence evidence = {.job = NULL};
        SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
        if (job_evidence_gather(cluster, line->names[i], &evidence, error) < 0)
            return -1;
        struct why_input input = job_evidence_input(&evidence);
        job_describe(&input, &text);
        printf("%s%s", i > 0 ? "\n" : "", buffer_text(&text));
    }
    return 0;
}

int command_describe(int count, char **words)
{
    return command_in_cluster(count, words, &usage, describe);
}
