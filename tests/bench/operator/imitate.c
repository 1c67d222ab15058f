/* SPDX-License-Identifier: Apache-2.0
 *
 * The contender `same` of `make bench-operator`: makes the requests that coxswain-operator makes for a healthy job, with the same
 * client, but without its logic: no cache of pods except the number of running ones, no retries, no promises. The difference to
 * the operator is the cost of that logic.
 *
 *   operator-imitate POD.json SERVICE.json JOB.json
 *
 * The arguments are examples of a pod, a Service and a running job, as the API server returns them. For each new TrainingJob it
 * creates the Service and the pods at once, and writes a status when all creates are answered, another when all pods run, and
 * then an event. It prints "ready" when it watches, and runs until it is killed. Credentials: KUBECONFIG.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/kube/client.h"
#include "operator/kube/hash_map.h"
#include "operator/kube/informer.h"
#include "tests/bench/operator/object_anew.h"

#define JOBS ((struct kube_resource){API_GROUP, API_VERSION, TRAINING_JOB_PLURAL})

struct imitation {
    struct event_loop *loop;
    struct kube_client *client;
    struct informer *jobs, *pods;
    struct json *pod, *service, *status;
    struct hash_map crews; /* "namespace/job" -> struct crew; they are kept */
    int synced;
};

/* A job's state. */
struct crew {
    struct imitation *imitation;
    char *name_space, *name, *uid, *version;
    int pods, open, running;
};

static void fail(const char *what)
{
    fprintf(stderr, "operator-imitate: %s\n", what);
    exit(1);
}

/* ---------------------------------------------------------------- requests */

static struct kube_call_options call_options(struct crew *crew, kube_answered *answered)
{
    return (struct kube_call_options){.flow = crew->uid, .metadata_only = true, .answered = answered, .context = crew};
}

static void event_written(void *context, const struct kube_answer *answer)
{
    (void)context;
    if (answer->error)
        fail(answer->error->message);
}

static void tell_event(struct crew *crew)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_microseconds(clock_now_ms(), now);
    SCOPED_FREE char *name = memory_format("%s.imitated", crew->name);
    SCOPED_JSON *event = json_new_object();
    struct json *metadata = json_set_object(event, "metadata"), *regarding = json_set_object(event, "regarding");
    json_set_string(event, "apiVersion", "events.k8s.io/v1");
    json_set_string(event, "kind", "Event");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", crew->name_space);
    json_set_string(event, "eventTime", now);
    json_set_string(event, "type", "Normal");
    json_set_string(event, "reason", "Running");
    json_set_string(event, "action", "UpdateStatus");
    json_set_string(event, "note", "all pods of the crew run");
    json_set_string(event, "reportingController", API_GROUP "/operator");
    json_set_string(event, "reportingInstance", "imitation");
    json_set_string(regarding, "apiVersion", API_GROUP_VERSION);
    json_set_string(regarding, "kind", TRAINING_JOB_KIND);
    json_set_string(regarding, "name", crew->name);
    json_set_string(regarding, "namespace", crew->name_space);
    json_set_string(regarding, "uid", crew->uid);
    struct resource_path path = {.resource = KUBE_EVENTS, .name_space = crew->name_space};
    struct kube_call_options options = call_options(crew, event_written);
    options.priority = KUBE_LOW;
    kube_client_create(crew->imitation->client, &path, event, &options);
}

static void patch_status(struct crew *crew, kube_answered *answered, bool whole)
{
    SCOPED_JSON *patch = json_new_object();
    json_set_string(json_set_object(patch, "metadata"), "resourceVersion", crew->version);
    struct json *status = json_set(patch, "status", json_copy(crew->imitation->status));
    if (!whole)
        json_set(status, "readySummary", json_new_string("0/1"));
    struct resource_path path = {JOBS, crew->name_space, crew->name, "status"};
    struct kube_call_options options = call_options(crew, answered);
    kube_client_patch(crew->imitation->client, &path, patch, &options);
}

