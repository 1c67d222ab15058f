/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/gang.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/job/job_roles.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/quantity.h"

#define VOLCANO_SCHEDULER "volcano"

static const struct gang_kind kinds[] = {
    [GANG_VOLCANO] = {.group = "scheduling.volcano.sh", .versions = {"v1beta1"}, .waits = true},
    [GANG_COSCHEDULING] = {.group = "scheduling.x-k8s.io", .versions = {"v1alpha1"}},
    [GANG_NATIVE] = {.group = "scheduling.k8s.io", .versions = {"v1beta1", "v1alpha3", "v1alpha2"}},
};

const struct gang_kind *gang_kind_of(enum gang_scheduler scheduler)
{
    return scheduler == GANG_NONE ? NULL : &kinds[scheduler];
}

/* ---------------------------------------------------------------- how many */

/* Pods of a role that must be placed together with the others: none of the evaluator, of elastic workers the least. */
static int64_t role_minimum(const struct training_job *job, enum role role)
{
    return role == ROLE_EVALUATOR ? 0 : job_role_minimum(job, role);
}

/* minAvailable, or the sum over the roles. */
static int64_t minimum(const struct training_job *job)
{
    int64_t sum = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        sum += role_minimum(job, (enum role)role);
    int64_t given = job->run_policy.gang.min_available;
    return given != FIELD_UNSET ? given : sum;
}

/* Whether the crew needs every one of its pods. */
static bool is_indivisible(const struct training_job *job)
{
    int64_t pods = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        pods += job_role_count(job, (enum role)role);
    return minimum(job) == pods;
}

/* ---------------------------------------------------------------- the group */

static int add_resources(struct json *spec, const struct pod_builder *builder, struct error *error)
{
    int64_t left = minimum(builder->job);
    struct json *sum = json_set(spec, "minResources", json_new_object());
    for (int role = 0; role < ROLE_COUNT && left > 0; role++) {
        int64_t count = role_minimum(builder->job, (enum role)role);
        SCOPED_JSON *pod = NULL;
        if (count == 0)
            continue;
        if (pod_build(builder, (enum role)role, 0, &pod, error) < 0)
            return -1;
        SCOPED_JSON *one = quantities_of_pod(json_member(pod, "spec"));
        quantities_add(sum, one, count < left ? count : left);
        left -= count < left ? count : left;
    }
    return 0;
}

static void fill_tasks(struct json *spec, const struct training_job *job)
{
    if (job->run_policy.gang.min_available != FIELD_UNSET)
        return;
    struct json *tasks = json_set(spec, "minTaskMember", json_new_object());
    for (int role = 0; role < ROLE_COUNT; role++)
        if (role_minimum(job, (enum role)role) > 0)
            json_set_integer(tasks, role_name((enum role)role), role_minimum(job, (enum role)role));
}

static int fill_volcano(struct json *spec, const struct pod_builder *builder, struct error *error)
{
    const struct run_policy *policy = &builder->job->run_policy;
    json_set_integer(spec, "minMember", minimum(builder->job));
    fill_tasks(spec, builder->job);
    json_set_string(spec, "queue", policy->gang.queue);
    json_set_string(spec, "priorityClassName", policy->priority_class_name);
    return add_resources(spec, builder, error);
}

static int fill_coscheduling(struct json *spec, const struct pod_builder *builder, struct error *error)
{
    int64_t timeout = builder->job->run_policy.gang.schedule_timeout_seconds;
    json_set_integer(spec, "minMember", minimum(builder->job));
    if (timeout != FIELD_UNSET)
        json_set_integer(spec, "scheduleTimeoutSeconds", timeout);
    return add_resources(spec, builder, error);
}

/* From Kubernetes 1.37 on, a pod is refused if its priority is not its group's. A template may name another PriorityClass than the run
 * policy, so the group gets the pod's. */
static int fill_native(struct json *spec, const struct pod_builder *builder, struct error *error)
{
    SCOPED_JSON *pod = NULL;
    if (pod_build(builder, crew_chief_role(builder->job), 0, &pod, error) < 0)
        return -1;
    const char *priority_class = json_string_at(pod, "spec.priorityClassName", NULL);
    if (priority_class)
        json_set_string(spec, "priorityClassName", priority_class);
    struct json *policy = json_set(spec, "schedulingPolicy", json_new_object());
    json_set_integer(json_set(policy, "gang", json_new_object()), "minCount", minimum(builder->job));
    const char *topology_key = builder->job->run_policy.gang.topology_key;
    if (topology_key) {
        struct json *constraints = json_set(spec, "schedulingConstraints", json_new_object());
        struct json *constraint = json_append(json_set(constraints, "topology", json_new_array()), json_new_object());
        json_set_string(constraint, "key", topology_key);
    }
    return 0;
}

/* Preempted as a whole, since the rest of such a crew would only hold devices. Kubernetes 1.36 (v1alpha2) has a word for it, and leaves it
 * out unless the feature gate WorkloadAwarePreemption is open. */
static void set_disrupted_whole(struct json *spec, const char *version)
{
    if (strcmp(version, "v1alpha2") == 0)
        json_set_string(spec, "disruptionMode", "PodGroup");
    else
        json_set_object(json_set_object(spec, "disruptionMode"), "all");
}

int gang_build(const struct pod_builder *builder, const char *version, struct json **ret_group, struct error *error)
{
    static int (*const fill[])(struct json * spec, const struct pod_builder *builder, struct error *error) = {
        [GANG_VOLCANO] = fill_volcano,
        [GANG_COSCHEDULING] = fill_coscheduling,
        [GANG_NATIVE] = fill_native,
    };
    const struct training_job *job = builder->job;
    enum gang_scheduler scheduler = job->run_policy.gang.scheduler;
    SCOPED_FREE char *api_version = memory_format("%s/%s", kinds[scheduler].group, version);
    SCOPED_JSON *group = json_new_object();
    json_set_string(group, "apiVersion", api_version);
    json_set_string(group, "kind", "PodGroup");
    child_metadata_fill(json_set(group, "metadata", json_new_object()), job, job->name);
    if (fill[scheduler](json_set(group, "spec", json_new_object()), builder, error) < 0)
        return -1;
    if (scheduler == GANG_NATIVE && is_indivisible(job))
        set_disrupted_whole(json_member(group, "spec"), version);
    *ret_group = group;
    group = NULL;
    return 0;
}

/* ---------------------------------------------------------------- its pods */

static void set_scheduler(struct json *spec, const char *name)
{
    if (json_string_at(spec, "schedulerName", "")[0] == '\0')
        json_set_string(spec, "schedulerName", name);
}

void gang_mark(struct json *pod, const struct training_job *job, enum role role, const char *scheduler_name)
{
    struct json *metadata = json_member(pod, "metadata"), *spec = json_member(pod, "spec");
    switch (job->run_policy.gang.scheduler) {
    case GANG_VOLCANO:
        json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_VOLCANO_GROUP, job->name);
        json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_VOLCANO_TASK, role_name(role));
        set_scheduler(spec, VOLCANO_SCHEDULER);
        return;
    case GANG_COSCHEDULING:
        json_set_string(json_set_object(metadata, "labels"), LABEL_COSCHEDULING_GROUP, job->name);
        set_scheduler(spec, scheduler_name);
        return;
    case GANG_NATIVE:
        json_set_string(json_set_object(spec, "schedulingGroup"), "podGroupName", job->name);
        return;
    default:
        return;
    }
}
