/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_evidence.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/job_condition.h"

/* Returns whether an event is about the job itself or one of its pods. UIDs are compared, because pods of another job with a similar
 * name, and other pods of a name, have others. */
static bool is_about(const struct json *event, const struct job_evidence *evidence)
{
    const char *uid = json_string_at(event, "regarding.uid", "");
    if (strcmp(uid, json_string_at(evidence->job, "metadata.uid", "?")) == 0)
        return true;
    for (const struct json *pod = json_first(evidence->pods); pod; pod = json_next(pod))
        if (strcmp(uid, json_string_at(pod, "metadata.uid", "?")) == 0)
            return true;
    return false;
}

/* Times in the API compare as text. */
static const char *time_of(const struct json *event)
{
    return json_string_at(event, "metadata.creationTimestamp", "");
}

static int compare(const void *left, const void *right)
{
    return strcmp(time_of(*(const struct json *const *)left), time_of(*(const struct json *const *)right));
}

static struct json *sorted(struct json *events)
{
    size_t count = 0;
    struct json **list = memory_allocate(json_count(events) + 1, sizeof(struct json *));
    struct json *result = json_new_array();
    while (json_first(events)) {
        list[count] = json_detach(events, json_first(events));
        count++;
    }
    qsort(list, count, sizeof *list, compare);
    for (size_t i = 0; i < count; i++)
        json_append(result, list[i]);
    free(list);
    json_free(events);
    return result;
}

static int events_of(struct cluster *cluster, struct job_evidence *evidence, struct error *error)
{
    if (cluster_list(cluster, KUBE_EVENTS, cluster->name_space, NULL, &evidence->events, error) < 0)
        return -1;
    for (struct json *item = json_first(evidence->events), *next; item; item = next) {
        next = json_next(item);
        if (!is_about(item, evidence))
            json_free(json_detach(evidence->events, item));
    }
    evidence->events = sorted(evidence->events);
    return 0;
}

/* The job of a trial does not say whether its sweep has suspended it. Who may not read sweeps gets the answer for any suspended job. */
static void read_sweep(struct cluster *cluster, struct job_evidence *evidence)
{
    const struct json *owner = json_first(json_at(evidence->job, "metadata.ownerReferences"));
    while (owner && strcmp(json_string_at(owner, "kind", ""), TRAINING_SWEEP_KIND) != 0)
        owner = json_next(owner);
    if (!owner || !json_boolean_at(evidence->job, "spec.suspend", false))
        return;
    struct resource_path path = cluster_sweep_path(cluster, json_string_at(owner, "name", ""));
    if (cluster_get(cluster, &path, &evidence->sweep, NULL) == 0 &&
        strcmp(json_string_at(evidence->sweep, "metadata.uid", ""), json_string_at(owner, "uid", "?")) != 0) {
        json_free(evidence->sweep);
        evidence->sweep = NULL;
    }
}

/* The queue of the job's label, else of its class. */
static const char *queue_of(const struct json *job)
{
    const char *label = json_string(json_member(json_at(job, "metadata.labels"), LABEL_QUEUE_NAME), "");
    return *label ? label : json_string_at(job, "status.trainingClass.defaults.queueName", "");
}

/* Kueue serves the order of its queues if its VisibilityOnDemand is on, to those whom it lets see them. */
static void read_pending(struct cluster *cluster, struct job_evidence *evidence)
{
    static const char *const versions[] = {"v1beta2", "v1beta1"};
    const struct json *suspended = job_condition(evidence->job, "Suspended");
    const char *queue = queue_of(evidence->job);
    if (*queue == '\0' || strcmp(json_string_at(suspended, "status", ""), "True") != 0 ||
        strcmp(json_string_at(suspended, "reason", ""), "Queued") != 0)
        return;
    for (size_t i = 0; !evidence->pending && i < sizeof versions / sizeof *versions; i++) {
        struct resource_path path = {
            {"visibility.kueue.x-k8s.io", versions[i], "localqueues"}, cluster->name_space, queue, "pendingworkloads"};
        cluster_get(cluster, &path, &evidence->pending, NULL);
    }
}

int job_evidence_gather(struct cluster *cluster, const char *name, struct job_evidence *ret_evidence,
                        struct error *error)
{
    struct resource_path path = cluster_job_path(cluster, name);
    *ret_evidence = (struct job_evidence){.job = NULL};
    if (cluster_get(cluster, &path, &ret_evidence->job, error) < 0 ||
        cluster_pods(cluster, name, &ret_evidence->pods, error) < 0)
        return -1;
    ret_evidence->kept = cluster->kept;
    ret_evidence->again = cluster->again;
    if (cluster->kept)
        job_mark_interrupted(ret_evidence->job, cluster->again);
    read_sweep(cluster, ret_evidence);
    read_pending(cluster, ret_evidence);
    return events_of(cluster, ret_evidence, error);
}

void job_evidence_release(struct job_evidence *evidence)
{
    json_free(evidence->job);
    json_free(evidence->pods);
    json_free(evidence->events);
    json_free(evidence->sweep);
    json_free(evidence->pending);
    *evidence = (struct job_evidence){.job = NULL};
}

struct why_input job_evidence_input(const struct job_evidence *evidence)
{
    return (struct why_input){.job = evidence->job,
                              .pods = evidence->pods,
                              .events = evidence->events,
                              .sweep = evidence->sweep,
                              .pending = evidence->pending,
                              .kept = evidence->kept,
                              .again = evidence->again,
                              .now_ms = clock_now_ms()};
}
