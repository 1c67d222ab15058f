/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "operator/cli/command.h"
#include "operator/cli/job_control.h"

static const struct command_usage usage = {
    .text = "usage: cox scale NAME --workers N\n"
            "\n"
            "Changes the number of workers of an elastic job, between its minReplicas and maxReplicas. The highest "
            "indices\n"
            "go first, never worker 0.\n"
            "\n"
            "Exit code: 0 done, 1 the cluster refused (the job is not elastic, or the number is out of its bounds), 2 "
            "wrong\n"
            "usage.\n",
    .use = COMMAND_CONTROLS,
    .options = "W",
    .names_min = 1,
    .names_max = 1};

static int scale(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    if (line->workers < 0)
        return command_usage(false, usage.text);
    if (job_scale(cluster, line->names[0], line->workers, error) < 0)
        return -1;
    printf("%s: %" PRId64 " worker%s\n", line->names[0], line->workers, line->workers == 1 ? "" : "s");
    return 0;
}

int command_scale(int count, char **words)
{
    return command_in_cluster(count, words, &usage, scale);
}
