/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/environment_build.h"

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "common/job/enum_words.h"
#include "common/job/job_roles.h"
#include "common/memory.h"
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/objects/crew_key.h"
#include "operator/controller/objects/environment_framework.h"
#include "operator/controller/objects/environment_list.h"
#include "operator/controller/objects/environment_tpu.h"
#include "operator/controller/objects/object_storage.h"

#define ENVIRONMENT_VALUE_MAX (128 * 1024)

static void add_pod_ip(struct json *list)
{
    struct json *entry = json_append(list, json_new_object());
    json_set_string(entry, "name", ENV_POD_IP);
    struct json *reference = json_set(json_set(entry, "valueFrom", json_new_object()), "fieldRef", json_new_object());
    json_set_string(reference, "fieldPath", "status.podIP");
}

static void add_checkpoint_directory(struct json *list, const struct training_job *job)
{
    const struct checkpoint_spec *checkpoint = &job->document.checkpoint;
    if (!checkpoint->enabled || !checkpoint->storage)
        return;
    const char *path = checkpoint->path ? checkpoint->path : job->name;
    SCOPED_FREE char *directory = memory_format("%s/%s/%s", STORAGE_ROOT, checkpoint->storage, path);
    environment_add(list, ENV_CHECKPOINT_DIR, directory);
}

static void add_storage(struct json *list, const struct training_job *job)
{
    SCOPED_BUFFER text = BUFFER_INIT(ENVIRONMENT_VALUE_MAX);
    for (unsigned i = 0; i < job->document.storage_count; i++) {
        const char *name = job->document.storage[i].name;
        buffer_format(&text, "%s%s=%s/%s", i ? ":" : "", name, STORAGE_ROOT, name);
    }
    if (text.length > 0)
        environment_add(list, ENV_STORAGE, text.data);
}

/* Adds the grace period that the pod has once the template is merged over the default one. */
static void add_grace(struct json *list, const struct role_spec *role)
{
    int64_t seconds = json_integer_at(role->template, "spec.terminationGracePeriodSeconds", GRACE_SECONDS_DEFAULT);
    if (seconds != GRACE_SECONDS_DEFAULT && seconds >= 0)
        environment_add_number(list, ENV_GRACE, seconds);
}

/* An elastic crew's seats reach beyond the workers that there are now; membership itself is the chief's to tell. */
static struct crew_role describe_role(const struct training_job *job, enum role role)
{
    bool elastic = job->elastic.enabled && role == ROLE_WORKER;
    return (struct crew_role){.name = role_name(role),
                              .count = job_role_count(job, role),
                              .min_count = elastic ? job->elastic.min_workers : FIELD_UNSET,
                              .max_count = elastic ? job->elastic.max_workers : FIELD_UNSET};
}

static void fill_crew(const struct training_job *job, const char *pattern, struct crew_spec *crew)
{
    *crew = (struct crew_spec){.host_pattern = pattern, .port = PORT_CREW};
    for (int role = 0; role < ROLE_COUNT; role++)
        if (job_role_count(job, (enum role)role) > 0)
            crew->roles[crew->role_count++] = describe_role(job, (enum role)role);
}

/* ---------------------------------------------------------------- our own worker */

/* The job document with the crew. */
static int coxswain_document(const struct training_job *job, char **ret_text, struct error *error)
{
    SCOPED_FREE char *pattern = memory_format("%s-{role}-{index}.%s.%s.svc", job->name, job->name, job->namespace);
    struct job_document document = job->document; /* a view: nothing of it is released */
    document.job_name = job->name;
    document.job_namespace = job->namespace;
    fill_crew(job, pattern, &document.crew);
    SCOPED_JSON *json = job_document_to_json(&document);
    SCOPED_BUFFER text = BUFFER_INIT(JOB_DOCUMENT_MAX);
    if (json_print(json, &text, error) < 0)
        return error_wrap(error,
                          "the job document does not fit into an environment variable (%d KiB); shorten the model",
                          JOB_DOCUMENT_MAX / 1024);
    *ret_text = buffer_take(&text);
    return 0;
}

static void add_coxswain(const struct training_job *job, enum role role, int64_t index, const char *document,
                         struct json *list)
{
    (void)role;
    (void)index;
    environment_add(list, ENV_JOB, document);
    object_storage_add_environment(list, job);
    if (job->pause_step != FIELD_UNSET)
        environment_add_number(list, ENV_PAUSE_STEP, job->pause_step);
    if (crew_key_is_needed(job))
        environment_add(list, ENV_CREW_KEY_FILE, CREW_KEY_DIRECTORY "/" CREW_KEY_NAME);
    if (crew_certificate_is_needed(job))
        environment_add(list, ENV_CREW_TLS_DIR, CREW_TLS_DIRECTORY);
}

static const char *const coxswain_reserved[] = {ENV_CREW_KEY_FILE, ENV_CREW_TLS_DIR, ENV_CHECKPOINT_S3, ENV_EXPORT_S3,
                                                NULL};
static const struct environment_framework environment_coxswain = {coxswain_document, add_coxswain, coxswain_reserved};

static const struct environment_framework *const frameworks[] = {
    [FRAMEWORK_COXSWAIN] = &environment_coxswain,
    [FRAMEWORK_TENSORFLOW] = &environment_tensorflow,
    [FRAMEWORK_PYTORCH] = &environment_pytorch,
    [FRAMEWORK_JAX] = &environment_jax,
};

/* ---------------------------------------------------------------- for all of them */

/* ENV_JOB tells of a pod that is left whether it is a worker of ours (pod_view.h). */
bool environment_is_reserved(enum framework framework, const char *name)
{
    static const char *const names[] = {ENV_INCARNATION, ENV_ATTEMPT, ENV_JOB,    ENV_JOB_UID,        ENV_ROLE,
                                        ENV_INDEX,       ENV_STORAGE, ENV_POD_IP, ENV_CHECKPOINT_DIR, NULL};
    return words_find(names, name) >= 0 || words_find(frameworks[framework]->reserved, name) >= 0 ||
           environment_tpu_is_reserved(name);
}

bool environment_was_free(enum framework framework, const char *name)
{
    return framework != FRAMEWORK_COXSWAIN && strcmp(name, ENV_JOB) == 0;
}

int environment_document(const struct training_job *job, char **ret_text, struct error *error)
{
    *ret_text = NULL;
    if (environment_tpu_check(job, error) < 0)
        return -1;
    return frameworks[job->framework]->document ? frameworks[job->framework]->document(job, ret_text, error) : 0;
}

struct json *environment_build(const struct training_job *job, enum role role, int64_t index, const char *document)
{
    struct json *list = json_new_array();
    environment_add_number(list, ENV_INCARNATION, job->status.incarnation);
    environment_add_number(list, ENV_ATTEMPT, job->status.attempt);
    environment_add(list, ENV_JOB_UID, job->uid);
    environment_add(list, ENV_ROLE, role_name(role));
    environment_add_number(list, ENV_INDEX, index);
    add_checkpoint_directory(list, job);
    add_storage(list, job);
    add_grace(list, &job->roles[role]);
    add_pod_ip(list);
    frameworks[job->framework]->add(job, role, index, document, list);
    environment_add_tpu(job, role, index, list);
    return list;
}
