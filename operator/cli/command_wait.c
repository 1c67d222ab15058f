/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/command.h"
#include "operator/cli/job_await.h"
#include "operator/cli/job_condition.h"

static const struct command_usage usage = {
    .text =
        "usage: cox wait NAME [options]\n"
        "\n"
        "Waits until the job or sweep is over, or is in the state that --for names.\n"
        "\n"
        "  --for WHAT       Succeeded (of a sweep: Complete), Failed, Running, Suspended or Deleted\n"
        "  --timeout TIME   wait no longer than that: 90, 90s, 5m, 2h (default: for ever)\n"
        "\n"
        "Exit code: 0 the job has reached the state (without --for: it has succeeded), 1 it can no longer reach it\n"
        "(it has ended otherwise, or was deleted), 2 wrong usage, 3 timed out, 130 interrupted.\n",
    .options = "Fms",
    .names_min = 1,
    .names_max = 1};

/* Prints how the job ended, unless it was deleted. */
static void tell(const struct json *job, const char *name)
{
    static const char *const ends[] = {"Failed", "Succeeded", "Complete"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (job_condition_true(job, ends[i]))
            printf("%s: %s: %s\n", name, ends[i], json_string_at(job_condition(job, ends[i]), "message", ""));
}

/* Sweeps are Complete, and jobs have Succeeded: either word stands for both. */
static bool holds(const struct json *object, const char *wanted)
{
    if (strcmp(wanted, "Succeeded") == 0 || strcmp(wanted, "Complete") == 0)
        return job_condition_true(object, "Succeeded") || job_condition_true(object, "Complete");
    return job_condition_true(object, wanted);
}

static enum await_end has_come(const struct json *job, const void *context)
{
    const struct command_line *line = context;
    const char *wanted = line->condition ? line->condition : "Succeeded";
    if (strcmp(wanted, "Deleted") == 0)
        return !job ? AWAIT_HOLDS : line->kept ? AWAIT_NEVER : AWAIT_GOES_ON;
    bool over = job_is_over(job);
    if (over)
        tell(job, line->names[0]);
    bool is_stale = line->kept && strcmp(wanted, "Running") == 0;
    bool has_reached = !is_stale && holds(job, wanted);
    if (line->kept && !over && !has_reached) {
        printf("%s: it was %s; %s%s\n", line->names[0],
               json_boolean_at(job, "spec.suspend", false) ? "suspended" : "interrupted",
               line->again ? "to continue: " : "run the same command again to continue",
               line->again ? line->again : "");
        return AWAIT_NEVER;
    }
    if (has_reached && (over || line->kept || !job_has_news(job)))
        return AWAIT_HOLDS;
    return over ? AWAIT_NEVER : AWAIT_GOES_ON;
}

/* A name that both a job and a sweep have is the job's. */
static bool is_sweep(struct cluster *cluster, const char *name)
{
    struct resource_path job = cluster_job_path(cluster, name), sweep = cluster_sweep_path(cluster, name);
    SCOPED_JSON *object = NULL;
    struct error error = ERROR_INIT;
    return cluster_get(cluster, &job, &object, &error) < 0 && error.kind == ERROR_NOT_FOUND &&
           cluster_get(cluster, &sweep, &object, &error) == 0;
}

static int wait_for(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    const char *name = line->names[0];
    enum await_end end = AWAIT_GOES_ON;
    bool sweep = is_sweep(cluster, name);
    if ((sweep ? sweep_await : job_await)(cluster, name, has_come, line, line->timeout_ms, &end, error) < 0)
        return -1;
    if (end == AWAIT_TIMEOUT)
        fprintf(stderr, "cox wait: %s: timed out\n", name);
    struct resource_path path = sweep ? cluster_sweep_path(cluster, name) : cluster_job_path(cluster, name);
    SCOPED_JSON *object = NULL;
    if (end == AWAIT_NEVER && cluster_get(cluster, &path, &object, error) < 0)
        return -1;
    return end == AWAIT_HOLDS ? EXIT_SUCCESS : end == AWAIT_TIMEOUT ? EXIT_TIMEOUT : EXIT_FAILURE;
}

static bool is_known(const char *word)
{
    static const char *const known[] = {"Succeeded", "Complete", "Failed", "Running", "Suspended", "Deleted"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word, known[i]) == 0)
            return true;
    return false;
}

static int checked(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    if (!line->condition || is_known(line->condition))
        return wait_for(cluster, line, error);
    fprintf(stderr, "cox wait: --for %s: it takes Succeeded, Complete, Failed, Running, Suspended or Deleted\n",
            line->condition);
    return EXIT_USAGE;
}

int command_wait(int count, char **words)
{
    return command_in_cluster(count, words, &usage, checked);
}
