/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/command.h"
#include "operator/cli/job_await.h"

static const struct command_usage usage = {
    .text = "usage: cox delete NAME… [--no-wait] [--timeout TIME]\n"
            "\n"
            "Deletes jobs with their pods and Services. Their checkpoints and exported weights are kept.\n"
            "\n"
            "  --no-wait        do not wait until the jobs are gone\n"
            "  --timeout TIME   wait no longer than that: 90, 90s, 5m, 2h (default: for ever)\n"
            "\n"
            "Exit code: 0 done, 1 a job does not exist or the cluster refused, 2 wrong usage, 3 timed out.\n",
    .use = COMMAND_DELETES,
    .options = "Nm",
    .names_min = 1,
    .names_max = 1000};

static enum await_end is_gone(const struct json *job, const void *context)
{
    (void)context;
    return job ? AWAIT_GOES_ON : AWAIT_HOLDS;
}

static int delete_jobs(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count && !cluster->interrupted; i++) {
        struct resource_path path = cluster_job_path(cluster, line->names[i]);
        enum await_end end = AWAIT_HOLDS;
        if (cluster_delete(cluster, &path, error) < 0 ||
            (!line->no_wait && job_await(cluster, line->names[i], is_gone, NULL, line->timeout_ms, &end, error) < 0))
            return -1;
        if (end == AWAIT_TIMEOUT) {
            fprintf(stderr, "cox delete: %s: timed out while waiting for its deletion\n", line->names[i]);
            return EXIT_TIMEOUT;
        }
        bool gone = !line->no_wait && end == AWAIT_HOLDS;
        printf("%s is %s\n", line->names[i], gone ? "deleted" : "being deleted");
    }
    return EXIT_SUCCESS;
}

int command_delete(int count, char **words)
{
    return command_in_cluster(count, words, &usage, delete_jobs);
}
