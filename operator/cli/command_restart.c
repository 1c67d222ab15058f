/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/command.h"
#include "operator/cli/job_control.h"
#include "operator/cli/pod_place.h"

static const struct command_usage usage = {
    .text = "usage: cox restart NAME [--role ROLE --index N] [--timeout TIME]\n"
            "\n"
            "Restarts all pods of a job from its last checkpoint: suspends the job, waits until its pods are gone, and "
            "resumes\n"
            "it. With a role and an index it deletes that one pod, which is replaced as after a preemption. Neither "
            "counts\n"
            "against backoffLimit. A job that is suspended already stays suspended: see cox resume.\n"
            "\n"
            "  --role ROLE      worker (default), chief, ps or evaluator\n"
            "  --index N        of that role, from 0\n"
            "  --timeout TIME   how long the pods may take to end (default: 5m); after that the job stays suspended\n"
            "\n"
            "Exit code: 0 done, 1 the cluster refused, there is no such pod, or the job is over or suspended, 2 wrong "
            "usage, 3 timed\n"
            "out, 130 interrupted (while it waits: the job stays suspended).\n",
    .use = COMMAND_CONTROLS,
    .options = "rim",
    .names_min = 1,
    .names_max = 1};

static int restart_crew(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    const char *name = line->names[0];
    int64_t timeout_ms = line->timeout_ms < 0 ? JOB_RESTART_TIMEOUT_MS : line->timeout_ms;
    enum await_end end;
    if (job_suspend(cluster, name, true, error) < 0)
        return -1;
    printf("%s: waiting until all its pods are gone\n", name);
    fflush(stdout);
    if (job_await(cluster, name, job_restart_question, NULL, timeout_ms, &end, error) < 0)
        return error_wrap(error, "%s stays suspended (cox resume %s)", name, name);
    if (end == AWAIT_NEVER)
        return error_set(error, ERROR_INVALID, "%s is over, or gone: there is nothing to restart", name);
    if (end == AWAIT_TIMEOUT)
        fprintf(stderr, "cox restart: %s: its pods are not gone yet; it stays suspended (cox why %s, cox resume %s)\n",
                name, name, name);
    if (end != AWAIT_HOLDS)
        return EXIT_TIMEOUT;
    if (job_suspend(cluster, name, false, error) < 0)
        return -1;
    printf("%s starts over from its last checkpoint\n", name);
    return EXIT_SUCCESS;
}

static int restart_pod(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    const char *role = line->role ? line->role : "worker";
    SCOPED_JSON *pods = NULL;
    if (cluster_pods(cluster, line->names[0], &pods, error) < 0)
        return -1;
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod)) {
        if (!pod_is_current(pod) || !pod_is_at(pod, role, line->index))
            continue;
        struct resource_path path = {KUBE_PODS, cluster->name_space, json_string_at(pod, "metadata.name", ""), NULL};
        if (cluster_delete(cluster, &path, error) < 0)
            return -1;
        printf("pod %s is being deleted\n", path.name);
        return EXIT_SUCCESS;
    }
    return error_set(error, ERROR_NOT_FOUND, "%s has no %s %" PRId64, line->names[0], role, line->index);
}

static int restart(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    if (line->role && line->index < 0)
        return command_usage(false, usage.text);
    if (job_restart_check(cluster, line->names[0], error) < 0)
        return -1;
    return line->index >= 0 ? restart_pod(cluster, line, error) : restart_crew(cluster, line, error);
}

int command_restart(int count, char **words)
{
    return command_in_cluster(count, words, &usage, restart);
}
