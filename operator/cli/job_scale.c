/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_scale.h"

int job_scale(struct cluster *cluster, const char *name, int64_t workers, struct error *error)
{
    SCOPED_JSON *patch = json_new_object();
    json_set_integer(json_set_object(patch, "spec"), "replicas", workers);
    struct resource_path path = cluster_job_path(cluster, name);
    path.subresource = "scale";
    return cluster_patch(cluster, &path, patch, error);
}