static void running_told(void *context, const struct kube_answer *answer)
{
    if (answer->error)
        fail(answer->error->message);
    tell_event(context);
}

/* Once each, in this order: all made, told; all running, told. */
static void tell_running(struct crew *crew)
{
    if (crew->open == 0 && crew->running == crew->pods)
        patch_status(crew, running_told, true);
}

static void created_told(void *context, const struct kube_answer *answer)
{
    struct crew *crew = context;
    if (answer->error)
        fail(answer->error->message);
    free(crew->version);
    crew->version = memory_copy_string(json_string_at(answer->object, "metadata.resourceVersion", ""));
    crew->open--;
    tell_running(crew);
}

static void created(void *context, const struct kube_answer *answer)
{
    struct crew *crew = context;
    if (answer->error)
        fail(answer->error->message);
    if (--crew->open == 1) /* that of the status */
        patch_status(crew, created_told, false);
}

static void own(const struct crew *crew, struct json *metadata, const char *name)
{
    struct json *owner = json_append(json_set(metadata, "ownerReferences", json_new_array()), json_new_object());
    json_set_string(owner, "apiVersion", API_GROUP_VERSION);
    json_set_string(owner, "kind", TRAINING_JOB_KIND);
    json_set_string(owner, "name", crew->name);
    json_set_string(owner, "uid", crew->uid);
    json_set_boolean(owner, "controller", true);
    json_set_boolean(owner, "blockOwnerDeletion", true);
    json_set_string(metadata, "name", name);
    struct json *labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_JOB_NAME, crew->name);
    json_set_string(labels, LABEL_JOB_UID, crew->uid);
}

/* Strict: as the operator makes what comes from a template. */
static void create(struct crew *crew, struct kube_resource resource, struct json *object, bool strict)
{
    struct resource_path path = {.resource = resource, .name_space = crew->name_space};
    struct kube_call_options options = call_options(crew, created);
    options.strict = strict;
    crew->open++;
    kube_client_create(crew->imitation->client, &path, object, &options);
}

static void create_all(struct crew *crew)
{
    struct imitation *imitation = crew->imitation;
    crew->open = 1;
    own(crew, json_member(imitation->service, "metadata"), crew->name);
    json_set_string(json_at(imitation->service, "spec.selector"), LABEL_JOB_UID, crew->uid);
    create(crew, KUBE_SERVICES, imitation->service, false);
    for (int i = 0; i < crew->pods; i++) {
        SCOPED_FREE char *name = memory_format("%s-worker-%d-1", crew->name, i);
        own(crew, json_member(imitation->pod, "metadata"), name);
        json_set_string(json_member(imitation->pod, "spec"), "hostname", name);
        json_set_string(json_member(imitation->pod, "spec"), "subdomain", crew->name);
        create(crew, KUBE_PODS, imitation->pod, true);
    }
}

/* ---------------------------------------------------------------- watches */

struct seen_job {
    char *uid, *version;
    int64_t workers;
};

static void *parse_job(void *context, const struct json *object)
{
    (void)context;
    struct seen_job *job = memory_allocate(1, sizeof *job);
    *job = (struct seen_job){
        .uid = memory_copy_string(json_string_at(object, "metadata.uid", "")),
        .version = memory_copy_string(json_string_at(object, "metadata.resourceVersion", "")),
        .workers = json_integer_at(object, "spec.workers.replicas", 1),
    };
    return job;
}

static void free_job(void *item)
{
    struct seen_job *job = item;
    free(job->uid);
    free(job->version);
    free(job);
}

static void job_added(void *context, const char *key, const void *item)
{
    struct imitation *imitation = context;
    const struct seen_job *job = item;
    const char *slash = strchr(key, '/');
    if (imitation->synced < 2)
        return;
    struct crew *crew = memory_allocate(1, sizeof *crew);
    *crew = (struct crew){
        .imitation = imitation,
        .name_space = memory_format("%.*s", (int)(slash - key), key),
        .name = memory_copy_string(slash + 1),
        .uid = memory_copy_string(job->uid),
        .version = memory_copy_string(job->version),
        .pods = (int)job->workers,
    };
    hash_map_set(&imitation->crews, key, crew);
    create_all(crew);
}

