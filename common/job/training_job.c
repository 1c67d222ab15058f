/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_job.h"

#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/field_check.h"
#include "common/job/field_default.h"
#include "common/job/field_read.h"
#include "common/job/immutability.h"
#include "common/job/job_status.h"
#include "common/job/rules.h"
#include "common/job/training_class.h"
#include "common/memory.h"

static int64_t time_at(const struct json *object, const char *path)
{
    int64_t ms = FIELD_UNSET;
    clock_parse(json_string_at(object, path, ""), &ms);
    return ms;
}

int64_t training_job_pause_step(const struct json *object)
{
    char *end;
    const struct json *annotations = json_at(object, "metadata.annotations");
    const char *text = json_string(json_member(annotations, ANNOTATION_PAUSE_STEP), "");
    long long step = strtoll(text, &end, 10); /* the largest number where the text is too large */
    return *end == '\0' && step > 0 ? step : FIELD_UNSET;
}

/* A sweep controls its trials' jobs. NULL: none does. */
static const char *sweep_uid_of(const struct json *object)
{
    const struct json *item = json_first(json_at(object, "metadata.ownerReferences"));
    while (item && (strcmp(json_string_at(item, "kind", ""), TRAINING_SWEEP_KIND) != 0 ||
                    !json_boolean_at(item, "controller", false)))
        item = json_next(item);
    return json_string(json_member(item, "uid"), NULL);
}

static void metadata_read(const struct json *object, struct training_job *job)
{
    struct arena *arena = &job->document.arena;
    job->name = arena_copy_string(arena, json_string_at(object, "metadata.name", ""));
    job->namespace = arena_copy_string(arena, json_string_at(object, "metadata.namespace", ""));
    job->uid = arena_copy_string(arena, json_string_at(object, "metadata.uid", ""));
    job->resource_version = arena_copy_string(arena, json_string_at(object, "metadata.resourceVersion", ""));
    job->generation = json_integer_at(object, "metadata.generation", 0);
    job->created_ms = time_at(object, "metadata.creationTimestamp");
    job->deleted_ms = time_at(object, "metadata.deletionTimestamp");
    job->sweep_uid = arena_copy_string(arena, sweep_uid_of(object));
    const struct json *labels = json_at(object, "metadata.labels");
    job->queue_name = arena_copy_string(arena, json_string(json_member(labels, LABEL_QUEUE_NAME), NULL));
    job->queue_priority = arena_copy_string(arena, json_string(json_member(labels, LABEL_QUEUE_PRIORITY), NULL));
    job->queue_workload = arena_copy_string(arena, json_string(json_member(labels, LABEL_QUEUE_WORKLOAD), NULL));
    const char *elastic =
        json_string(json_member(json_at(object, "metadata.annotations"), ANNOTATION_QUEUE_ELASTIC), "");
    job->queue_elastic = strcmp(elastic, "true") == 0;
    /* The copy of a job that MultiKueue has created in another cluster follows the job here. */
    job->pause_step = job->sweep_uid || job->queue_workload ? training_job_pause_step(object) : FIELD_UNSET;
}

static void roles_fill(struct training_job *job)
{
    struct role_spec *servers = &job->roles[ROLE_PS];
    int64_t counts[ROLE_COUNT] = {[ROLE_CHIEF] = 1, [ROLE_PS] = servers->count, [ROLE_EVALUATOR] = 1};
    for (int role = 0; role < ROLE_COUNT; role++)
        job->roles[role].count = job->roles[role].given ? counts[role] : 0;
    job->elastic.enabled = job->elastic.max_workers != FIELD_UNSET;
    job->elastic.wanted_workers = job->document.workers;
    if (job->elastic.enabled && job->status.admitted_workers > 0 &&
        job->status.admitted_workers < job->document.workers)
        job->document.workers = job->status.admitted_workers;
    job->roles[ROLE_WORKER].count = job->document.workers;
}

