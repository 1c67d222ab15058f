/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/standalone/node_address.h"
#include "operator/standalone/node_container.h"
#include "operator/standalone/node_gpus.h"
#include "operator/standalone/node_hosts.h"
#include "operator/standalone/node_pod.h"
#include "operator/standalone/registry.h"

#define PROBE_CONNECTIONS_MAX 64
#define POD_LOG_MAX (2 * CONTAINER_LOG_MAX)

DEFINE_SCOPE_FREE(DIR *, closedir)

#define CONFIGURATIONS 2 /* kinds of objects that become files */

struct node {
    struct node_options options;
    char *state_directory, *program_directory;
    enum node_isolation isolation;
    char reason[ERROR_MESSAGE_MAX]; /* why namespaces are not used */
    struct address_pool addresses;
    struct gpu_pool gpus;
    struct http_client *client;
    struct pod **pods;
    size_t pod_count;
    struct json *services; /* an array */
    struct registry_subscription *pod_changes, *service_changes, *configuration_changes[CONFIGURATIONS];
    struct event_timer *turn; /* something changed: see node_turn */
    struct event_timer *stopped_timer;
    struct event_timer *alive_timer;
    int alive;             /* the file STATE_ALIVE; -1: not open */
    int64_t last_alive_ms; /* when an earlier process was alive for the last time */
    bool stopping;
    node_stopped *stopped;
    void *stopped_context;
};

static const char *const configurations[CONFIGURATIONS] = {"configmaps", "secrets"};

static const char *const isolation_words[] = {
#define X(name, word) [NODE_##name] = word,
    NODE_ISOLATIONS(X)
#undef X
};

bool node_isolation_parse(const char *word, enum node_isolation *ret_isolation)
{
    for (size_t i = 0; i < sizeof isolation_words / sizeof *isolation_words; i++) {
        if (strcmp(word, isolation_words[i]) == 0) {
            *ret_isolation = (enum node_isolation)i;
            return true;
        }
    }
    return false;
}

const char *node_isolation_word(enum node_isolation isolation)
{
    return isolation_words[isolation];
}

enum node_isolation node_isolation_used(const struct node *node)
{
    return node->isolation;
}

const char *node_isolation_reason(const struct node *node)
{
    return node->reason;
}

/* ---------------------------------------------------------------- hosts files */

static struct buffer published_for(const struct node *node, const char *name_space)
{
    struct buffer published = BUFFER_INIT(HOSTS_FILE_MAX);
    size_t service_count = json_count(node->services), i = 0;
    const struct json **services = memory_allocate(service_count + 1, sizeof *services);
    for (const struct json *item = json_first(node->services); item; item = json_next(item))
        services[i++] = item;
    const struct json **pods = memory_allocate(node->pod_count + 1, sizeof *pods);
    for (i = 0; i < node->pod_count; i++)
        pods[i] = pod_object(node->pods[i]);
    hosts_published(&published, name_space, services, service_count, pods, node->pod_count);
    free(services);
    free(pods);
    return published;
}

/* Pods of one namespace share what is published for it; neighbours in the list mostly are of one. */
static void hosts_refresh(struct node *node)
{
    const char *current = NULL;
    SCOPED_BUFFER published = BUFFER_INIT(HOSTS_FILE_MAX);
    for (size_t i = 0; i < node->pod_count; i++) {
        const char *name_space = json_string_at(pod_object(node->pods[i]), "metadata.namespace", "");
        if (!current || strcmp(current, name_space) != 0) {
            buffer_release(&published);
            published = published_for(node, name_space);
            current = name_space;
        }
        pod_write_hosts(node->pods[i], &published);
    }
}

/* ---------------------------------------------------------------- pods */