struct seen_pod {
    char *job;
    bool runs;
};

static void *parse_pod(void *context, const struct json *object)
{
    (void)context;
    const struct json *labels = json_at(object, "metadata.labels");
    const struct json *name = json_member(labels, LABEL_JOB_NAME);
    struct seen_pod *pod = memory_allocate(1, sizeof *pod);
    *pod = (struct seen_pod){
        .job = memory_format("%s/%s", json_string_at(object, "metadata.namespace", ""), json_string(name, "")),
        .runs = strcmp(json_string_at(object, "status.phase", ""), "Running") == 0,
    };
    return pod;
}

static void free_pod(void *item)
{
    free(((struct seen_pod *)item)->job);
    free(item);
}

static void note_running(struct imitation *imitation, const struct seen_pod *pod)
{
    struct crew *crew = hash_map_get(&imitation->crews, pod->job);
    if (!crew || !pod->runs)
        return;
    crew->running++;
    tell_running(crew);
}

static void pod_added(void *context, const char *key, const void *item)
{
    (void)key;
    note_running(context, item);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)key;
    if (!((const struct seen_pod *)old)->runs)
        note_running(context, item);
}

static void synced(void *context)
{
    struct imitation *imitation = context;
    if (++imitation->synced == 2) {
        puts("ready");
        fflush(stdout);
    }
}

static void trouble(void *context, const struct error *error)
{
    (void)context;
    fprintf(stderr, "operator-imitate: %s\n", error->message);
}

static void watch(struct imitation *imitation)
{
    struct informer_options jobs = {
        .resource = JOBS,
        .parse = parse_job,
        .item_free = free_job,
        .on_added = job_added,
        .on_synced = synced,
        .on_failure = trouble,
        .context = imitation,
    };
    struct informer_options pods = {
        .resource = KUBE_PODS,
        .label_selector = LABEL_JOB_UID,
        .parse = parse_pod,
        .item_free = free_pod,
        .on_added = pod_added,
        .on_changed = pod_changed,
        .on_synced = synced,
        .on_failure = trouble,
        .context = imitation,
    };
    imitation->jobs = informer_start(imitation->client, &jobs);
    imitation->pods = informer_start(imitation->client, &pods);
}

/* ---------------------------------------------------------------- running */

static int read_examples(struct imitation *imitation, char **arguments, struct error *error)
{
    struct json *job;
    if (object_read(arguments[1], &imitation->pod, error) < 0 ||
        object_read(arguments[2], &imitation->service, error) < 0 || object_read(arguments[3], &job, error) < 0)
        return -1;
    object_anew(imitation->pod);
    object_anew(imitation->service);
    imitation->status = json_copy(json_member(job, "status"));
    json_free(job);
    if (!imitation->status || !json_at(imitation->service, "spec.selector"))
        return error_set(error, ERROR_INVALID, "the examples lack the job's status or the Service's selector");
    return 0;
}

static int run(int count, char **arguments, struct error *error)
{
    struct imitation imitation = {0};
    SCOPED(kube_config_release) struct kube_config config = {0};
    if (count != 4)
        return error_set(error, ERROR_INVALID, "POD.json SERVICE.json JOB.json");
    hash_map_init(&imitation.crews);
    if (read_examples(&imitation, arguments, error) < 0 || kube_config_load(NULL, NULL, &config, error) < 0 ||
        event_loop_new(&imitation.loop, error) < 0 ||
        kube_client_new(imitation.loop, &config, &(struct kube_client_options){.user_agent = "operator-imitate"},
                        &imitation.client, error) < 0)
        return -1;
    watch(&imitation);
    return event_loop_run(imitation.loop, error); /* until a signal ends the process */
}

int main(int count, char **arguments)
{
    struct error error = ERROR_INIT;
    if (run(count, arguments, &error) == 0)
        return 0;
    fprintf(stderr, "operator-imitate: %s\n", error.message);
    return 2;
}
