/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/builtin_types.h"

#include <stdio.h>
#include <string.h>

#include "common/base64.h"
#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/job/enum_words.h"
#include "common/memory.h"
#include "operator/standalone/node.h"
#include "operator/standalone/refusal.h"

static void default_string(struct json *object, const char *key, const char *text)
{
    if (json_member(object, key) == NULL)
        json_set_string(object, key, text);
}

static void default_integer(struct json *object, const char *key, int64_t number)
{
    if (json_member(object, key) == NULL)
        json_set_integer(object, key, number);
}

static void default_object(struct json *object, const char *key)
{
    if (json_member(object, key) == NULL)
        json_set_object(object, key);
}

/* ---- pods ---- */

static void default_probe(struct json *probe)
{
    if (probe == NULL)
        return;
    default_integer(probe, "timeoutSeconds", 1);
    default_integer(probe, "periodSeconds", 10);
    default_integer(probe, "successThreshold", 1);
    default_integer(probe, "failureThreshold", 3);
    struct json *get = json_member(probe, "httpGet");
    if (get) {
        default_string(get, "path", "/");
        default_string(get, "scheme", "HTTP");
    }
}

static bool is_latest(const char *image)
{
    const char *tag = strrchr(image, ':');
    return tag == NULL || strchr(tag, '/') || strcmp(tag, ":latest") == 0;
}

static void default_container(struct json *container)
{
    default_object(container, "resources");
    default_string(container, "terminationMessagePath", "/dev/termination-log");
    default_string(container, "terminationMessagePolicy", "File");
    default_string(container, "imagePullPolicy",
                   is_latest(json_string_at(container, "image", "")) ? "Always" : "IfNotPresent");
    for (struct json *port = json_first(json_member(container, "ports")); port; port = json_next(port))
        default_string(port, "protocol", "TCP");
    for (struct json *variable = json_first(json_member(container, "env")); variable; variable = json_next(variable)) {
        struct json *field = json_at(variable, "valueFrom.fieldRef");
        if (field)
            default_string(field, "apiVersion", "v1");
    }
    default_probe(json_member(container, "readinessProbe"));
    default_probe(json_member(container, "livenessProbe"));
    default_probe(json_member(container, "startupProbe"));
}

static void default_pod(struct json *pod)
{
    struct json *spec = json_set_object(pod, "spec");
    default_string(spec, "restartPolicy", "Always");
    default_integer(spec, "terminationGracePeriodSeconds", GRACE_SECONDS_DEFAULT);
    default_string(spec, "dnsPolicy", "ClusterFirst");
    default_string(spec, "schedulerName", "default-scheduler");
    default_string(spec, "serviceAccountName", "default");
    default_object(spec, "securityContext");
    if (json_member(spec, "enableServiceLinks") == NULL)
        json_set(spec, "enableServiceLinks", json_new_boolean(true));
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < 2; i++)
        for (struct json *item = json_first(json_member(spec, lists[i])); item; item = json_next(item))
            default_container(item);
}

/* The machine is the only node: a pod is bound to it as it is created, unless it waits behind a gate. */
static void prepare_pod(struct json *pod)
{
    struct json *spec = json_member(pod, "spec");
    if (json_count(json_member(spec, "schedulingGates")) == 0)
        default_string(spec, "nodeName", NODE_NAME);
    json_remove(pod, "status");
    struct json *status = json_set_object(pod, "status");
    json_set_string(status, "phase", "Pending");
    json_set_string(status, "qosClass", "BestEffort");
}

static void require(const struct json *object, const char *key, const char *prefix, struct json *causes)
{
    char field[512];
    if (json_string_at(object, key, "")[0])
        return;
    snprintf(field, sizeof field, "%s.%s", prefix, key);
    cause_add(causes, CAUSE_REQUIRED, field, NULL, NULL);
}

static void check_word(const struct json *object, const char *key, const char *field, const char *const *words,
                       struct json *causes)
{
    SCOPED_BUFFER supported = BUFFER_INIT(1024);
    const struct json *value = json_member(object, key);
    if (value == NULL || words_find(words, json_string(value, "")) >= 0)
        return;
    for (const char *const *word = words; *word; word++)
        buffer_format(&supported, "%s\"%s\"", word == words ? "supported values: " : ", ", *word);
    cause_add(causes, CAUSE_NOT_SUPPORTED, field, value, buffer_text(&supported));
}