static bool is_over(const struct json *pod)
{
    const char *phase = json_string_at(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool is_ours(const struct json *pod)
{
    return strcmp(json_string_at(pod, "spec.nodeName", ""), NODE_NAME) == 0;
}

static size_t pod_index(const struct node *node, const struct json *object)
{
    const char *uid = json_string_at(object, "metadata.uid", "");
    size_t i = 0;
    while (i < node->pod_count && strcmp(pod_uid(node->pods[i]), uid) != 0)
        i++;
    return i;
}

static void delete_now(struct node *node, const struct json *pod)
{
    registry_delete(node->options.registry, "pods", json_string_at(pod, "metadata.namespace", ""),
                    json_string_at(pod, "metadata.name", ""), json_string_at(pod, "metadata.uid", ""), 0, NULL);
}

static void node_changed(void *context);

static void pod_refuse(struct node *node, const struct json *object, const char *message)
{
    SCOPED_JSON *refused = json_copy(object);
    struct json *status = json_set_object(refused, "status");
    json_set_string(status, "phase", "Failed");
    json_set_string(status, "reason", "NodeFailure");
    json_set_string(status, "message", message);
    json_remove(json_member(refused, "metadata"), "resourceVersion");
    registry_update_status(node->options.registry, "pods", refused, NULL, NULL);
    registry_event(node->options.registry, object, "Warning", "FailedCreatePodSandBox", "coxswain-standalone", message,
                   NULL);
}

static void pod_add(struct node *node, const struct json *object)
{
    if (!is_ours(object))
        return;
    if (json_at(object, "metadata.deletionTimestamp")) {
        delete_now(node, object);
        return;
    }
    if (node->stopping || is_over(object))
        return;
    struct pod_host host = {.options = &node->options,
                            .client = node->client,
                            .namespaces = node->isolation == NODE_NAMESPACES,
                            .changed = node_changed,
                            .context = node};
    char address[ADDRESS_TEXT_MAX];
    struct error error = ERROR_INIT;
    struct pod *pod = NULL;
    if (address_take(&node->addresses, address, &error) < 0 || pod_new(&host, object, address, &pod, &error) < 0) {
        pod_refuse(node, object, error.message);
        return;
    }
    node->pods = memory_resize(node->pods, node->pod_count + 1, sizeof(struct pod *));
    node->pods[node->pod_count++] = pod;
    node_changed(node);
}

static void pod_drop(struct node *node, size_t index)
{
    struct pod *pod = node->pods[index];
    SCOPED_FREE char *uid = memory_copy_string(pod_uid(pod));
    address_give_back(&node->addresses, pod_address(pod));
    pod_free(pod);
    pod_files_remove(&node->options, uid);
    memmove(&node->pods[index], &node->pods[index + 1], (node->pod_count - index - 1) * sizeof(struct pod *));
    node->pod_count--;
    node_changed(node);
}

static void pod_observed(void *context, enum registry_change change, const char *plural, const struct json *object)
{
    (void)plural;
    struct node *node = context;
    size_t index = pod_index(node, object);
    if (change == REGISTRY_DELETED && index < node->pod_count) {
        pod_drop(node, index);
    } else if (change == REGISTRY_DELETED) {
        pod_files_remove(&node->options, json_string_at(object, "metadata.uid", "none"));
    } else if (index < node->pod_count) {
        pod_update(node->pods[index], object);
        node_changed(node);
    } else {
        pod_add(node, object);
    }
}

/* ---------------------------------------------------------------- GPUs */

/* A gpu_pool_lives. */
static bool has_live_pod(void *context, const char *crew, const char *uid)
{
    const struct node *node = context;
    for (size_t i = 0; i < node->pod_count; i++) {
        const struct gpu_request request = gpu_request_of(pod_object(node->pods[i]));
        if (request.count > 0 && !pod_is_over(node->pods[i]) && strcmp(request.crew, crew) == 0 &&
            (!uid || strcmp(request.pod, uid) == 0))
            return true;
    }
    return false;
}

/* The crew that waits for the longest time is served first, so that a large one is not passed over. One that this machine is too small
 * for does not keep others waiting. */
static void gpus_assign(struct node *node)
{
    bool others_wait = false;
    gpu_pool_collect(&node->gpus, has_live_pod, node);
    for (size_t i = 0; i < node->pod_count; i++) {
        struct pod *pod = node->pods[i];
        const struct gpu_request request = gpu_request_of(pod_object(pod));
        if (request.count == 0 || pod_is_over(pod))
            continue;
        bool may = !others_wait || gpu_pool_has_crew(&node->gpus, request.crew);
        if (may && gpu_pool_take(&node->gpus, &request)) {
            SCOPED_FREE char *visible = gpu_pool_visible(&node->gpus, request.pod);
            pod_give_gpus(pod, visible);
            continue;
        }
        SCOPED_FREE char *why = gpu_pool_refusal(&node->gpus, &request);
        pod_wait_for_gpus(pod, why);
        others_wait = others_wait || request.together <= node->gpus.list.count;
    }
}

/* The node of an earlier start may have had others. */
static int gpus_announce(struct node *node, struct error *error)
{
    static const char *const members[] = {"capacity", "allocatable"};
    SCOPED_JSON *object = NULL;
    if (registry_get(node->options.registry, "nodes", NULL, NODE_NAME, &object, error) < 0)
        return -1;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct json *amounts = json_member(json_member(object, "status"), members[i]);
        SCOPED_FREE char *count = memory_format("%u", node->gpus.list.count);
        json_set_string(amounts, GPU_RESOURCE, node->gpus.list.count > 0 ? count : NULL);
    }
    json_remove(json_member(object, "metadata"), "resourceVersion");
    return registry_update_status(node->options.registry, "nodes", object, NULL, error);
}

/* ---------------------------------------------------------------- services */

static void services_reload(struct node *node)
{
    struct json *services = NULL;
    if (registry_list(node->options.registry, "services", NULL, &services, NULL) < 0)
        return;
    json_free(node->services);
    node->services = services;
    node_changed(node);
}

static void service_observed(void *context, enum registry_change change, const char *plural, const struct json *object)
{
    (void)change, (void)plural, (void)object;
    services_reload(context);
}

/* ---------------------------------------------------------------- ConfigMaps and Secrets */

static void configuration_observed(void *context, enum registry_change change, const char *plural,
                                   const struct json *object)
{
    (void)plural;
    struct node *node = context;
    const char *name_space = json_string_at(object, "metadata.namespace", "");
    if (change == REGISTRY_DELETED)
        return;
    for (size_t i = 0; i < node->pod_count; i++)
        if (strcmp(json_string_at(pod_object(node->pods[i]), "metadata.namespace", ""), name_space) == 0)
            pod_refresh_volumes(node->pods[i]);
}

/* ---------------------------------------------------------------- a turn */

static void stopped_told(void *context)
{
    struct node *node = context;
    node->stopped_timer = NULL;
    node->stopped(node->stopped_context);
}

static void stop_check(struct node *node)
{
    if (!node->stopping || !node->stopped || node->stopped_timer)
        return;
    for (size_t i = 0; i < node->pod_count; i++) {
        if (pod_runs(node->pods[i]))
            return;
    }
    node->stopped_timer = event_timer_start(node->options.loop, 0, stopped_told, node);
}

/* After all changes of one commit are known: names first, so that a crew's pods know each other as they start. */
static void node_turn(void *context)
{
    struct node *node = context;
    node->turn = NULL;
    hosts_refresh(node);
    gpus_assign(node);
    for (size_t i = 0; i < node->pod_count; i++)
        pod_advance(node->pods[i]);
    stop_check(node);
}

static void node_changed(void *context)
{
    struct node *node = context;
    if (!node->turn)
        node->turn = event_timer_start(node->options.loop, 0, node_turn, node);
}

/* ---------------------------------------------------------------- start */

#define ALIVE_MS 5000

static void alive_touch(void *context)
{
    struct node *node = context;
    (void)futimens(node->alive, NULL);
    node->alive_timer = event_timer_start(node->options.loop, ALIVE_MS, alive_touch, node);
}

/* Reads until when an earlier process was alive, and tells the next one of this one. */
static int alive_begin(struct node *node, struct error *error)
{
    struct stat status;
    SCOPED_FREE char *path = memory_format("%s/" STATE_ALIVE, node->state_directory);
    bool was_alive = stat(path, &status) == 0;
    int64_t now_ms = clock_now_ms();
    int64_t then_ms = was_alive ? status.st_mtim.tv_sec * INT64_C(1000) + status.st_mtim.tv_nsec / 1000000 : now_ms;
    node->last_alive_ms = then_ms < now_ms ? then_ms : now_ms;
    node->alive = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (node->alive < 0)
        return error_set_errno(error, "make %s", path);
    alive_touch(node);
    return 0;
}

static void pod_lost(struct node *node, const struct json *pod)
{
    SCOPED_JSON *lost = json_copy(pod);
    json_set(lost, "status", pod_status_lost(json_member(pod, "status"), node->last_alive_ms));
    json_remove(json_member(lost, "metadata"), "resourceVersion");
    registry_update_status(node->options.registry, "pods", lost, NULL, NULL);
}

/* Handles the pods that an earlier process left: finished pods keep their logs, pods that were to restart do so, the others are lost, also
 * those that waited for GPUs. */
static int pods_adopt(struct node *node, struct error *error)
{
    SCOPED_JSON *pods = NULL;
    if (registry_list(node->options.registry, "pods", NULL, &pods, error) < 0)
        return -1;
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod)) {
        bool never = strcmp(json_string_at(pod, "spec.restartPolicy", ""), "Never") == 0;
        bool was_seen = json_at(pod, "status.conditions") != NULL;
        if (!is_over(pod) && is_ours(pod) && never && was_seen && !json_at(pod, "metadata.deletionTimestamp"))
            pod_lost(node, pod);
        else
            pod_add(node, pod);
    }
    return 0;
}

