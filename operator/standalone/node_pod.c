/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_pod.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"
#include "operator/standalone/node_container.h"
#include "operator/standalone/node_gpus.h"
#include "operator/standalone/node_hosts.h"
#include "operator/standalone/node_probe.h"
#include "operator/standalone/registry.h"

#define COMPONENT "coxswain-standalone"
#define GPUS_UNDECIDED "GPUs are being looked for" /* until the node's next turn */

struct pod_container {
    struct pod *pod;
    unsigned index;
    const struct json *spec; /* in pod->object's first version, which stays */
    struct process *process;
    struct container_log *log;
    struct probe *startup, *readiness, *liveness;
    char *start_error; /* NULL: none */
};

struct pod {
    struct pod_host host;
    struct json *spec;   /* the object as it was first seen: what runs is fixed then */
    struct json *object; /* as the registry has it, with our status */
    struct pod_state state;
    struct pod_container *containers;
    char *directory;
    char *gpus;          /* the value of CUDA_VISIBLE_DEVICES; NULL: none yet */
    struct buffer hosts; /* what the file holds */
    struct event_timer *due, *grace;
    int64_t kill_at_ms; /* while `grace` runs */
    bool announced;     /* the Started event was written */
    bool removed;       /* gone from the registry, or asked to go */
};

static void publish(struct pod *pod);

char *pod_directory_path(const struct node_options *options, const char *uid)
{
    return memory_format("%s/" STATE_PODS "/%s", options->state_directory, uid);
}

static void temporary_remove(const char *uid)
{
    SCOPED_FREE char *path = pod_temporary_path(uid);
    directory_remove(path);
}

void pod_files_remove(const struct node_options *options, const char *uid)
{
    SCOPED_FREE char *path = pod_directory_path(options, uid);
    directory_remove(path);
    temporary_remove(uid);
}

bool pod_runs(const struct pod *pod)
{
    return pod_state_runs(&pod->state);
}

bool pod_is_over(const struct pod *pod)
{
    return pod_state_over(&pod->state);
}

const struct json *pod_object(const struct pod *pod)
{
    return pod->object;
}

const char *pod_uid(const struct pod *pod)
{
    return json_string_at(pod->spec, "metadata.uid", "");
}

const char *pod_address(const struct pod *pod)
{
    return pod->state.address;
}

int64_t pod_grace_ms(const struct pod *pod)
{
    int64_t seconds = json_integer_at(pod->spec, "spec.terminationGracePeriodSeconds", GRACE_SECONDS_DEFAULT);
    return 1000 * json_integer_at(pod->object, "metadata.deletionGracePeriodSeconds", seconds);
}

static struct pod_container *container_named(const struct pod *pod, const char *name)
{
    for (unsigned i = 0; i < pod->state.count; i++) {
        if (strcmp(pod->state.containers[i].name, name) == 0)
            return &pod->containers[i];
    }
    return NULL;
}

struct container_log *pod_container_log(const struct pod *pod, const char *container)
{
    const struct pod_container *found = container_named(pod, container);
    return found ? found->log : NULL;
}

static struct container_state *state_of(const struct pod_container *container)
{
    return &container->pod->state.containers[container->index];
}

/* ---------------------------------------------------------------- words */

static void event(const struct pod *pod, const char *type, const char *reason, const char *message)
{
    registry_event(pod->host.options->registry, pod->spec, type, reason, COMPONENT, message, NULL);
}

/* Once a pod: what runs instead of an image. */
static void announce(struct pod *pod, const struct pod_container *container)
{
    if (pod->announced)
        return;
    pod->announced = true;
    SCOPED_FREE char *message =
        memory_format("runs \"%s\" as a process; image \"%s\" is not run by the embedded control plane",
                      json_string(json_first(json_member(container->spec, "command")), ""), state_of(container)->image);
    event(pod, "Normal", "Started", message);
}

/* ---------------------------------------------------------------- probes */

static void readiness_told(void *context, bool passes)
{
    struct pod_container *container = context;
    state_of(container)->passes = passes;
    publish(container->pod);
}

static void liveness_told(void *context, bool passes)
{
    struct pod_container *container = context;
    if (passes || !container->process)
        return;
    event(container->pod, "Warning", "Unhealthy", "the liveness probe failed; the container is killed");
    process_kill(container->process);
}

static void probe_one(struct pod_container *container, const char *kind, bool eager, probe_verdict *verdict,
                      struct probe **probe)
{
    const struct json *spec = json_member(container->spec, kind);
    struct pod *pod = container->pod;
    struct probe_target target = {pod->host.options->loop, pod->host.client, container->spec, pod->state.address};
    struct error error = ERROR_INIT;
    if (!spec || probe_start(&target, spec, eager, verdict, container, probe, &error) == 0)
        return;
    event(pod, "Warning", "ProbeNotRun", error.message);
    verdict(container, true);
}

