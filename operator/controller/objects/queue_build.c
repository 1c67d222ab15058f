/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/queue_build.h"

#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/job_roles.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/observed/queue_part.h"

#define PLACE_MAX (64 * 1024)

static struct json *begin(const struct training_job *job, const char *name, const char *version)
{
    struct json *workload = json_new_object();
    SCOPED_FREE char *api_version = memory_format("%s/%s", KUEUE_GROUP, version);
    json_set_string(workload, "apiVersion", api_version);
    json_set_string(workload, "kind", "Workload");
    struct json *metadata = json_set_object(workload, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", job->namespace);
    return workload;
}

/* ---------------------------------------------------------------- the Workload */

/* Kueue only needs the resources of pods and where they may run. Their environment is not needed, and large. */
static void leave_out_environment(struct json *spec)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (struct json *item = json_first(json_member(spec, lists[i])); item; item = json_next(item))
            json_remove(item, "env");
    json_remove(spec, "hostname");
    json_remove(spec, "subdomain");
}

/* What the template's annotations ask for. Pods are numbered, so that neighbouring ranks get neighbouring nodes. */
static void set_topology(struct json *set, const struct json *annotations)
{
    const char *required = json_string(json_member(annotations, ANNOTATION_TOPOLOGY_REQUIRED), NULL);
    const char *preferred = json_string(json_member(annotations, ANNOTATION_TOPOLOGY_PREFERRED), NULL);
    const char *unconstrained = json_string(json_member(annotations, ANNOTATION_TOPOLOGY_UNCONSTRAINED), NULL);
    bool anywhere = unconstrained && strcmp(unconstrained, "true") == 0;
    if (!required && !preferred && !anywhere)
        return;
    struct json *request = json_set_object(set, "topologyRequest");
    json_set_string(request, "podIndexLabel", LABEL_INDEX);
    if (required)
        json_set_string(request, "required", required);
    else if (preferred)
        json_set_string(request, "preferred", preferred);
    else
        json_set_boolean(request, "unconstrained", true);
}

int64_t queue_pods(const struct training_job *job, enum role role)
{
    bool all = role == ROLE_WORKER && job->elastic.enabled && job->elastic.wanted_workers > job->document.workers;
    return all ? job->elastic.wanted_workers : job_role_count(job, role);
}

/* `least` 0: all are needed. */
static struct json *pod_set_new(enum role role, int64_t count, int64_t least)
{
    struct json *set = json_new_object();
    json_set_string(set, "name", role_name(role));
    json_set_integer(set, "count", count);
    if (least > 0)
        json_set_integer(set, "minCount", least);
    return set;
}

static int64_t least_of(const struct training_job *job, enum role role, int64_t count)
{
    int64_t least = job_role_minimum(job, role);
    return least < count ? least : 0;
}

int64_t queue_least_workers(const struct training_job *job, int64_t workers)
{
    return least_of(job, ROLE_WORKER, workers);
}

char *queue_slice_name(const char *job_name)
{
    return memory_format("%s" QUEUE_SLICE_SUFFIX, job_name);
}

void queue_make_slice(struct json *workload, const struct training_job *job, const struct workload_view *replaced,
                      int64_t workers)
{
    SCOPED_FREE char *other = queue_slice_name(job->name);
    struct json *metadata = json_member(workload, "metadata"), *annotations = json_set_object(metadata, "annotations");
    json_set_string(metadata, "name", strcmp(replaced->name, job->name) == 0 ? other : job->name);
    SCOPED_FREE char *key = memory_format("%s/%s", job->namespace, replaced->name);
    json_set_string(annotations, ANNOTATION_QUEUE_REPLACES, key);
    json_set_string(annotations, ANNOTATION_QUEUE_ELASTIC, "true");
    child_label_number(annotations, ANNOTATION_QUEUE_SLICE, replaced->slice + 1);
    for (struct json *set = json_first(json_at(workload, "spec.podSets")); set; set = json_next(set)) {
        if (strcmp(json_string_at(set, "name", ""), role_name(ROLE_WORKER)) != 0)
            continue;
        json_set_integer(set, "count", workers);
        json_remove(set, "minCount"); /* Kueue admits no part of a slice */
    }
}

struct json *queue_build_size(const struct training_job *job, const char *version, const char *name, int64_t workers,
                              int64_t least)
{
    struct json *workload = begin(job, name, version);
    struct json *sets = json_set_array(json_set_object(workload, "spec"), "podSets");
    json_append(sets, pod_set_new(ROLE_WORKER, workers, least));
    return workload;
}