static bool has_pod(const struct json *pods, const char *uid)
{
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod)) {
        if (strcmp(json_string_at(pod, "metadata.uid", ""), uid) == 0)
            return true;
    }
    return false;
}

/* Directories of pods that are gone. */
static void leftovers_remove(struct node *node)
{
    SCOPED_JSON *pods = NULL;
    SCOPED_FREE char *path = memory_format("%s/" STATE_PODS, node->state_directory);
    SCOPED(closedir_scope) DIR *directory = opendir(path);
    if (!directory || registry_list(node->options.registry, "pods", NULL, &pods, NULL) < 0)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || has_pod(pods, entry->d_name))
            continue;
        pod_files_remove(&node->options, entry->d_name);
    }
}

static int isolation_choose(struct node *node, struct error *error)
{
    struct error probe = ERROR_INIT;
    node->isolation = node->options.isolation;
    if (node->isolation == NODE_REWRITE) {
        snprintf(node->reason, sizeof node->reason, "asked for");
        return 0;
    }
    if (process_probe_namespaces(&probe) == 0) {
        node->isolation = NODE_NAMESPACES;
        return 0;
    }
    if (node->isolation == NODE_NAMESPACES)
        return error_set(error, ERROR_UNSUPPORTED,
                         "this kernel does not allow namespaces (%s); use --isolation rewrite", probe.message);
    node->isolation = NODE_REWRITE;
    snprintf(node->reason, sizeof node->reason, "%s", probe.message);
    return 0;
}

