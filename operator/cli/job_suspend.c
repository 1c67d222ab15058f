/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_suspend.h"

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
