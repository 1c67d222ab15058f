/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_control.h"

#include "operator/cli/job_condition.h"

static int suspend_object(struct cluster *cluster, const struct resource_path *path, bool suspend, struct error *error)
{
    SCOPED_JSON *patch = json_new_object();
    json_set_boolean(json_set_object(patch, "spec"), "suspend", suspend);
    return cluster_patch(cluster, path, patch, error);
}

int job_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error)
{
    struct resource_path path = cluster_job_path(cluster, name);
    return suspend_object(cluster, &path, suspend, error);
}

int sweep_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error)
{
    struct resource_path path = cluster_sweep_path(cluster, name);
    return suspend_object(cluster, &path, suspend, error);
}

int job_scale(struct cluster *cluster, const char *name, int64_t workers, struct error *error)
{
    SCOPED_JSON *patch = json_new_object();
    json_set_integer(json_set_object(patch, "spec"), "replicas", workers);
    struct resource_path path = cluster_job_path(cluster, name);
    path.subresource = "scale";
    return cluster_patch(cluster, &path, patch, error);
}

int job_restart_check(struct cluster *cluster, const char *name, struct error *error)
{
    SCOPED_JSON *job = NULL;
    struct resource_path path = cluster_job_path(cluster, name);
    if (cluster_get(cluster, &path, &job, error) < 0)
        return -1;
    if (job_is_over(job))
        return error_set(error, ERROR_INVALID, "%s is over: there is nothing to restart; create it anew", name);
    if (json_boolean_at(job, "spec.suspend", false))
        return error_set(error, ERROR_INVALID,
                         "%s is suspended: `cox resume %s` starts its crew over from the last checkpoint", name, name);
    return 0;
}

enum await_end job_restart_question(const struct json *job, const void *context)
{
    (void)context;
    if (job_is_over(job))
        return AWAIT_NEVER;
    return job_condition_true(job, "Suspended") && !job_has_news(job) ? AWAIT_HOLDS : AWAIT_GOES_ON;
}
