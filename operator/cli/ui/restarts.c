/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/restarts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/cli/job_control.h"

#define RESTARTS_MAX 32
#define NAME_MAX_LENGTH 254
#define RUN_MAX_LENGTH 1024
#define INTERVAL_NS 500000000LL

struct restart {
    char run[RUN_MAX_LENGTH], name_space[NAME_MAX_LENGTH], name[NAME_MAX_LENGTH];
    int64_t next_ns, end_ns; /* when the job is read again, and when it is left suspended */
};

struct ui_restarts {
    struct restart jobs[RESTARTS_MAX];
    unsigned count;
};

struct ui_restarts *ui_restarts_new(void)
{
    return memory_allocate(1, sizeof(struct ui_restarts));
}

void ui_restarts_free(struct ui_restarts *restarts)
{
    free(restarts);
}

bool ui_restarts_has(const struct ui_restarts *restarts, const char *run, const char *name_space, const char *name)
{
    for (unsigned i = 0; i < restarts->count; i++)
        if (strcmp(restarts->jobs[i].run, run) == 0 && strcmp(restarts->jobs[i].name_space, name_space) == 0 &&
            strcmp(restarts->jobs[i].name, name) == 0)
            return true;
    return false;
}

int ui_restarts_begin(struct ui_restarts *restarts, struct cluster *cluster, const char *run, const char *name,
                      struct error *error)
{
    if (ui_restarts_has(restarts, run, cluster->name_space, name))
        return 0;
    if (restarts->count == RESTARTS_MAX)
        return error_set(error, ERROR_INVALID, "%u jobs are being restarted: wait until one goes on", RESTARTS_MAX);
    if (job_restart_check(cluster, name, error) < 0 || job_suspend(cluster, name, true, error) < 0)
        return -1;
    struct restart *restart = &restarts->jobs[restarts->count++];
    *restart = (struct restart){.end_ns = clock_monotonic_ns() + JOB_RESTART_TIMEOUT_MS * 1000000LL};
    snprintf(restart->run, sizeof restart->run, "%s", run);
    snprintf(restart->name_space, sizeof restart->name_space, "%s", cluster->name_space);
    snprintf(restart->name, sizeof restart->name, "%s", name);
    return 0;
}

/* Returns whether the restart is done, or cannot be. What cannot be read now is read again later. */
static bool advance(const struct restart *restart, struct cluster *cluster)
{
    SCOPED_JSON *job = NULL;
    struct error cause = ERROR_INIT;
    struct resource_path path = cluster_job_path(cluster, restart->name);
    if (cluster_get(cluster, &path, &job, &cause) < 0)
        return cause.http_status == 404;
    if (!json_boolean_at(job, "spec.suspend", false))
        return true;
    enum await_end end = job_restart_question(job, NULL);
    return end == AWAIT_NEVER || (end == AWAIT_HOLDS && job_suspend(cluster, restart->name, false, &cause) == 0);
}

void ui_restarts_work(struct ui_restarts *restarts, struct cluster *cluster,
                      bool (*enter)(void *context, const char *run), void *context)
{
    const char *name_space = cluster->name_space;
    for (unsigned i = restarts->count; i-- > 0 && !cluster->interrupted;) {
        struct restart *restart = &restarts->jobs[i];
        int64_t now = clock_monotonic_ns();
        if (now < restart->next_ns)
            continue;
        restart->next_ns = now + INTERVAL_NS;
        cluster->name_space = restart->name_space;
        if ((enter && !enter(context, restart->run)) || advance(restart, cluster) || now >= restart->end_ns)
            *restart = restarts->jobs[--restarts->count];
        cluster->name_space = name_space;
    }
}