static int add_pod_set(struct json *sets, const struct pod_builder *builder, enum role role, struct error *error)
{
    SCOPED_JSON *pod = NULL;
    int64_t count = queue_pods(builder->job, role);
    if (count == 0)
        return 0;
    if (pod_build(builder, role, 0, &pod, error) < 0)
        return -1;
    struct json *set = json_append(sets, pod_set_new(role, count, least_of(builder->job, role, count)));
    set_topology(set, json_at(pod, "metadata.annotations"));
    struct json *spec = json_set(json_set_object(set, "template"), "spec", json_copy(json_member(pod, "spec")));
    leave_out_environment(spec);
    return 0;
}

struct queue_priority queue_priority_of(const struct training_job *job)
{
    bool of_kueue = job->queue_priority && job->queue_priority[0] != '\0';
    return (struct queue_priority){of_kueue ? job->queue_priority : job->run_policy.priority_class_name, of_kueue};
}

/* The two versions name a class differently. */
static void set_priority(struct json *spec, const char *version, const struct queue_priority *class, int64_t priority)
{
    json_set_integer(spec, "priority", priority);
    if (!class->name)
        return;
    if (strcmp(version, "v1beta1") == 0) {
        json_set_string(spec, "priorityClassName", class->name);
        json_set_string(spec, "priorityClassSource",
                        class->of_kueue ? KUEUE_GROUP "/workloadpriorityclass" : "scheduling.k8s.io/priorityclass");
        return;
    }
    struct json *reference = json_set_object(spec, "priorityClassRef");
    json_set_string(reference, "group", class->of_kueue ? KUEUE_GROUP : "scheduling.k8s.io");
    json_set_string(reference, "kind", class->of_kueue ? "WorkloadPriorityClass" : "PriorityClass");
    json_set_string(reference, "name", class->name);
}

int queue_build_workload(const struct pod_builder *builder, const char *version, int64_t priority,
                         struct json **ret_workload, struct error *error)
{
    const struct training_job *job = builder->job;
    SCOPED_JSON *workload = begin(job, job->name, version);
    child_metadata_fill(json_member(workload, "metadata"), job, job->name);
    struct json *spec = json_set_object(workload, "spec");
    json_set_string(spec, "queueName", job->queue_name);
    struct queue_priority class = queue_priority_of(job);
    set_priority(spec, version, &class, priority);
    struct json *sets = json_set_array(spec, "podSets");
    for (int role = 0; role < ROLE_COUNT; role++)
        if (add_pod_set(sets, builder, (enum role)role, error) < 0)
            return -1;
    *ret_workload = workload;
    workload = NULL;
    return 0;
}

/* ---------------------------------------------------------------- its conditions */

static void add_condition(struct json *workload, const char *type, bool status, const char *reason, const char *message,
                          int64_t now_ms)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(now_ms, now);
    struct json *list = json_set_array(json_set_object(workload, "status"), "conditions");
    struct json *condition = json_append(list, json_new_object());
    json_set_string(condition, "type", type);
    json_set_string(condition, "status", status ? "True" : "False");
    json_set_string(condition, "reason", reason);
    json_set_string(condition, "message", message && *message ? message : reason);
    json_set_string(condition, "lastTransitionTime", now);
}

#define WAIT_FOR_START "WaitForStart"
#define WAIT_FOR_RECOVERY "WaitForRecovery"
#define STARTED "Started"
#define RECOVERED "Recovered"

struct pods_ready queue_pods_ready(const struct workload_view *view, const struct job_status *status)
{
    bool ready = status->conditions[CONDITION_RUNNING].status == CONDITION_TRUE;
    bool recovers = strcmp(view->pods_ready_reason, WAIT_FOR_RECOVERY) == 0;
    if (status->conditions[CONDITION_SUCCEEDED].status == CONDITION_TRUE ||
        status->conditions[CONDITION_FAILED].status == CONDITION_TRUE)
        return (struct pods_ready){view->pods_ready,
                                   *view->pods_ready_reason ? view->pods_ready_reason : WAIT_FOR_START};
    if (!view->admitted)
        return (struct pods_ready){false, WAIT_FOR_START};
    if (!ready)
        return (struct pods_ready){false, view->pods_ready || recovers ? WAIT_FOR_RECOVERY : WAIT_FOR_START};
    if (recovers || strcmp(view->pods_ready_reason, RECOVERED) == 0)
        return (struct pods_ready){true, RECOVERED};
    return (struct pods_ready){true, STARTED};
}