static char *own_directory(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0)
        return memory_copy_string("/usr/bin");
    while (length > 1 && path[length - 1] != '/')
        length--;
    return memory_copy_bytes(path, (size_t)length - (length > 1));
}

static int directories_find(struct node *node, struct error *error)
{
    node->state_directory = realpath(node->options.state_directory, NULL);
    if (!node->state_directory)
        return error_set_errno(error, "state directory %s", node->options.state_directory);
    node->program_directory =
        node->options.program_directory ? realpath(node->options.program_directory, NULL) : own_directory();
    if (!node->program_directory)
        return error_set_errno(error, "program directory %s", node->options.program_directory);
    node->options.state_directory = node->state_directory;
    node->options.program_directory = node->program_directory;
    return 0;
}

int node_start(const struct node_options *options, struct node **ret_node, struct error *error)
{
    struct node *node = memory_allocate(1, sizeof *node);
    node->options = *options;
    node->alive = -1;
    struct http_client_options client = {.user_agent = "kube-probe/coxswain", .max_connections = PROBE_CONNECTIONS_MAX};
    struct gpu_list gpus;
    gpu_list_read_machine(&gpus);
    gpu_pool_init(&node->gpus, &gpus);
    if (directories_find(node, error) < 0 || isolation_choose(node, error) < 0 ||
        address_pool_open(&node->addresses, node->state_directory, error) < 0 ||
        http_client_new(options->loop, &client, &node->client, error) < 0 || gpus_announce(node, error) < 0 ||
        alive_begin(node, error) < 0) {
        node_free(node);
        return -1;
    }
    node->pod_changes = registry_observe(options->registry, "pods", pod_observed, node);
    node->service_changes = registry_observe(options->registry, "services", service_observed, node);
    for (size_t i = 0; i < CONFIGURATIONS; i++)
        node->configuration_changes[i] =
            registry_observe(options->registry, configurations[i], configuration_observed, node);
    leftovers_remove(node);
    services_reload(node);
    if (pods_adopt(node, error) < 0) {
        node_free(node);
        return -1;
    }
    *ret_node = node;
    return 0;
}