static void check_repeated_name(const struct json *list, const struct json *item, const char *prefix,
                                struct json *causes)
{
    const char *name = json_string_at(item, "name", "");
    for (const struct json *earlier = json_first(list); earlier != item; earlier = json_next(earlier)) {
        if (strcmp(json_string_at(earlier, "name", ""), name) != 0)
            continue;
        char field[128];
        snprintf(field, sizeof field, "%s.name", prefix);
        cause_add(causes, CAUSE_DUPLICATE, field, json_member(item, "name"), NULL);
        return;
    }
}

/* Each handler after the first is one too many. Returns how many there are. */
static size_t check_handlers(const struct json *probe, const char *const *kinds, const char *prefix,
                             struct json *causes)
{
    size_t count = 0;
    for (; *kinds; kinds++) {
        char field[160];
        if (json_member(probe, *kinds) == NULL || ++count == 1)
            continue;
        snprintf(field, sizeof field, "%s.%s", prefix, *kinds);
        cause_add(causes, CAUSE_FORBIDDEN, field, NULL, "may not specify more than 1 handler type");
    }
    return count;
}

static void check_probe(const struct json *container, const char *name, const char *prefix, struct json *causes)
{
    static const char *const handlers[] = {"exec", "httpGet", "tcpSocket", "grpc", NULL};
    const struct json *probe = json_member(container, name);
    char field[128];
    snprintf(field, sizeof field, "%s.%s", prefix, name);
    if (probe && check_handlers(probe, handlers, field, causes) == 0)
        cause_add(causes, CAUSE_REQUIRED, field, NULL, "must specify a handler type");
}

/* A volume has its name and one source. */
static void check_volume(const struct json *volume, size_t index, struct json *causes)
{
    size_t count = 0;
    for (const struct json *member = json_first(volume); member; member = json_next(member)) {
        char field[160];
        if (strcmp(json_key(member), "name") == 0 || ++count == 1)
            continue;
        snprintf(field, sizeof field, "spec.volumes[%zu].%s", index, json_key(member));
        cause_add(causes, CAUSE_FORBIDDEN, field, NULL, "may not specify more than 1 volume type");
    }
}

static void check_volumes(const struct json *spec, struct json *causes)
{
    size_t index = 0;
    for (const struct json *volume = json_first(json_member(spec, "volumes")); volume; volume = json_next(volume))
        check_volume(volume, index++, causes);
}

static void check_containers(const struct json *spec, const char *key, struct json *causes)
{
    const struct json *containers = json_member(spec, key);
    size_t index = 0;
    for (const struct json *item = json_first(containers); item; item = json_next(item), index++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "spec.%s[%zu]", key, index);
        require(item, "name", prefix, causes);
        require(item, "image", prefix, causes);
        check_repeated_name(containers, item, prefix, causes);
        check_probe(item, "readinessProbe", prefix, causes);
        check_probe(item, "livenessProbe", prefix, causes);
        check_probe(item, "startupProbe", prefix, causes);
    }
}

/* All of a pod's spec is immutable but these. */
static void drop_mutable(struct json *spec)
{
    static const char *const changeable[] = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds",
                                             "schedulingGates"};
    for (size_t i = 0; i < sizeof changeable / sizeof changeable[0]; i++)
        json_remove(spec, changeable[i]);
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < 2; i++)
        for (struct json *item = json_first(json_member(spec, lists[i])); item; item = json_next(item))
            json_remove(item, "image");
}

#define POD_UPDATE_RULE                                                                                                \
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"          \
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"                        \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

static void check_pod(const struct json *pod, const struct json *old, struct json *causes)
{
    static const char *const restart_policies[] = {"Always", "OnFailure", "Never", NULL};
    const struct json *spec = json_member(pod, "spec");
    if (json_count(json_member(spec, "containers")) == 0)
        cause_add(causes, CAUSE_REQUIRED, "spec.containers", NULL, NULL);
    check_containers(spec, "initContainers", causes);
    check_containers(spec, "containers", causes);
    check_volumes(spec, causes);
    check_word(spec, "restartPolicy", "spec.restartPolicy", restart_policies, causes);
    if (old == NULL)
        return;
    SCOPED_JSON *before = json_copy(json_member(old, "spec"));
    SCOPED_JSON *after = json_copy(spec);
    drop_mutable(before);
    drop_mutable(after);
    if (!json_equal(before, after))
        cause_add(causes, CAUSE_FORBIDDEN, "spec", NULL, POD_UPDATE_RULE);
}

