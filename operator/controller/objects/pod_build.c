/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/pod_build.h"

#include <inttypes.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/job/job_roles.h"
#include "common/job/template_overlay.h"
#include "common/job/training_class.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/objects/crew_key.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/environment_build.h"
#include "operator/controller/objects/environment_list.h"
#include "operator/controller/objects/environment_tpu.h"
#include "operator/controller/objects/gang.h"
#include "operator/controller/objects/hang_hook.h"
#include "operator/controller/objects/object_storage.h"
#include "operator/controller/objects/progress_push.h"
#include "operator/controller/objects/queue_build.h"

/* Any user but root; the group lets it write to volumes. */
#define WORKER_USER 65532
#define TEMPORARY_VOLUME "coxswain-temporary"
#define TEMPORARY_FOLDER "/coxswain/temporary"

char *pod_name(const struct training_job *job, enum role role, int64_t index)
{
    return memory_format("%s-%s-%" PRId64 "-%" PRId64, job->name, role_name(role), index, job->status.incarnation);
}

int pod_builder_init(struct pod_builder *builder, const struct training_job *job, const struct pod_options *options,
                     struct error *error)
{
    bool own = job->framework == FRAMEWORK_COXSWAIN;
    const char *image = job->image ? job->image : own ? options->worker_image : NULL;
    if (!image || *image == '\0')
        return error_set(error, ERROR_INVALID,
                         own ? "spec.image: required, since the operator was started without --worker-image"
                             : "spec.image: required for this framework");
    const char *storage_image = own ? image : options->worker_image;
    if (object_storage_is_used(&job->document) && (!storage_image || *storage_image == '\0'))
        return error_set(
            error, ERROR_INVALID,
            "spec.storage: s3 and download need an operator that was started with --worker-image, whose image "
            "has the program that copies the files");
    char *document;
    if (environment_document(job, &document, error) < 0)
        return -1;
    *builder = (struct pod_builder){
        .job = job, .options = options, .image = image, .storage_image = storage_image, .document = document};
    return 0;
}

void pod_builder_release(struct pod_builder *builder)
{
    free(builder->document);
    *builder = (struct pod_builder){0};
}

static void add_port(struct json *ports, const char *name, int64_t number)
{
    struct json *port = json_append(ports, json_new_object());
    json_set_string(port, "name", name);
    json_set_integer(port, "containerPort", number);
}

static void set_ports(struct json *container, const struct training_job *job, enum role role)
{
    struct json *ports = json_set(container, "ports", json_new_array());
    add_port(ports, PORT_CREW_NAME, crew_port(job, role));
    if (job->framework != FRAMEWORK_COXSWAIN)
        return;
    add_port(ports, "collective", PORT_COLLECTIVE);
    add_port(ports, "http", PORT_HTTP);
}

static void set_readiness(struct json *container)
{
    struct json *probe = json_set(container, "readinessProbe", json_new_object());
    struct json *get = json_set(probe, "httpGet", json_new_object());
    json_set_string(get, "path", "/healthz");
    json_set_integer(get, "port", PORT_HTTP);
    json_set_integer(probe, "periodSeconds", 1);
    json_set_integer(probe, "timeoutSeconds", 2);
    json_set_integer(probe, "failureThreshold", 10);
}

/* Its answer says what a restart mends (worker/train/port_health.h); ten minutes without one are a process that hangs. */
static void set_liveness(struct json *container)
{
    struct json *probe = json_set(container, "livenessProbe", json_new_object());
    struct json *get = json_set(probe, "httpGet", json_new_object());
    json_set_string(get, "path", "/healthz/live");
    json_set_integer(get, "port", PORT_HTTP);
    json_set_integer(probe, "periodSeconds", 60);
    json_set_integer(probe, "timeoutSeconds", 10);
    json_set_integer(probe, "failureThreshold", 10);
}