static void probe_life(struct pod_container *container)
{
    probe_one(container, "readinessProbe", true, readiness_told, &container->readiness);
    probe_one(container, "livenessProbe", false, liveness_told, &container->liveness);
}

static void startup_told(void *context, bool passes)
{
    struct pod_container *container = context;
    if (!passes) {
        liveness_told(context, false);
    } else if (!state_of(container)->started) {
        state_of(container)->started = true;
        probe_life(container);
        publish(container->pod);
    }
}

static void probes_start(struct pod_container *container)
{
    if (json_member(container->spec, "startupProbe"))
        probe_one(container, "startupProbe", true, startup_told, &container->startup);
    else
        probe_life(container);
}

static void probes_end(struct pod_container *container)
{
    struct probe **probes[] = {&container->startup, &container->readiness, &container->liveness};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (*probes[i])
            probe_free(*probes[i]);
        *probes[i] = NULL;
    }
}

/* ---------------------------------------------------------------- a container's life */

static void container_started(void *context, pid_t pid)
{
    struct pod_container *container = context;
    bool has_startup_probe = json_member(container->spec, "startupProbe") != NULL;
    container_state_started(state_of(container), pid, clock_now_ms(), has_startup_probe);
    announce(container->pod, container);
    probes_start(container);
    publish(container->pod);
}

static void container_failed(void *context, const char *message)
{
    struct pod_container *container = context;
    container->start_error = memory_copy_string(message);
}

static void container_wrote(void *context, enum process_stream stream, const char *bytes, size_t length)
{
    container_log_append(((struct pod_container *)context)->log, stream, bytes, length);
}

static void settle_end(struct pod_container *container, int exit_code)
{
    struct pod *pod = container->pod;
    SCOPED_FREE char *message = container_termination_message(pod->directory, container->spec, exit_code);
    if (container->start_error)
        event(pod, "Warning", "Failed", container->start_error);
    container_state_ended(&pod->state, container->index, exit_code, container->start_error, message, clock_now_ms());
    free(container->start_error);
    container->start_error = NULL;
}

static void container_ended(void *context, int exit_code)
{
    struct pod_container *container = context;
    probes_end(container);
    container_log_free(container->log);
    container->log = NULL;
    process_free(container->process);
    container->process = NULL;
    settle_end(container, exit_code);
    pod_advance(container->pod);
    container->pod->host.changed(container->pod->host.context);
}

static int log_start(struct pod_container *container, struct error *error)
{
    struct pod *pod = container->pod;
    SCOPED_FREE char *path = container_log_path(pod->directory, state_of(container)->name);
    if (state_of(container)->restarts > 0) {
        SCOPED_FREE char *previous = memory_format("%s.previous", path);
        (void)rename(path, previous);
    }
    return container_log_open(path, &container->log, error);
}

static int launch_start(struct pod_container *container, const struct container_launch *launch, struct error *error)
{
    struct process_spec spec = {
        .executable = launch->executable,
        .arguments = launch->arguments,
        .environment = launch->environment.entries,
        .directory = launch->directory,
        .hostname = launch->hostname,
        .mounts = launch->namespaces ? &launch->plan : NULL,
    };
    struct process_events events = {container_started, container_failed, container_wrote, container_ended, container};
    return process_start(container->pod->host.options->loop, &spec, &events, &container->process, error);
}

static struct json *look_up(void *context, const char *plural, const char *name)
{
    const struct pod *pod = context;
    struct json *object = NULL;
    registry_get(pod->host.options->registry, plural, json_string_at(pod->spec, "metadata.namespace", ""), name,
                 &object, NULL);
    return object;
}

static struct environment_source configuration_of(struct pod *pod)
{
    return (struct environment_source){.pod = pod->object, .gpus = pod->gpus, .lookup = look_up, .context = pod};
}

void pod_refresh_volumes(struct pod *pod)
{
    struct environment_source configuration = configuration_of(pod);
    struct volume_source source = {pod->host.options, &configuration, pod->directory};
    if (pod_runs(pod))
        volumes_refresh(&source);
}

static int container_start(struct pod_container *container, struct error *error)
{
    struct pod *pod = container->pod;
    struct environment_source configuration = configuration_of(pod);
    struct volume_source source = {pod->host.options, &configuration, pod->directory};
    SCOPED(container_launch_release) struct container_launch launch = {.executable = NULL};
    if (container_launch_prepare(&source, container->spec, pod->host.namespaces, &launch, error) < 0 ||
        log_start(container, error) < 0)
        return -1;
    return launch_start(container, &launch, error);
}