/* ---- services ---- */

static void default_service(struct json *service)
{
    struct json *spec = json_set_object(service, "spec");
    default_string(spec, "type", "ClusterIP");
    default_string(spec, "sessionAffinity", "None");
    for (struct json *port = json_first(json_member(spec, "ports")); port; port = json_next(port)) {
        default_string(port, "protocol", "TCP");
        default_integer(port, "targetPort", json_integer_at(port, "port", 0));
    }
}

static void prepare_service(struct json *service)
{
    json_remove(service, "status");
    json_set_object(json_set_object(service, "status"), "loadBalancer");
}

static void check_service(const struct json *service, const struct json *old, struct json *causes)
{
    static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL};
    const struct json *spec = json_member(service, "spec");
    const char *cluster_ip = json_string_at(spec, "clusterIP", "");
    const char *before = json_string_at(old, "spec.clusterIP", "");
    check_word(spec, "type", "spec.type", types, causes);
    if (json_count(json_member(spec, "ports")) == 0 && strcmp(cluster_ip, "None") != 0)
        cause_add(causes, CAUSE_REQUIRED, "spec.ports", NULL, NULL);
    if (before[0] && strcmp(before, cluster_ip) != 0)
        cause_add(causes, CAUSE_INVALID, "spec.clusterIPs[0]", json_member(spec, "clusterIP"),
                  "may not change once set");
}

/* ---- secrets ---- */

static void default_secret(struct json *secret)
{
    const struct json *texts = json_member(secret, "stringData");
    default_string(secret, "type", "Opaque");
    if (texts == NULL)
        return;
    struct json *data = json_set_object(secret, "data");
    for (const struct json *text = json_first(texts); text; text = json_next(text)) {
        const char *plain = json_string(text, "");
        SCOPED_FREE char *encoded = base64_encode(plain, strlen(plain));
        json_set_string(data, json_key(text), encoded);
    }
    json_remove(secret, "stringData");
}

static void check_secret(const struct json *secret, const struct json *old, struct json *causes)
{
    if (old && strcmp(json_string_at(old, "type", ""), json_string_at(secret, "type", "")) != 0)
        cause_add(causes, CAUSE_INVALID, "type", json_member(secret, "type"), "field is immutable");
}

/* ---- the others ---- */

static void default_claim(struct json *claim)
{
    default_string(json_set_object(claim, "spec"), "volumeMode", "Filesystem");
}

/* The node makes the directory: a claim is bound as it is created. */
static void prepare_claim(struct json *claim)
{
    json_remove(claim, "status");
    struct json *status = json_set_object(claim, "status");
    json_set_string(status, "phase", "Bound");
    json_set(status, "accessModes", json_copy(json_at(claim, "spec.accessModes")));
    json_set(status, "capacity", json_copy(json_at(claim, "spec.resources.requests")));
}

static void check_claim(const struct json *claim, const struct json *old, struct json *causes)
{
    (void)old;
    if (json_count(json_at(claim, "spec.accessModes")) == 0)
        cause_add(causes, CAUSE_REQUIRED, "spec.accessModes", NULL, "at least 1 access mode is required");
    if (json_at(claim, "spec.resources.requests.storage") == NULL)
        cause_add(causes, CAUSE_REQUIRED, "spec.resources[storage]", NULL, NULL);
}

static void prepare_namespace(struct json *namespace)
{
    struct json *labels = json_set_object(json_set_object(namespace, "metadata"), "labels");
    json_set_string(labels, "kubernetes.io/metadata.name", json_string_at(namespace, "metadata.name", ""));
    json_append_string(json_set_array(json_set_object(namespace, "spec"), "finalizers"), "kubernetes");
    json_remove(namespace, "status");
    json_set_string(json_set_object(namespace, "status"), "phase", "Active");
}