static void set_mounts(struct json *container, const struct pod_builder *builder)
{
    const struct training_job *job = builder->job;
    const struct job_document *document = &job->document;
    struct json *mounts = json_set(container, "volumeMounts", json_new_array());
    for (unsigned i = 0; i < document->storage_count; i++) {
        const struct storage_spec *storage = &document->storage[i];
        SCOPED_FREE char *path = memory_format("%s/%s", STORAGE_ROOT, storage->name);
        struct json *mount = json_append(mounts, json_new_object());
        json_set_string(mount, "name", storage->name);
        json_set_string(mount, "mountPath", path);
        if (storage->read_only || (storage->s3.enabled && !object_storage_is_written(job, storage)))
            json_set_boolean(mount, "readOnly", true);
    }
    object_storage_add_mounts(mounts, job);
    if (crew_key_is_needed(job))
        crew_key_add_mount(mounts);
    if (crew_certificate_is_needed(job))
        crew_certificate_add_mount(mounts);
    if (push_is_possible(job, builder->options->push))
        push_add_mount(mounts);
}

static void set_volumes(struct json *spec, const struct pod_builder *builder)
{
    const struct training_job *job = builder->job;
    const struct job_document *document = &job->document;
    struct json *volumes = json_set(spec, "volumes", json_new_array());
    for (unsigned i = 0; i < document->storage_count; i++) {
        if (document->storage[i].s3.enabled)
            continue;
        struct json *volume = json_append(volumes, json_copy(document->storage[i].source));
        json_set_string(volume, "name", document->storage[i].name);
    }
    object_storage_add_volumes(volumes, document);
    if (crew_key_is_needed(job))
        crew_key_add_volume(volumes, job);
    if (crew_certificate_is_needed(job))
        crew_certificate_add_volume(volumes, job);
    if (push_is_possible(job, builder->options->push))
        push_add_volume(volumes, job);
    if (job->framework == FRAMEWORK_COXSWAIN) {
        struct json *temporary = json_append(volumes, json_new_object());
        json_set_string(temporary, "name", TEMPORARY_VOLUME);
        json_set(temporary, "emptyDir", json_new_object());
    }
}

/* Returns the type of devices that the job's pods request. In a cluster nobody knows where there are GPUs, so Auto requests none; on one
 * machine it requests them if there are enough for the job. */
static enum device_type requested_type(const struct pod_builder *builder)
{
    enum device_type type = builder->job->document.devices.type;
    bool fits = job_least_devices(builder->job) <= builder->options->machine_gpus;
    return type == DEVICE_TYPE_AUTO && fits ? DEVICE_TYPE_GPU : type;
}

/* Requests the devices as an extended resource. */
static void set_devices(struct json *container, const struct pod_builder *builder, enum role role)
{
    const char *resource = job_device_resource(builder->job, role, requested_type(builder));
    int64_t count = job_role_devices(builder->job, role);
    if (!resource || count == 0)
        return;
    struct json *limits = json_set(json_set(container, "resources", json_new_object()), "limits", json_new_object());
    child_label_number(limits, resource, count);
}

/* Sets what the Pod Security Standard "restricted" requires. */
static void set_container_security(struct json *container, bool read_only_root)
{
    struct json *context = json_set(container, "securityContext", json_new_object());
    json_set_boolean(context, "allowPrivilegeEscalation", false);
    if (read_only_root)
        json_set_boolean(context, "readOnlyRootFilesystem", true);
    struct json *capabilities = json_set(context, "capabilities", json_new_object());
    json_append_string(json_set(capabilities, "drop", json_new_array()), "ALL");
}

static void set_pod_security(struct json *spec)
{
    struct json *context = json_set(spec, "securityContext", json_new_object());
    json_set_boolean(context, "runAsNonRoot", true);
    json_set_integer(context, "runAsUser", WORKER_USER);
    json_set_integer(context, "runAsGroup", WORKER_USER);
    json_set_integer(context, "fsGroup", WORKER_USER);
    json_set_string(context, "fsGroupChangePolicy", "OnRootMismatch");
    json_set_string(json_set(context, "seccompProfile", json_new_object()), "type", "RuntimeDefault");
}

