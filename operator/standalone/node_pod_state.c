/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_pod_state.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory.h"

#define BACKOFF_FIRST_MS 10000
#define BACKOFF_CEILING_MS 300000

static unsigned containers_add(struct pod_state *state, const struct json *list, bool init)
{
    unsigned added = 0;
    for (const struct json *item = json_first(list); item; item = json_next(item), added++) {
        state->containers = memory_resize(state->containers, state->count + 1, sizeof *state->containers);
        state->containers[state->count++] = (struct container_state){
            .name = json_string_at(item, "name", ""),
            .image = json_string_at(item, "image", ""),
            .init = init,
            .sidecar = init && strcmp(json_string_at(item, "restartPolicy", ""), "Always") == 0,
            .probed = json_member(item, "readinessProbe") != NULL,
            .waiting_reason = init || state->init_count == 0 ? "ContainerCreating" : "PodInitializing",
        };
    }
    return added;
}

void pod_state_init(struct pod_state *state, const struct json *pod, const char *address, int64_t now_ms)
{
    const char *policy = json_string_at(pod, "spec.restartPolicy", "Always");
    *state = (struct pod_state){
        .policy = strcmp(policy, "Never") == 0       ? RESTART_NEVER
                  : strcmp(policy, "OnFailure") == 0 ? RESTART_ON_FAILURE
                                                     : RESTART_ALWAYS,
        .start_ms = now_ms,
    };
    snprintf(state->address, sizeof state->address, "%s", address);
    state->init_count = containers_add(state, json_at(pod, "spec.initContainers"), true);
    containers_add(state, json_at(pod, "spec.containers"), false);
}

void pod_state_release(struct pod_state *state)
{
    for (unsigned i = 0; i < state->count; i++) {
        free(state->containers[i].waiting_message);
        free(state->containers[i].end.message);
        free(state->containers[i].last.message);
    }
    free(state->containers);
    free(state->unscheduled);
    *state = (struct pod_state){.count = 0};
}

void pod_state_hold(struct pod_state *state, const char *why, int64_t now_ms)
{
    if (state->unscheduled && !why)
        state->start_ms = now_ms;
    free(state->unscheduled);
    state->unscheduled = why ? memory_copy_string(why) : NULL;
}

/* ---------------------------------------------------------------- what comes next */

static bool succeeded(const struct container_state *container)
{
    return container->phase == CONTAINER_TERMINATED && container->end.exit_code == 0;
}

static bool failed(const struct container_state *container)
{
    return container->phase == CONTAINER_TERMINATED && container->end.exit_code != 0;
}

/* Whether the next init container may start. A sidecar holds it up only until it has started once. */
static bool is_through(const struct container_state *container)
{
    return container->sidecar ? container->has_last || container->started : succeeded(container);
}

static bool initialized(const struct pod_state *state)
{
    for (unsigned i = 0; i < state->init_count; i++) {
        if (!is_through(&state->containers[i]))
            return false;
    }
    return true;
}

/* An init container has failed for good: the others will never start. */
static bool init_failed(const struct pod_state *state)
{
    for (unsigned i = 0; i < state->init_count; i++) {
        if (failed(&state->containers[i]) && !state->containers[i].sidecar)
            return true;
    }
    return false;
}

static bool has_process(const struct container_state *container)
{
    return container->phase == CONTAINER_RUNNING || container->phase == CONTAINER_STARTING;
}

/* Whether no container but sidecars runs or will start again. */
static bool others_over(const struct pod_state *state)
{
    bool ends = state->stopping || state->ended_reason || init_failed(state);
    for (unsigned i = 0; i < state->count; i++) {
        const struct container_state *container = &state->containers[i];
        if (!container->sidecar && (has_process(container) || (!ends && container->phase != CONTAINER_TERMINATED)))
            return false;
    }
    return true;
}

int pod_state_next_sidecar(struct pod_state *state)
{
    if (!others_over(state))
        return -1;
    for (unsigned i = state->init_count; i-- > 0;) {
        struct container_state *container = &state->containers[i];
        if (!container->sidecar || !has_process(container))
            continue;
        if (container->ending)
            return -1; /* the next one gets its signal when this one has ended */
        container->ending = true;
        return (int)i;
    }
    return -1;
}