/* If something is missing that may still come, waits for it; if something is wrong, ends the container. */
static void container_try(struct pod_container *container)
{
    struct error error = ERROR_INIT;
    struct pod *pod = container->pod;
    if (container_start(container, &error) == 0) {
        container_state_starting(state_of(container));
        return;
    }
    if (container->log)
        container_log_free(container->log);
    container->log = NULL;
    if (error.kind == ERROR_NOT_FOUND) {
        if (!state_of(container)->waiting_message)
            event(pod, "Warning", "Failed", error.message);
        container_state_unconfigured(state_of(container), error.message, clock_now_ms());
    } else {
        container->start_error = memory_copy_string(error.message);
        settle_end(container, EXIT_CODE_START_ERROR);
    }
}

/* ---------------------------------------------------------------- status */

static void set_status(struct pod *pod, struct json *status)
{
    json_set(pod->object, "status", status);
    SCOPED_JSON *change = json_copy(pod->object);
    json_remove(json_member(change, "metadata"), "resourceVersion");
    registry_update_status(pod->host.options->registry, "pods", change, NULL, NULL);
}

static void publish(struct pod *pod)
{
    if (pod->removed)
        return;
    const struct json *before = json_member(pod->object, "status");
    struct json *status = pod_state_status(&pod->state, before, clock_now_ms());
    if (json_equal(status, before))
        json_free(status);
    else
        set_status(pod, status);
}

/* A deleted pod leaves the registry when its last process is gone. */
static void leave(struct pod *pod)
{
    if (pod->removed || !json_at(pod->object, "metadata.deletionTimestamp") || pod_runs(pod))
        return;
    pod->removed = true;
    registry_delete(pod->host.options->registry, "pods", json_string_at(pod->spec, "metadata.namespace", ""),
                    json_string_at(pod->spec, "metadata.name", ""), pod_uid(pod), 0, NULL);
}

/* ---------------------------------------------------------------- the pod's life */

static void due(void *context)
{
    struct pod *pod = context;
    pod->due = NULL;
    pod_advance(pod);
}

static void grace_over(void *context)
{
    struct pod *pod = context;
    pod->grace = NULL;
    for (unsigned i = 0; i < pod->state.count; i++) {
        if (pod->containers[i].process)
            process_kill(pod->containers[i].process);
    }
}

static void grace_start(struct pod *pod, int64_t grace_ms)
{
    if (pod->grace)
        event_timer_cancel(pod->grace);
    pod->kill_at_ms = clock_now_ms() + grace_ms;
    pod->grace = event_timer_start(pod->host.options->loop, grace_ms, grace_over, pod);
}

static void end_sidecar(struct pod *pod)
{
    int index = pod_state_next_sidecar(&pod->state);
    if (index < 0)
        return;
    if (pod->containers[index].process)
        process_signal(pod->containers[index].process, SIGTERM);
    if (!pod->grace && !pod->state.stopping)
        grace_start(pod, pod_grace_ms(pod));
}

void pod_wait_for_gpus(struct pod *pod, const char *why)
{
    if (pod->state.unscheduled && strcmp(pod->state.unscheduled, why) == 0)
        return;
    if (!pod->state.unscheduled || strcmp(pod->state.unscheduled, GPUS_UNDECIDED) == 0)
        event(pod, "Warning", "FailedScheduling", why);
    pod_state_hold(&pod->state, why, clock_now_ms());
}

void pod_give_gpus(struct pod *pod, const char *visible)
{
    if (pod->gpus)
        return;
    pod->gpus = memory_copy_string(visible);
    pod_state_hold(&pod->state, NULL, clock_now_ms());
}

void pod_advance(struct pod *pod)
{
    int64_t next_ms;
    for (int index; (index = pod_state_due(&pod->state, clock_now_ms(), &next_ms)) >= 0;)
        container_try(&pod->containers[index]);
    if (pod->due)
        event_timer_cancel(pod->due);
    pod->due = NULL;
    if (next_ms > 0)
        pod->due = event_timer_start(pod->host.options->loop, next_ms - clock_now_ms(), due, pod);
    end_sidecar(pod);
    if (pod_state_over(&pod->state))
        temporary_remove(pod_uid(pod));
    publish(pod);
    leave(pod);
}

/* Sidecars get the signal when the others have ended. */
static void signal_others(struct pod *pod, int signal_number)
{
    for (unsigned i = 0; i < pod->state.count; i++) {
        if (pod->containers[i].process && !pod->state.containers[i].sidecar)
            process_signal(pod->containers[i].process, signal_number);
    }
}