/* The name under which a template speaks of the main container. */
static const char *main_container_name(const struct json *template)
{
    return json_string_at(template_main_container(template), "name", TRAINER_CONTAINER);
}

/* libtpu writes its lock file to /tmp, whatever TMPDIR is, so workers with TPUs need a root file system that can be written. */
static bool has_read_only_root(const struct training_job *job)
{
    return job->framework == FRAMEWORK_COXSWAIN && job->document.devices.type != DEVICE_TYPE_TPU;
}

/* Gives the worker a folder for temporary files, since its root file system is read-only. */
static void set_temporary_folder(struct json *container)
{
    struct json *mount = json_append(json_member(container, "volumeMounts"), json_new_object());
    json_set_string(mount, "name", TEMPORARY_VOLUME);
    json_set_string(mount, "mountPath", TEMPORARY_FOLDER);
    struct json *variable = json_append(json_member(container, "env"), json_new_object());
    json_set_string(variable, "name", "TMPDIR");
    json_set_string(variable, "value", TEMPORARY_FOLDER);
}

/* A foreign image has its own command, or the template gives one; without a probe a pod is ready once it runs. */
static void set_worker(struct json *container)
{
    json_append_string(json_set(container, "command", json_new_array()), "coxswain-worker");
    set_temporary_folder(container);
    set_readiness(container);
    set_liveness(container);
}

static struct json *default_container(const struct pod_builder *builder, enum role role, const struct json *environment)
{
    const struct training_job *job = builder->job;
    struct json *container = json_new_object();
    json_set_string(container, "name", main_container_name(job->roles[role].template));
    json_set_string(container, "image", builder->image);
    json_set(container, "env", json_copy(environment));
    set_ports(container, job, role);
    set_mounts(container, builder);
    if (job->framework == FRAMEWORK_COXSWAIN)
        set_worker(container);
    hang_hook_add(container, job, role);
    set_devices(container, builder, role);
    set_container_security(container, has_read_only_root(job));
    json_set_string(container, "terminationMessagePolicy", "FallbackToLogsOnError");
    return container;
}

/* Gives an init container the main container's requests and limits for CPU and memory: a quota may refuse pods with a container that has
 * none, and a pod whose containers all have limits can have a better quality of service. The pod does not reserve more for it, because init
 * containers run before the main container. */
static void copy_resources(struct json *container, const struct json *main)
{
    static const char *const kinds[] = {"requests", "limits"}, *const names[] = {"cpu", "memory"};
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t name = 0; name < 2; name++) {
            const struct json *amounts = json_member(json_member(main, "resources"), kinds[kind]);
            const struct json *amount = json_member(amounts, names[name]);
            if (amount)
                json_set(json_set_object(json_set_object(container, "resources"), kinds[kind]), names[name],
                         json_copy(amount));
        }
}

/* Resources for a container that only copies, of the kinds that the main container has: a quota may want them, and a pod all of whose
 * containers have limits may have a better quality of service. */
static void set_copy_resources(struct json *container, const struct json *main)
{
    static const char *const kinds[] = {"requests", "limits"};
    static const char *const amounts[][2] = {{"cpu", "500m"}, {"memory", "512Mi"}};
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < 2; i++)
            if (json_member(json_member(json_member(main, "resources"), kinds[kind]), amounts[i][0]))
                json_set_string(json_set_object(json_set_object(container, "resources"), kinds[kind]), amounts[i][0],
                                amounts[i][1]);
}

/* Adds the init containers and sidecars that copy objects and download files. They come before those of the template, which may read the
 * files. */
static void set_fetches(struct json *spec, const struct pod_builder *builder, enum role role, bool uploads)
{
    const struct json *main = template_main_container(builder->job->roles[role].template);
    const char *pull = json_string_at(main, "imagePullPolicy", NULL);
    struct json *list = json_set_array(spec, "initContainers");
    object_storage_add_fetches(list, builder->job, builder->storage_image, uploads);
    for (struct json *item = json_first(list); item; item = json_next(item)) {
        set_container_security(item, true);
        json_set_string(item, "terminationMessagePolicy", "FallbackToLogsOnError");
        if (json_member(item, "restartPolicy"))
            set_copy_resources(item, main);
        else
            copy_resources(item, main);
        if (pull && builder->job->framework == FRAMEWORK_COXSWAIN) /* the same image */
            json_set_string(item, "imagePullPolicy", pull);
    }
}

