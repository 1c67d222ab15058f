/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/labels.h"
#include "operator/controller/plan/policies.h"

/* Finds a pod that the garbage collector does not delete, because its job was deleted with --cascade=orphan. */
static const struct pod_view *lasting(const struct planning *planning)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        if (*pod->owner_uid == '\0' && pod_view_is_of_another_job(pod, planning->job->uid) && !pod_view_deleting(pod))
            return pod;
    }
    return NULL;
}

/* All of that job at once, where its UID is on them. */
static const char *with_advice(struct planning *planning, const char *message, const struct pod_view *pod)
{
    bool by_job = *pod->job_uid != '\0';
    return planning_format(
        planning, "%s; %s has no owner and stays until a user deletes it: kubectl -n %s delete pods %s%s", message,
        pod->name, planning->job->namespace, by_job ? "-l " LABEL_JOB_UID "=" : "", by_job ? pod->job_uid : pod->name);
}

/* Names of pods and of the Service follow from the job's name: an earlier job's children would be in the way. They go
 * when the garbage collector gets to them. */
bool leftovers_plan(struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    bool service_left = service && service->of_job && !service_view_is_of(service, planning->job->uid);
    if (planning->old->attempt > 0 || (planning->crew.leftover_count == 0 && !service_left))
        return false;
    size_t count = planning->crew.leftover_count;
    const char *message = planning_format(
        planning, "waiting until %zu pod%s%s of an earlier job of the same name %s gone", count, count == 1 ? "" : "s",
        service_left ? " and the Service" : "", count == 1 && !service_left ? "is" : "are");
    const struct pod_view *pod = lasting(planning);
    if (pod)
        message = with_advice(planning, message, pod);
    condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, "WaitingForPredecessor", message);
    return true;
}