int training_job_check_version(const struct json *object, struct error *error)
{
    const char *version = json_string_at(object, "apiVersion", "");
    if (strcmp(version, API_GROUP_VERSION) == 0)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "apiVersion: %.64s is not served, only " API_GROUP_VERSION
                     "; `cox migrate FILE` translates a manifest of v1alpha1",
                     version);
}

const char *role_section(enum role role)
{
    static const char *const sections[ROLE_COUNT] = {[ROLE_CHIEF] = "chief",
                                                     [ROLE_WORKER] = "workers",
                                                     [ROLE_PS] = "parameterServers",
                                                     [ROLE_EVALUATOR] = "evaluator"};
    return sections[role];
}

int64_t spec_role_count(const struct json *spec, enum role role)
{
    const struct json *section = json_member(spec, role_section(role));
    return section || role == ROLE_WORKER ? json_integer_at(section, "replicas", 1) : 0;
}

const char *framework_section(enum framework framework)
{
    static const char *const sections[FRAMEWORK_COUNT] = {[FRAMEWORK_COXSWAIN] = "coxswain",
                                                          [FRAMEWORK_TENSORFLOW] = "tensorflow",
                                                          [FRAMEWORK_PYTORCH] = "pytorch",
                                                          [FRAMEWORK_JAX] = "jax"};
    return sections[framework];
}

enum framework spec_framework(const struct json *spec)
{
    for (int framework = 0; framework < FRAMEWORK_COUNT; framework++)
        if (json_member(spec, framework_section((enum framework)framework)))
            return (enum framework)framework;
    return FRAMEWORK_COXSWAIN;
}

static bool checkpoints_are_in_bucket(const struct training_job *job)
{
    const char *name = job->document.checkpoint.storage;
    for (unsigned i = 0; name && i < job->document.storage_count; i++)
        if (strcmp(job->document.storage[i].name, name) == 0)
            return job->framework == FRAMEWORK_COXSWAIN && job->document.storage[i].s3.enabled;
    return false;
}

/* A claim belongs to one namespace. A bucket may be used by several, in which jobs may have the same name. */
static const char *default_checkpoint_path(struct training_job *job)
{
    if (!*job->namespace || !checkpoints_are_in_bucket(job))
        return job->name;
    SCOPED_FREE char *path = memory_format("%s/%s", job->namespace, job->name);
    return arena_copy_string(&job->document.arena, path);
}

static void spec_read(const struct json *spec, struct training_job *job)
{
    struct field_reader reader = {.arena = &job->document.arena, .opaque = job->document.opaque};
    fields_read(&training_job_spec_type, spec, job, &reader);
    job->framework = spec_framework(spec);
    job->document.job_name = *job->name ? job->name : NULL;
    job->document.job_namespace = *job->namespace ? job->namespace : NULL;
    if (job->document.checkpoint.enabled && job->document.checkpoint.path == NULL)
        job->document.checkpoint.path = default_checkpoint_path(job);
}

/* To have no pods, and to have none: Suspended is also true of a job that waits in a queue. */
static bool is_suspended(const struct json *object)
{
    const struct json *conditions = json_at(object, "status.conditions");
    if (!json_boolean_at(object, "spec.suspend", false))
        return false;
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), condition_type_name(CONDITION_SUSPENDED)) == 0)
            return strcmp(json_string_at(item, "status", ""), "True") == 0;
    return false;
}

static void violations_find(const struct json *object, const struct json *old, struct violations *violations)
{
    const char *name = json_string_at(object, "metadata.name", NULL);
    if (name && !job_name_holds(name)) {
        size_t length = violations_enter(violations, "metadata");
        violations_add(violations, "name", "%s", JOB_NAME_MESSAGE);
        violations_leave(violations, length);
    }
    const struct json *spec = json_member(object, "spec"), *old_spec = json_member(old, "spec");
    size_t length = violations_enter(violations, "spec");
    if (spec == NULL)
        violations_add(violations, NULL, "is missing; it is required");
    else
        fields_check(&training_job_spec_type, spec, old_spec, false, violations);
    if (spec && old_spec)
        immutability_check(&training_job_spec_type, spec, old_spec, is_suspended(old), violations);
    violations_leave(violations, length);
}