/* So that a sidecar can upload a last checkpoint. */
#define UPLOAD_GRACE_SECONDS 300

static struct json *default_spec(const struct pod_builder *builder, enum role role, int64_t index,
                                 const struct json *environment)
{
    const struct training_job *job = builder->job;
    bool uploads = object_storage_uploads(job, role, index);
    struct json *spec = json_new_object();
    json_append(json_set(spec, "containers", json_new_array()), default_container(builder, role, environment));
    if (object_storage_is_used(&job->document))
        set_fetches(spec, builder, role, uploads);
    set_volumes(spec, builder);
    set_pod_security(spec);
    json_set_integer(spec, "terminationGracePeriodSeconds", uploads ? UPLOAD_GRACE_SECONDS : GRACE_SECONDS_DEFAULT);
    json_set_boolean(spec, "automountServiceAccountToken", false);
    json_set_boolean(spec, "enableServiceLinks", false);
    if (job->run_policy.priority_class_name)
        json_set_string(spec, "priorityClassName", job->run_policy.priority_class_name);
    return spec;
}

/* Variables set by name take precedence over those of a whole ConfigMap, so only a source with the operator's prefix is refused. */
static int check_sources(const struct json *container, struct error *error)
{
    const struct json *sources = json_member(container, "envFrom");
    for (const struct json *source = json_first(sources); source; source = json_next(source))
        if (strncmp(json_string_at(source, "prefix", ""), ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
            return error_set(error, ERROR_INVALID,
                             "the template of container %s has envFrom with prefix " ENV_PREFIX
                             ", which is the operator's: choose another",
                             json_string_at(container, "name", ""));
    return 0;
}

static bool may_set(const struct pod_builder *builder, const char *name)
{
    enum framework framework = builder->job->framework;
    return !environment_is_reserved(framework, name) || (builder->has_run && environment_was_free(framework, name));
}

static int check_container(const struct pod_builder *builder, const struct json *container, struct error *error)
{
    const struct json *env = json_member(container, "env");
    for (const struct json *entry = json_first(env); entry; entry = json_next(entry)) {
        const char *name = json_string_at(entry, "name", "");
        if (!may_set(builder, name))
            return error_set(error, ERROR_INVALID,
                             "the template of container %s sets %s, which the operator sets itself: take it out",
                             json_string_at(container, "name", ""), name);
    }
    return check_sources(container, error);
}

static int check_template(const struct pod_builder *builder, const struct json *template, struct error *error)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const struct json *spec = json_member(template, "spec");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct json *item = json_first(json_member(spec, lists[i])); item; item = json_next(item))
            if (check_container(builder, item, error) < 0)
                return -1;
    return 0;
}

/* Other containers of the pod get the same environment; their own variables take precedence. */
static void set_environment(struct json *container, const struct json *environment)
{
    SCOPED_JSON *given = json_new_object();
    struct json *own = json_member(container, "env");
    if (own)
        json_set(given, "env", json_copy(own));
    json_set(container, "env", json_copy(environment));
    template_overlay(container, given);
}

/* All but the main one, which is the first. */
static void set_environment_of_others(struct json *spec, const struct json *environment)
{
    struct json *containers = json_member(spec, "containers");
    for (struct json *item = json_next(json_first(containers)); item; item = json_next(item))
        set_environment(item, environment);
    for (struct json *item = json_first(json_member(spec, "initContainers")); item; item = json_next(item))
        set_environment(item, environment);
}

