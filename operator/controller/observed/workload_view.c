/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/workload_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/training_job.h"
#include "common/memory.h"
#include "common/utf8.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/observed/queue_part.h"

#define WORDS_MAX 1024
#define ASSIGNMENTS_MAX (64 * 1024)

static const struct json *condition(const struct json *workload, const char *type)
{
    const struct json *conditions = json_at(workload, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), type) == 0)
            return item;
    return NULL;
}

static bool is_true(const struct json *workload, const char *type)
{
    return strcmp(json_string_at(condition(workload, type), "status", ""), "True") == 0;
}

/* ---------------------------------------------------------------- assignments */

static void add_flavors(struct json *part, const struct json *flavors)
{
    struct json *list = json_set_array(part, "flavors");
    for (const struct json *flavor = json_first(flavors); flavor; flavor = json_next(flavor)) {
        const char *name = json_string(flavor, "");
        bool known = false;
        for (const struct json *item = json_first(list); item; item = json_next(item))
            known |= strcmp(json_string(item, ""), name) == 0;
        if (!known)
            json_append_string(list, name);
    }
}

/* Admission checks may say more about where pods belong, and mark them: for the room that was asked for, say. */
static void add_updates(struct json *parts, const struct json *workload)
{
    const struct json *checks = json_at(workload, "status.admissionChecks");
    for (const struct json *check = json_first(checks); check; check = json_next(check)) {
        const struct json *updates = json_member(check, "podSetUpdates");
        for (const struct json *update = json_first(updates); update; update = json_next(update)) {
            struct json *part = json_member(parts, json_string_at(update, "name", ""));
            if (part != NULL)
                queue_part_take(part, update);
        }
    }
}

static char *assignments_of(const struct json *workload)
{
    SCOPED_JSON *parts = json_new_object();
    const struct json *list = json_at(workload, "status.admission.podSetAssignments");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        struct json *part = json_set_object(parts, json_string_at(item, "name", "main"));
        add_flavors(part, json_member(item, "flavors"));
        if (json_type(json_member(item, "topologyAssignment")) == JSON_OBJECT)
            json_set_string(part, QUEUE_PART_WORKLOAD, json_string_at(workload, "metadata.name", ""));
    }
    add_updates(parts, workload);
    SCOPED_BUFFER text = BUFFER_INIT(ASSIGNMENTS_MAX);
    return json_print(parts, &text, NULL) < 0 ? memory_copy_string("{}") : buffer_take(&text);
}

/* A number of the pod set of workers in a list of pod sets, or of their assignments. */
static int64_t number_of_workers(const struct json *list, const char *member)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), role_name(ROLE_WORKER)) == 0)
            return json_integer_at(item, member, 0);
    return 0;
}

/* A job that was scaled down has lowered its Workload's count, and so its quota, but not the assignment, which Kueue never changes. */
static int64_t workers_with_quota(const struct json *workload, int64_t asked)
{
    const struct json *assignments = json_at(workload, "status.admission.podSetAssignments");
    int64_t assigned = number_of_workers(assignments, "count");
    return asked > 0 && asked < assigned ? asked : assigned;
}

static void read_topology(const struct json *workload, struct workload_view *view)
{
    const struct json *list = json_at(workload, "status.admission.podSetAssignments");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        view->has_topology |= json_type(json_member(item, "topologyAssignment")) == JSON_OBJECT;
        const struct json *levels = json_at(item, "topologyAssignment.levels");
        for (const struct json *level = json_first(levels); level; level = json_next(level))
            view->pins_nodes |= strcmp(json_string(level, ""), LABEL_HOST_NAME) == 0;
    }
}

static int64_t slice_of(const struct json *workload)
{
    const struct json *annotations = json_at(workload, "metadata.annotations");
    const char *text = json_string(json_member(annotations, ANNOTATION_QUEUE_SLICE), "");
    int64_t slice = strtoll(text, NULL, 10);
    return slice > 0 && slice < INT64_MAX ? slice : 0;
}

/* ---------------------------------------------------------------- views */

#define TEXTS 10

static struct workload_view *pack(const char *const texts[TEXTS])
{
    size_t lengths[TEXTS], total = 0;
    for (size_t i = 0; i < TEXTS; i++)
        total += (lengths[i] = utf8_fit(texts[i], i == TEXTS - 1 ? ASSIGNMENTS_MAX : WORDS_MAX)) + 1;
    struct workload_view *view = memory_allocate(1, sizeof *view + total);
    char *text = (char *)(view + 1);
    const char **members[TEXTS] = {&view->name,
                                   &view->uid,
                                   &view->owner_uid,
                                   &view->job_uid,
                                   &view->queue_name,
                                   &view->waiting,
                                   &view->evicted_reason,
                                   &view->evicted_message,
                                   &view->pods_ready_reason,
                                   &view->assignments};
    for (size_t i = 0; i < TEXTS; i++) {
        *members[i] = memcpy(text, texts[i], lengths[i]);
        text += lengths[i] + 1;
    }
    return view;
}

struct workload_view *workload_view_new(const struct json *workload)
{
    SCOPED_FREE char *assignments = assignments_of(workload);
    const struct json *reserved = condition(workload, "QuotaReserved"), *evicted = condition(workload, "Evicted");
    const char *const texts[TEXTS] = {
        json_string_at(workload, "metadata.name", ""),
        json_string_at(workload, "metadata.uid", ""),
        owner_of(workload).uid,
        owner_label(workload),
        json_string_at(workload, "spec.queueName", ""),
        is_true(workload, "QuotaReserved") ? "" : json_string_at(reserved, "message", ""),
        json_string_at(evicted, "reason", ""),
        json_string_at(evicted, "message", ""),
        json_string_at(condition(workload, "PodsReady"), "reason", ""),
        assignments,
    };
    struct workload_view *view = pack(texts);
    view->deleting = json_at(workload, "metadata.deletionTimestamp") != NULL;
    view->has_admission = json_type(json_at(workload, "status.admission")) == JSON_OBJECT;
    view->reserved = is_true(workload, "QuotaReserved");
    view->admitted = is_true(workload, "Admitted");
    view->evicted = is_true(workload, "Evicted");
    view->finished = is_true(workload, "Finished");
    view->replaced = view->finished && strcmp(json_string_at(condition(workload, "Finished"), "reason", ""),
                                              "WorkloadSliceReplaced") == 0;
    view->slice = slice_of(workload);
    view->pods_ready = is_true(workload, "PodsReady");
    read_topology(workload, view);
    view->workers = number_of_workers(json_at(workload, "spec.podSets"), "count");
    view->least_workers = number_of_workers(json_at(workload, "spec.podSets"), "minCount");
    view->admitted_workers = workers_with_quota(workload, view->workers);
    return view;
}

char *flavor_view_new(const struct json *flavor)
{
    SCOPED_JSON *place = json_new_object();
    const struct json *labels = json_at(flavor, "spec.nodeLabels"), *tolerations = json_at(flavor, "spec.tolerations");
    if (labels)
        json_set(place, "nodeSelector", json_copy(labels));
    if (tolerations)
        json_set(place, "tolerations", json_copy(tolerations));
    SCOPED_BUFFER text = BUFFER_INIT(ASSIGNMENTS_MAX);
    return json_print(place, &text, NULL) < 0 ? memory_copy_string("{}") : buffer_take(&text);
}