static bool is_due(const struct container_state *container, int64_t now_ms, int64_t *next_ms)
{
    if (container->phase != CONTAINER_WAITING)
        return false;
    if (container->start_at_ms <= now_ms)
        return true;
    if (*next_ms == 0 || container->start_at_ms < *next_ms)
        *next_ms = container->start_at_ms;
    return false;
}

int pod_state_due(const struct pod_state *state, int64_t now_ms, int64_t *ret_next_ms)
{
    *ret_next_ms = 0;
    if (state->unscheduled || state->stopping || state->ended_reason || others_over(state))
        return -1;
    for (unsigned i = 0; i < state->init_count; i++) {
        if (is_due(&state->containers[i], now_ms, ret_next_ms))
            return (int)i;
        if (!is_through(&state->containers[i]))
            return -1;
    }
    for (unsigned i = state->init_count; i < state->count; i++) {
        if (is_due(&state->containers[i], now_ms, ret_next_ms))
            return (int)i;
    }
    return -1;
}

bool pod_state_runs(const struct pod_state *state)
{
    for (unsigned i = 0; i < state->count; i++) {
        if (has_process(&state->containers[i]))
            return true;
    }
    return false;
}

bool pod_state_over(const struct pod_state *state)
{
    return !pod_state_runs(state) && others_over(state);
}

/* ---------------------------------------------------------------- what happens to a container */

void container_state_starting(struct container_state *container)
{
    container->phase = CONTAINER_STARTING;
}

void container_state_started(struct container_state *container, pid_t pid, int64_t now_ms, bool has_startup_probe)
{
    container->phase = CONTAINER_RUNNING;
    container->pid = pid;
    container->started_ms = now_ms;
    container->started = !has_startup_probe;
    container->passes = false;
    free(container->waiting_message);
    container->waiting_message = NULL;
}

static void wait_because(struct container_state *container, const char *reason, const char *message, int64_t until_ms)
{
    container->phase = CONTAINER_WAITING;
    container->waiting_reason = reason;
    free(container->waiting_message);
    container->waiting_message = memory_copy_string(message);
    container->start_at_ms = until_ms;
}

void container_state_unconfigured(struct container_state *container, const char *message, int64_t now_ms)
{
    wait_because(container, "CreateContainerConfigError", message, now_ms + CONFIG_RETRY_MS);
}

static bool restarts(const struct pod_state *state, const struct container_state *container)
{
    if (container->sidecar)
        return !others_over(state);
    if (state->stopping || state->ended_reason || state->policy == RESTART_NEVER)
        return false;
    /* An init container that is done stays done. */
    return container->end.exit_code != 0 || (state->policy == RESTART_ALWAYS && !container->init);
}

/* The first restart follows at once, then 10 s, 20 s, … up to five minutes. */
static int64_t backoff_ms(int64_t restart_count)
{
    if (restart_count == 0)
        return 0;
    int64_t delay = BACKOFF_FIRST_MS;
    for (int64_t i = 1; i < restart_count && delay < BACKOFF_CEILING_MS; i++)
        delay *= 2;
    return delay < BACKOFF_CEILING_MS ? delay : BACKOFF_CEILING_MS;
}

static void restart(struct container_state *container, int64_t now_ms)
{
    free(container->last.message);
    container->last = container->end;
    container->has_last = true;
    container->end = (struct container_end){.exit_code = 0};
    wait_because(container, "CrashLoopBackOff", "the container ended and is started again after a while",
                 now_ms + backoff_ms(container->restarts));
    container->restarts++;
}

void container_state_ended(struct pod_state *state, unsigned index, int exit_code, const char *start_error,
                           const char *message, int64_t now_ms)
{
    struct container_state *container = &state->containers[index];
    free(container->end.message);
    container->end = (struct container_end){
        .exit_code = start_error ? EXIT_CODE_START_ERROR : exit_code,
        .reason = start_error      ? "StartError"
                  : exit_code == 0 ? "Completed"
                                   : "Error",
        .message = memory_copy_string(start_error ? start_error : message),
        .started_ms = start_error ? now_ms : container->started_ms,
        .finished_ms = now_ms,
        .pid = container->pid,
    };
    container->phase = CONTAINER_TERMINATED;
    container->pid = 0;
    container->started = container->passes = false;
    if (restarts(state, container))
        restart(container, now_ms);
}

/* ---------------------------------------------------------------- status */

static bool all_succeeded(const struct pod_state *state)
{
    for (unsigned i = 0; i < state->count; i++) {
        if (!succeeded(&state->containers[i]) && !state->containers[i].sidecar)
            return false;
    }
    return true;
}