static struct json *metadata_base(const struct json *template)
{
    struct json *metadata = json_new_object();
    static const char *const kept[] = {"labels", "annotations"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const struct json *given = json_member(json_at(template, "metadata"), kept[i]);
        if (json_type(given) == JSON_OBJECT)
            json_set(metadata, kept[i], json_copy(given));
    }
    return metadata;
}

static int64_t slice_of(const struct training_job *job, enum role role, int64_t index)
{
    return crew_rank(job, role, index) / environment_tpu_hosts(job);
}

static void set_metadata(struct json *metadata, const struct training_job *job, enum role role, int64_t index)
{
    SCOPED_FREE char *name = pod_name(job, role, index);
    child_metadata_fill(metadata, job, name);
    struct json *labels = json_member(metadata, "labels");
    json_set_string(labels, LABEL_APP_COMPONENT, role_name(role));
    json_set_string(labels, LABEL_ROLE, role_name(role));
    child_label_number(labels, LABEL_INDEX, index);
    child_label_number(labels, LABEL_ATTEMPT, job->status.attempt);
    child_label_number(labels, LABEL_INCARNATION, job->status.incarnation);
    if (environment_tpu_slices(job) > 1 && crew_has_rank(role))
        child_label_number(labels, LABEL_SLICE, slice_of(job, role, index));
    json_set_string(labels, LABEL_CURRENT, "true");
    json_set_string(labels, LABEL_KUBEFLOW_REPLICA_TYPE, role_name(role));
    child_label_number(labels, LABEL_KUBEFLOW_REPLICA_INDEX, index);
}

static void set_fixed(struct json *spec, const struct training_job *job, enum role role, int64_t index)
{
    SCOPED_FREE char *host = memory_format("%s-%s-%" PRId64, job->name, role_name(role), index);
    json_set_string(spec, "hostname", host);
    json_set_string(spec, "subdomain", job->name);
    json_set_string(spec, "restartPolicy", "Never");
}

static int refuse_template(const struct training_job *job, enum role role, struct error *error)
{
    SCOPED_FREE char *class = training_class_words(job);
    return error_wrap(error, "spec.%s.template%s", role_section(role), class);
}

/* On some clouds a node's name is a domain name, and its label has only the part before the first dot. */
static void add_avoided(struct json *term, const struct pod_builder *builder)
{
    struct json *expression = json_append(json_set_array(term, "matchExpressions"), json_new_object());
    json_set_string(expression, "key", LABEL_HOST_NAME);
    json_set_string(expression, "operator", "NotIn");
    struct json *values = json_set(expression, "values", json_new_array());
    for (size_t i = 0; i < builder->avoided_node_count; i++) {
        const char *node = builder->avoided_nodes[i], *dot = strchr(node, '.');
        json_append_string(values, node);
        SCOPED_FREE char *host = dot ? memory_format("%.*s", (int)(dot - node), node) : NULL;
        if (host && *host)
            json_append_string(values, host);
    }
}

/* Room for about 128 names of nodes, which have at most 253 characters. */
#define AVOIDED_TEXT_MAX 32768

/* Keeps a pod off the avoided nodes by its required node affinity. A node needs to match only one of the affinity's terms, so every term
 * gets the requirement; but a term without requirements, which matches no node, stays as it is, because with this one it would match all
 * others. */