/* ---------------------------------------------------------------- end */

void node_stop(struct node *node, int64_t grace_ms, node_stopped *stopped, void *context)
{
    node->stopping = true;
    node->stopped = stopped;
    node->stopped_context = context;
    for (size_t i = 0; i < node->pod_count; i++) {
        int64_t own_ms = pod_grace_ms(node->pods[i]);
        pod_evict(node->pods[i], own_ms < grace_ms ? own_ms : grace_ms);
    }
    stop_check(node);
}

void node_free(struct node *node)
{
    if (node == NULL) /* asked to end before it was started */
        return;
    if (node->pod_changes)
        registry_unobserve(node->options.registry, node->pod_changes);
    if (node->service_changes)
        registry_unobserve(node->options.registry, node->service_changes);
    for (size_t i = 0; i < CONFIGURATIONS; i++)
        if (node->configuration_changes[i])
            registry_unobserve(node->options.registry, node->configuration_changes[i]);
    for (size_t i = 0; i < node->pod_count; i++)
        pod_free(node->pods[i]);
    if (node->turn)
        event_timer_cancel(node->turn);
    if (node->stopped_timer)
        event_timer_cancel(node->stopped_timer);
    if (node->alive_timer)
        event_timer_cancel(node->alive_timer);
    if (node->alive >= 0)
        close(node->alive);
    if (node->client)
        http_client_free(node->client);
    address_pool_release(&node->addresses);
    gpu_pool_release(&node->gpus);
    json_free(node->services);
    free(node->pods);
    free(node->state_directory);
    free(node->program_directory);
    free(node);
}

/* ---------------------------------------------------------------- logs */

static struct pod *pod_of(const struct node *node, const struct json *object)
{
    size_t index = pod_index(node, object);
    return index < node->pod_count ? node->pods[index] : NULL;
}

int node_stored_log(void *context, const struct json *pod, const struct pod_log_query *query,
                    struct http_exchange *exchange, struct error *error)
{
    const struct node_options *options = context;
    SCOPED_FREE char *directory = pod_directory_path(options, json_string_at(pod, "metadata.uid", "none"));
    SCOPED_FREE char *path = container_log_path(directory, query->container);
    SCOPED_FREE char *previous = memory_format("%s.previous", path);
    SCOPED_BUFFER text = BUFFER_INIT(POD_LOG_MAX);
    const char *wanted = query->previous ? previous : path;
    if (access(wanted, R_OK) < 0)
        return error_set(error, ERROR_INVALID, "container \"%s\" in pod \"%s\" %s", query->container,
                         json_string_at(pod, "metadata.name", ""),
                         query->previous ? "has no previous run" : "is waiting to start: ContainerCreating");
    if (container_log_read(wanted, query, &text, error) < 0)
        return -1;
    http_exchange_respond(exchange, 200, "text/plain", buffer_text(&text), text.length);
    return 0;
}

int node_pod_log(void *context, const struct json *pod, const struct pod_log_query *query,
                 struct http_exchange *exchange, struct error *error)
{
    struct node *node = context;
    const struct pod *live = pod_of(node, pod);
    struct container_log *log = live ? pod_container_log(live, query->container) : NULL;
    if (query->follow && log && !query->previous)
        return container_log_follow(log, query, exchange, error);
    return node_stored_log(&node->options, pod, query, exchange, error);
}