static bool any_ran(const struct pod_state *state)
{
    for (unsigned i = state->init_count; i < state->count; i++) {
        const struct container_state *container = &state->containers[i];
        if (container->phase == CONTAINER_RUNNING || container->phase == CONTAINER_TERMINATED || container->has_last)
            return true;
    }
    return false;
}

const char *pod_state_phase(const struct pod_state *state)
{
    if (pod_state_over(state))
        return all_succeeded(state) && !state->ended_reason ? "Succeeded" : "Failed";
    return any_ran(state) ? "Running" : "Pending";
}

static bool is_ready(const struct container_state *container)
{
    return container->phase == CONTAINER_RUNNING && container->started && (container->passes || !container->probed);
}

static void set_time(struct json *object, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    clock_format_seconds(ms, text);
    json_set_string(object, key, text);
}

static void set_process_id(struct json *object, pid_t pid)
{
    SCOPED_FREE char *text = memory_format("process://%d", (int)pid);
    json_set_string(object, "containerID", text);
}

static void write_end(struct json *state, const struct container_end *end)
{
    struct json *terminated = json_set_object(state, "terminated");
    json_set_integer(terminated, "exitCode", end->exit_code);
    json_set_string(terminated, "reason", end->reason);
    if (end->message && *end->message)
        json_set_string(terminated, "message", end->message);
    set_time(terminated, "startedAt", end->started_ms);
    set_time(terminated, "finishedAt", end->finished_ms);
    if (end->pid > 0)
        set_process_id(terminated, end->pid);
}

static void write_state(struct json *state, const struct container_state *container)
{
    if (container->phase == CONTAINER_RUNNING) {
        set_time(json_set_object(state, "running"), "startedAt", container->started_ms);
    } else if (container->phase == CONTAINER_TERMINATED) {
        write_end(state, &container->end);
    } else {
        struct json *waiting = json_set_object(state, "waiting");
        json_set_string(waiting, "reason", container->waiting_reason);
        if (container->waiting_message)
            json_set_string(waiting, "message", container->waiting_message);
    }
}

static struct json *container_status(const struct container_state *container)
{
    struct json *status = json_new_object();
    bool running = container->phase == CONTAINER_RUNNING;
    json_set_string(status, "name", container->name);
    write_state(json_set_object(status, "state"), container);
    struct json *last = json_set_object(status, "lastState");
    if (container->has_last)
        write_end(last, &container->last);
    json_set_boolean(status, "ready",
                     container->init && !container->sidecar ? succeeded(container) : is_ready(container));
    json_set_boolean(status, "started", running && container->started);
    json_set_integer(status, "restartCount", container->restarts);
    json_set_string(status, "image", container->image);
    json_set_string(status, "imageID", "");
    if (running && container->pid > 0)
        set_process_id(status, container->pid);
    else if (container->phase == CONTAINER_TERMINATED && container->end.pid > 0)
        set_process_id(status, container->end.pid);
    return status;
}

static const struct json *condition_of(const struct json *status, const char *type)
{
    for (const struct json *item = json_first(json_member(status, "conditions")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "type", ""), type) == 0)
            return item;
    }
    return NULL;
}

/* `reason` belongs to a condition that is false, or to DisruptionTarget. */
static void add_condition(struct json *conditions, const struct json *previous, const char *type, bool holds,
                          const char *reason, const char *message, int64_t now_ms)
{
    const struct json *before = condition_of(previous, type);
    const char *value = holds ? "True" : "False";
    struct json *condition = json_append(conditions, json_new_object());
    json_set_string(condition, "type", type);
    json_set_string(condition, "status", value);
    json_set_string(condition, "reason", reason);
    json_set_string(condition, "message", message);
    json_set(condition, "lastProbeTime", json_new_null());
    if (before && strcmp(json_string_at(before, "status", ""), value) == 0)
        json_set_string(condition, "lastTransitionTime", json_string_at(before, "lastTransitionTime", NULL));
    else
        set_time(condition, "lastTransitionTime", now_ms);
}

static void copy_foreign_conditions(struct json *conditions, const struct json *previous)
{
    SCOPED_JSON *own = json_new_object();
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        json_set_boolean(own, json_string_at(item, "type", ""), true);
    for (const struct json *item = json_first(json_member(previous, "conditions")); item; item = json_next(item)) {
        if (!json_member(own, json_string_at(item, "type", "")))
            json_append(conditions, json_copy(item));
    }
}