static void add_condition(struct json *conditions, const char *type, const char *reason, const char *message)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms(), now);
    struct json *condition = json_append(conditions, json_new_object());
    json_set_string(condition, "type", type);
    json_set_string(condition, "status", "True");
    json_set_string(condition, "lastTransitionTime", now);
    json_set_string(condition, "reason", reason);
    json_set_string(condition, "message", message);
}

static void default_definition(struct json *definition)
{
    struct json *names = json_set_object(json_set_object(definition, "spec"), "names");
    const char *kind = json_string_at(names, "kind", "");
    SCOPED_FREE char *list = memory_format("%sList", kind);
    SCOPED_FREE char *singular = memory_copy_string(kind);
    for (char *c = singular; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
    default_string(names, "listKind", list);
    default_string(names, "singular", singular);
    if (json_at(definition, "spec.conversion") == NULL)
        json_set_string(json_set_object(json_member(definition, "spec"), "conversion"), "strategy", "None");
}

static void prepare_definition(struct json *definition)
{
    json_remove(definition, "status");
    struct json *status = json_set_object(definition, "status");
    struct json *conditions = json_set_array(status, "conditions");
    add_condition(conditions, "NamesAccepted", "NoConflicts", "no conflicts found");
    add_condition(conditions, "Established", "InitialNamesAccepted", "the initial names have been accepted");
    json_set(status, "acceptedNames", json_copy(json_at(definition, "spec.names")));
    struct json *stored = json_set_array(status, "storedVersions");
    const struct json *versions = json_at(definition, "spec.versions");
    for (const struct json *version = json_first(versions); version; version = json_next(version))
        if (json_boolean_at(version, "storage", false))
            json_append_string(stored, json_string_at(version, "name", ""));
}

static void check_definition(const struct json *definition, const struct json *old, struct json *causes)
{
    (void)old;
    SCOPED_FREE char *expected = memory_format("%s.%s", json_string_at(definition, "spec.names.plural", ""),
                                               json_string_at(definition, "spec.group", ""));
    require(definition, "spec.group", "", causes);
    require(definition, "spec.names.plural", "", causes);
    require(definition, "spec.names.kind", "", causes);
    if (json_count(json_at(definition, "spec.versions")) == 0)
        cause_add(causes, CAUSE_REQUIRED, "spec.versions", NULL, NULL);
    if (strcmp(json_string_at(definition, "metadata.name", ""), expected) != 0)
        cause_add(causes, CAUSE_INVALID, "metadata.name", json_at(definition, "metadata.name"),
                  "must be spec.names.plural+\".\"+spec.group");
}

static void check_event(const struct json *event, const struct json *old, struct json *causes)
{
    (void)old;
    const char *namespace = json_string_at(event, "involvedObject.namespace", "");
    if (namespace[0] && strcmp(namespace, json_string_at(event, "metadata.namespace", "")) != 0)
        cause_add(causes, CAUSE_INVALID, "involvedObject.namespace", json_at(event, "involvedObject.namespace"),
                  "does not match event.namespace");
}

/* ---- the table ---- */

static const struct builtin_type {
    const char *storage;
    void (*fill)(struct json *object);
    void (*prepare)(struct json *object);
    void (*check)(const struct json *object, const struct json *old, struct json *causes);
} types[] = {
    {"pods", default_pod, prepare_pod, check_pod},
    {"services", default_service, prepare_service, check_service},
    {"secrets", default_secret, NULL, check_secret},
    {"persistentvolumeclaims", default_claim, prepare_claim, check_claim},
    {"namespaces", NULL, prepare_namespace, NULL},
    {"customresourcedefinitions.apiextensions.k8s.io", default_definition, prepare_definition, check_definition},
    {"events", NULL, NULL, check_event},
};

static const struct builtin_type *find(const struct resource *resource)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].storage, resource->storage) == 0)
            return &types[i];
    return NULL;
}

void builtin_default(const struct resource *resource, struct json *object)
{
    const struct builtin_type *type = find(resource);
    if (type && type->fill)
        type->fill(object);
}

void builtin_prepare_new(const struct resource *resource, struct json *object)
{
    const struct builtin_type *type = find(resource);
    if (type && type->prepare)
        type->prepare(object);
}

void builtin_check(const struct resource *resource, const struct json *object, const struct json *old,
                   struct json *causes)
{
    const struct builtin_type *type = find(resource);
    if (type && type->check)
        type->check(object, old, causes);
}