bool training_job_awaits_class(const struct training_job *job)
{
    return job->training_class.name && !job->status.training_class.defaults;
}

/* What the job was created with; NULL: it has no class, or its class is not pinned. */
static const struct json *pinned_defaults(const struct json *object)
{
    const char *name = json_string_at(object, "spec.trainingClass.name", NULL);
    const char *pinned = json_string_at(object, "status.trainingClass.name", NULL);
    const char *kind = json_string_at(object, "spec.trainingClass.kind", CLUSTER_TRAINING_CLASS_KIND);
    const char *pinned_kind = json_string_at(object, "status.trainingClass.kind", CLUSTER_TRAINING_CLASS_KIND);
    bool same = name && pinned && strcmp(name, pinned) == 0 && strcmp(kind, pinned_kind) == 0;
    return same ? json_at(object, "status.trainingClass.defaults") : NULL;
}

/* Checks the job's own spec, then what it is with its class: then every storage has to exist. */
static int check_spec(struct json *filled, const struct json *defaults, struct error *error)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    violations_find(filled, NULL, &violations);
    if (violations_to_error(&violations, error) < 0 || !defaults)
        return violations.count > 0 ? -1 : 0;
    struct json *spec = json_member(filled, "spec");
    struct json *reference = json_detach(spec, json_member(spec, "trainingClass"));
    training_class_merge(spec, defaults);
    training_job_default(filled);
    SCOPED(violations_release) struct violations merged;
    violations_init(&merged, "");
    violations_find(filled, NULL, &merged);
    json_set(spec, "trainingClass", reference);
    if (violations_to_error(&merged, error) < 0)
        return error_wrap(error, "with the defaults of %s %s", json_string_at(reference, "kind", ""),
                          json_string_at(reference, "name", ""));
    return 0;
}

static void class_read(const struct json *defaults, struct training_job *job)
{
    if (!defaults)
        return;
    job->status.training_class.defaults = json_append(job->document.opaque, json_copy(defaults));
    if (!job->queue_name)
        job->queue_name = arena_copy_string(&job->document.arena, json_string_at(defaults, "queueName", NULL));
}

int training_job_parse(const struct json *object, struct training_job *ret_job, struct error *error)
{
    *ret_job = (struct training_job){.document.opaque = json_new_array()};
    fields_unset(&job_document_type, &ret_job->document);
    fields_unset(&training_job_spec_type, ret_job);
    metadata_read(object, ret_job);
    job_status_read(json_member(object, "status"), &ret_job->status, &ret_job->document.arena);

    SCOPED_JSON *filled = json_new_object();
    json_set(filled, "metadata", json_copy(json_member(object, "metadata")));
    json_set(filled, "spec", json_copy(json_member(object, "spec")));
    training_job_default(filled);
    const struct json *defaults = pinned_defaults(object);
    int result = check_spec(filled, defaults, error);
    class_read(defaults, ret_job);
    spec_read(json_member(filled, "spec"), ret_job);
    if (result < 0 && ret_job->status.attempt == 0)
        memset(ret_job->roles, 0, sizeof ret_job->roles);
    else
        roles_fill(ret_job);
    return result;
}

void training_job_release(struct training_job *job)
{
    job_document_release(&job->document);
    *job = (struct training_job){0};
}

struct json *training_job_violations(const struct json *object, const struct json *old)
{
    SCOPED_JSON *filled = json_copy(object);
    SCOPED_JSON *old_filled = old ? json_copy(old) : NULL;
    training_job_default(filled);
    training_job_default(old_filled);
    struct violations violations;
    violations_init(&violations, "");
    violations_find(filled, old_filled, &violations);
    return violations.list;
}

void training_job_default(struct json *object)
{
    fields_default(&training_job_spec_type, json_member(object, "spec"));
}