static void write_conditions(struct json *status, const struct pod_state *state, const struct json *previous,
                             int64_t now_ms)
{
    struct json *conditions = json_set_array(status, "conditions");
    bool ready = state->count > state->init_count, init = initialized(state);
    for (unsigned i = 0; i < state->count; i++)
        if (i >= state->init_count || state->containers[i].sidecar)
            ready &= is_ready(&state->containers[i]);
    const char *phase = pod_state_phase(state);
    const char *unready = strcmp(phase, "Succeeded") == 0 ? "PodCompleted"
                          : strcmp(phase, "Failed") == 0  ? "PodFailed"
                                                          : "ContainersNotReady";
    add_condition(conditions, previous, "PodScheduled", !state->unscheduled,
                  state->unscheduled ? "Unschedulable" : NULL, state->unscheduled, now_ms);
    add_condition(conditions, previous, "Initialized", init, init ? NULL : "ContainersNotInitialized", NULL, now_ms);
    add_condition(conditions, previous, "ContainersReady", ready, ready ? NULL : unready, NULL, now_ms);
    add_condition(conditions, previous, "Ready", ready, ready ? NULL : unready, NULL, now_ms);
    if (state->disrupted)
        add_condition(conditions, previous, "DisruptionTarget", true, "TerminationByKubelet", state->ended_message,
                      now_ms);
    copy_foreign_conditions(conditions, previous);
}

struct json *pod_state_status(const struct pod_state *state, const struct json *previous, int64_t now_ms)
{
    struct json *status = json_new_object();
    json_set_string(status, "phase", pod_state_phase(state));
    json_set_string(status, "reason", state->ended_reason);
    json_set_string(status, "message", state->ended_message);
    write_conditions(status, state, previous, now_ms);
    json_set_string(status, "hostIP", "127.0.0.1");
    if (*state->address) {
        json_set_string(status, "podIP", state->address);
        struct json *addresses = json_set_array(status, "podIPs");
        json_set_string(json_append(addresses, json_new_object()), "ip", state->address);
    }
    json_set_string(status, "qosClass", json_string_at(previous, "qosClass", NULL));
    if (state->unscheduled)
        return status;
    set_time(status, "startTime", state->start_ms);
    for (unsigned i = 0; i < state->count; i++) {
        const struct container_state *container = &state->containers[i];
        struct json *list = json_set_array(status, container->init ? "initContainerStatuses" : "containerStatuses");
        json_append(list, container_status(container));
    }
    return status;
}

static void lose_containers(struct json *statuses, int64_t end_ms)
{
    for (struct json *item = json_first(statuses); item; item = json_next(item)) {
        struct json *state = json_member(item, "state");
        if (json_member(state, "terminated"))
            continue;
        int64_t started_ms = end_ms;
        clock_parse(json_string_at(state, "running.startedAt", ""), &started_ms);
        int64_t finished_ms = started_ms > end_ms ? started_ms : end_ms;
        json_set(item, "state", json_new_object());
        struct container_end end = {
            .exit_code = 137, .reason = "ContainerStatusUnknown", .started_ms = started_ms, .finished_ms = finished_ms};
        write_end(json_member(item, "state"), &end);
        json_set_boolean(item, "ready", false);
        json_set_boolean(item, "started", false);
    }
}

struct json *pod_status_lost(const struct json *status, int64_t end_ms)
{
    static const char message[] = "the control plane ended, and this pod's processes with it";
    struct json *lost = json_copy(status);
    json_set_string(lost, "phase", "Failed");
    json_set_string(lost, "reason", "Terminated");
    json_set_string(lost, "message", message);
    lose_containers(json_member(lost, "initContainerStatuses"), end_ms);
    lose_containers(json_member(lost, "containerStatuses"), end_ms);
    json_remove(lost, "conditions");
    struct json *conditions = json_set_array(lost, "conditions");
    add_condition(conditions, status, "Ready", false, "PodFailed", NULL, end_ms);
    add_condition(conditions, status, "ContainersReady", false, "PodFailed", NULL, end_ms);
    add_condition(conditions, status, "DisruptionTarget", true, "TerminationByKubelet", message, end_ms);
    copy_foreign_conditions(conditions, status);
    return lost;
}