struct json *queue_build_status(const struct training_job *job, const char *version, const struct workload_view *view,
                                const struct job_status *status, int64_t now_ms)
{
    struct json *workload = begin(job, view->name, version);
    struct pods_ready pods = queue_pods_ready(view, status);
    const struct condition *failed = &status->conditions[CONDITION_FAILED];
    const struct condition *succeeded = &status->conditions[CONDITION_SUCCEEDED];
    add_condition(workload, "PodsReady", pods.ready, pods.reason, status->conditions[CONDITION_RUNNING].message,
                  now_ms);
    if (failed->status == CONDITION_TRUE)
        add_condition(workload, "Finished", true, "Failed", failed->message, now_ms);
    else if (succeeded->status == CONDITION_TRUE)
        add_condition(workload, "Finished", true, "Succeeded", succeeded->message, now_ms);
    return workload;
}

/* A preempted job is queued again at once; a job that was evicted for another reason waits until Kueue requeues it. */
static bool is_requeued_at_once(const char *reason)
{
    return strcmp(reason, "Preempted") == 0 || strcmp(reason, "NodeFailures") == 0;
}

struct json *queue_build_release(const struct training_job *job, const char *version, const struct workload_view *view,
                                 int64_t now_ms)
{
    struct json *workload = begin(job, view->name, version);
    add_condition(workload, "QuotaReserved", false, "Pending", view->evicted_message, now_ms);
    add_condition(workload, "Admitted", false, "NoReservation", "the pods of the job are gone", now_ms);
    add_condition(workload, "Requeued", is_requeued_at_once(view->evicted_reason),
                  *view->evicted_reason ? view->evicted_reason : "Pending", view->evicted_message, now_ms);
    return workload;
}

/* ---------------------------------------------------------------- flavors */

static bool take_flavor(struct json *place, const char *text)
{
    SCOPED_JSON *flavor = NULL;
    if (text == NULL || json_parse(text, strlen(text), PLACE_MAX, &flavor, NULL) < 0)
        return false;
    queue_part_take_place(place, flavor);
    return true;
}

struct json *queue_placement(const struct workload_view *view, queue_flavor *flavor_of, void *context,
                             char **ret_missing)
{
    SCOPED_JSON *parts = NULL;
    struct json *placement = json_new_object();
    if (json_parse(view->assignments, strlen(view->assignments), PLACE_MAX, &parts, NULL) < 0)
        return placement;
    for (const struct json *part = json_first(parts); part; part = json_next(part)) {
        struct json *place = json_set_object(placement, json_key(part));
        const struct json *flavors = json_member(part, "flavors");
        for (const struct json *item = json_first(flavors); item; item = json_next(item)) {
            const char *name = json_string(item, "");
            if (take_flavor(place, flavor_of(context, name)))
                continue;
            *ret_missing = memory_copy_string(name);
            json_free(placement);
            return NULL;
        }
        queue_part_take(place, part);
        if (json_member(part, QUEUE_PART_WORKLOAD))
            json_set(place, QUEUE_PART_WORKLOAD, json_copy(json_member(part, QUEUE_PART_WORKLOAD)));
    }
    return placement;
}

void queue_place(struct json *pod, enum role role, const struct json *placement)
{
    if (placement == NULL)
        return;
    const struct json *place = json_member(placement, role_name(role)), *given = json_member(place, "labels");
    struct json *metadata = json_member(pod, "metadata"), *labels = json_set_object(metadata, "labels");
    queue_part_take_place(json_member(pod, "spec"), place);
    queue_part_take_members(metadata, "annotations", place);
    for (const struct json *label = json_first(given); label; label = json_next(label))
        if (!json_member(labels, json_key(label))) /* the existing labels say to which job the pod belongs */
            json_set(labels, json_key(label), json_copy(label));
    json_set_string(labels, LABEL_QUEUE_POD_SET, role_name(role));
    const char *workload = json_string(json_member(place, QUEUE_PART_WORKLOAD), NULL);
    if (!workload)
        return;
    json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_QUEUE_WORKLOAD, workload);
    struct json *gates = json_set_array(json_member(pod, "spec"), "schedulingGates");
    json_set_string(json_append(gates, json_new_object()), "name", TOPOLOGY_GATE);
}