static void avoid_nodes(struct json *pod, const struct pod_builder *builder)
{
    if (builder->avoided_node_count == 0)
        return;
    SCOPED_BUFFER names = BUFFER_INIT(AVOIDED_TEXT_MAX);
    for (size_t i = 0; i < builder->avoided_node_count; i++)
        buffer_format(&names, "%s%s", i > 0 ? "," : "", builder->avoided_nodes[i]);
    struct json *annotations = json_set_object(json_member(pod, "metadata"), "annotations");
    json_set_string(annotations, ANNOTATION_AVOIDED_NODES, buffer_text(&names));
    struct json *spec = json_member(pod, "spec");
    struct json *affinity = json_set_object(json_set_object(spec, "affinity"), "nodeAffinity");
    struct json *required = json_set_object(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct json *terms = json_set_array(required, "nodeSelectorTerms");
    if (json_count(terms) == 0)
        add_avoided(json_append(terms, json_new_object()), builder);
    else
        for (struct json *term = json_first(terms); term; term = json_next(term))
            if (json_count(json_member(term, "matchExpressions")) + json_count(json_member(term, "matchFields")) > 0)
                add_avoided(term, builder);
}

/* Adds a term to `affinity`: near pods, or away from them, that are of this job and whose slice is (`operator` In), or is
 * not (NotIn), this one. */
static void add_slice_term(struct json *affinity, const struct training_job *job, const char *operator, int64_t slice)
{
    struct json *terms = json_set_array(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct json *term = json_append(terms, json_new_object());
    struct json *selector = json_set_object(term, "labelSelector");
    json_set_string(json_set_object(selector, "matchLabels"), LABEL_JOB_UID, job->uid);
    struct json *expressions = json_set_array(selector, "matchExpressions");
    struct json *exists = json_append(expressions, json_new_object());
    json_set_string(exists, "key", LABEL_SLICE);
    json_set_string(exists, "operator", "Exists");
    struct json *expression = json_append(expressions, json_new_object());
    SCOPED_FREE char *number = memory_format("%" PRId64, slice);
    json_set_string(expression, "key", LABEL_SLICE);
    json_set_string(expression, "operator", operator);
    json_append_string(json_set_array(expression, "values"), number);
    json_set_string(term, "topologyKey", LABEL_NODE_POOL);
}

/* Keeps the hosts of a slice in one node pool, and other slices out of it. A slice of one host is a node by itself. */
static void gather_slice(struct json *spec, const struct training_job *job, enum role role, int64_t index)
{
    if (environment_tpu_slices(job) == 1 || environment_tpu_hosts(job) == 1 || !crew_has_rank(role))
        return;
    struct json *affinity = json_set_object(spec, "affinity");
    int64_t slice = slice_of(job, role, index);
    add_slice_term(json_set_object(affinity, "podAffinity"), job, "In", slice);
    add_slice_term(json_set_object(affinity, "podAntiAffinity"), job, "NotIn", slice);
}

/* Tells the node of the embedded control plane how many GPUs the crew needs. */
static void mark_crew_gpus(struct json *pod, const struct pod_builder *builder)
{
    int64_t gpus = job_least_devices(builder->job);
    if (builder->options->machine_gpus == 0 || requested_type(builder) != DEVICE_TYPE_GPU)
        return;
    child_label_number(json_set_object(json_member(pod, "metadata"), "annotations"), ANNOTATION_CREW_GPUS, gpus);
}

int pod_build(const struct pod_builder *builder, enum role role, int64_t index, struct json **ret_pod,
              struct error *error)
{
    const struct training_job *job = builder->job;
    const struct json *template = job->roles[role].template;
    if (template_overlay_check(json_at(template, "spec"), error) < 0 || check_template(builder, template, error) < 0)
        return refuse_template(job, role, error);
    struct json *pod = json_new_object();
    json_set_string(pod, "apiVersion", "v1");
    json_set_string(pod, "kind", "Pod");
    set_metadata(json_set(pod, "metadata", metadata_base(template)), job, role, index);
    SCOPED_JSON *environment = environment_build(job, role, index, builder->document);
    if (push_is_possible(job, builder->options->push)) {
        SCOPED_FREE char *name = pod_name(job, role, index);
        push_add_environment(environment, job, builder->options->push, name);
    }
    struct json *spec = json_set(pod, "spec", default_spec(builder, role, index, environment));
    template_overlay(spec, json_at(template, "spec"));
    set_environment_of_others(spec, environment);
    set_fixed(spec, job, role, index);
    queue_place(pod, role, builder->placement);
    avoid_nodes(pod, builder);
    gather_slice(spec, job, role, index);
    mark_crew_gpus(pod, builder);
    gang_mark(pod, job, role, builder->options->coscheduling_scheduler);
    *ret_pod = pod;
    return 0;
}