/* SIGTERM, and SIGKILL after `grace_ms`; nothing starts any more. Again: shortens the time. */
static void stop(struct pod *pod, int64_t grace_ms)
{
    int64_t kill_at_ms = clock_now_ms() + grace_ms;
    bool first = !pod->state.stopping;
    pod->state.stopping = true;
    if (first && grace_ms > 0)
        signal_others(pod, SIGTERM);
    if (pod_runs(pod) && (!pod->grace || kill_at_ms < pod->kill_at_ms))
        grace_start(pod, grace_ms);
    pod_advance(pod);
}

void pod_evict(struct pod *pod, int64_t grace_ms)
{
    if (!pod_state_over(&pod->state)) {
        pod->state.ended_reason = "Terminated";
        pod->state.ended_message = "the control plane ended, and this pod with it";
        pod->state.disrupted = true;
    }
    stop(pod, grace_ms);
}

/* In place: the container has this very file mounted, or reads it by its path. */
static int write_in_place(const char *path, const struct buffer *text, struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || pwrite(file, buffer_text(text), text->length, 0) != (ssize_t)text->length ||
        ftruncate(file, (off_t)text->length) < 0)
        return error_set_errno(error, "write %s", path);
    return 0;
}

void pod_write_hosts(struct pod *pod, const struct buffer *published)
{
    SCOPED_BUFFER text = BUFFER_INIT(HOSTS_FILE_MAX);
    hosts_write(&text, pod->object, published);
    if (strcmp(buffer_text(&text), buffer_text(&pod->hosts)) == 0)
        return;
    SCOPED_FREE char *path = pod_hosts_path(pod->directory);
    if (write_in_place(path, &text, NULL) < 0)
        return;
    buffer_clear(&pod->hosts);
    buffer_append(&pod->hosts, buffer_text(&text), text.length, NULL);
}

void pod_update(struct pod *pod, const struct json *object)
{
    json_free(pod->object);
    pod->object = json_copy(object);
    const char *published = json_string_at(object, "status.podIP", "");
    if (strcmp(published, pod->state.address) != 0)
        publish(pod);
    if (json_at(object, "metadata.deletionTimestamp"))
        stop(pod, pod_grace_ms(pod));
}

static int directories_make(const struct pod *pod, struct error *error)
{
    static const char *const below[] = {"", "/logs", "/containers", "/volumes"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        SCOPED_FREE char *path = memory_format("%s%s", pod->directory, below[i]);
        if (directory_make(path, error) < 0)
            return -1;
    }
    return 0;
}

static void containers_make(struct pod *pod)
{
    static const char *const lists[] = {"spec.initContainers", "spec.containers"};
    unsigned index = 0;
    pod->containers = memory_allocate(pod->state.count + 1, sizeof *pod->containers);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct json *item = json_first(json_at(pod->spec, lists[i])); item; item = json_next(item)) {
            pod->containers[index] = (struct pod_container){.pod = pod, .index = index, .spec = item};
            index++;
        }
    }
}

int pod_new(const struct pod_host *host, const struct json *object, const char *address, struct pod **ret_pod,
            struct error *error)
{
    struct pod *pod = memory_allocate(1, sizeof *pod);
    pod->host = *host;
    pod->spec = json_copy(object);
    pod->object = json_copy(object);
    pod->directory = pod_directory_path(host->options, pod_uid(pod));
    buffer_init(&pod->hosts, HOSTS_FILE_MAX);
    pod_state_init(&pod->state, pod->spec, address, clock_now_ms());
    containers_make(pod);
    if (gpu_request_of(pod->spec).count > 0)
        pod_state_hold(&pod->state, GPUS_UNDECIDED, clock_now_ms());
    if (directories_make(pod, error) < 0) {
        pod_free(pod);
        return -1;
    }
    publish(pod);
    *ret_pod = pod;
    return 0;
}

void pod_free(struct pod *pod)
{
    for (unsigned i = 0; i < pod->state.count; i++) {
        struct pod_container *container = &pod->containers[i];
        probes_end(container);
        if (container->process)
            process_free(container->process);
        if (container->log)
            container_log_free(container->log);
        free(container->start_error);
    }
    if (pod->due)
        event_timer_cancel(pod->due);
    if (pod->grace)
        event_timer_cancel(pod->grace);
    pod_state_release(&pod->state);
    buffer_release(&pod->hosts);
    free(pod->containers);
    free(pod->directory);
    free(pod->gpus);
    json_free(pod->object);
    json_free(pod->spec);
    free(pod);
}
