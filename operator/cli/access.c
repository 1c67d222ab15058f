/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/access.h"

int access_check(struct access *access, const struct informer *informer, int64_t now_ms, struct error *error)
{
    const struct error *refusal = informer_refusal(informer);
    if (!refusal)
        access->refused_ms = 0;
    else if (access->refused_ms == 0)
        access->refused_ms = now_ms;
    if (!refusal || (informer_synced(informer) && now_ms - access->refused_ms < ACCESS_PATIENCE_MS))
        return 0;
    if (refusal->http_status == 404)
        return error_set(error, refusal->kind, "the cluster does not know TrainingJobs (%s); install Coxswain in it",
                         refusal->message);
    if (error)
        *error = *refusal;
    return -1;
}

bool access_is_denied(const struct error *error)
{
    return error->http_status == 401 || error->http_status == 403;
}

void access_explain(struct error *error)
{
    const struct error refusal = *error;
    if (refusal.http_status == 401)
        error_set(error, refusal.kind, "%s: the cluster does not accept the kubeconfig's credentials; renew them",
                  refusal.message);
    else if (refusal.http_status == 403)
        error_set(error, refusal.kind,
                  "%s; a RoleBinding to the ClusterRole view allows reading, one to the ClusterRole edit also changing",
                  refusal.message);
    error->http_status = refusal.http_status;
}
