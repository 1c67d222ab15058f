/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "operator/cli/command.h"
#include "operator/cli/job_evidence.h"

static const struct command_usage usage = {
    .text = "usage: cox why NAME\n"
            "\n"
            "Says in one sentence what the job waits for: a person, a quota, a node, an image, a volume, a pod that\n"
            "does not end or is not ready, the end of a back-off. `cox describe` shows all that is known about a job.\n"
            "\n"
            "Exit code: 0 printed, 1 there is no such job or the cluster did not answer, 2 wrong usage.\n",
    .options = "s",
    .names_min = 1,
    .names_max = 1};

static int why(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED(job_evidence_release) struct job_evidence evidence = {.job = NULL};
    if (job_evidence_gather(cluster, line->names[0], &evidence, error) < 0)
        return -1;
    struct why_input input = job_evidence_input(&evidence);
    SCOPED_BUFFER text;
    buffer_init(&text, WHY_MAX);
    why_print(&input, &text);
    puts(buffer_text(&text));
    return 0;
}

int command_why(int count, char **words)
{
    return command_in_cluster(count, words, &usage, why);
}
