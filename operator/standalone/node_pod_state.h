/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine of a pod on the embedded control plane's node: decides which container starts next, what a container's end means under
 * the restart policy, and what the pod's status is. The state machine has no clock and no processes: times and events come in as
 * parameters.
 *
 * Init containers run one after another, then all others in parallel. An init container with restartPolicy Always is a sidecar: it keeps
 * running, is started again when it ends, and counts neither for the pod's end nor for its phase. Sidecars are ended, the last one first,
 * when no other container of the pod runs any more. As with a kubelet, a command that cannot be run terminates with
 * StartError and exit code 128; a container whose ConfigMap or Secret is missing waits with CreateContainerConfigError and is tried again.
 */
#ifndef COXSWAIN_STANDALONE_NODE_POD_STATE_H
#define COXSWAIN_STANDALONE_NODE_POD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/json.h"

#define EXIT_CODE_START_ERROR 128
#define CONFIG_RETRY_MS 2000

enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };
enum container_phase { CONTAINER_WAITING, CONTAINER_STARTING, CONTAINER_RUNNING, CONTAINER_TERMINATED };

struct container_end {
    int exit_code;
    const char *reason; /* static */
    char *message;      /* owned; NULL: none */
    int64_t started_ms, finished_ms;
    pid_t pid;
};

struct container_state {
    const char *name, *image; /* borrowed from the pod */
    bool init, probed;        /* probed: has a readiness probe */
    bool sidecar, ending;     /* ending: pod_state_next_sidecar has returned it */
    enum container_phase phase;
    const char *waiting_reason; /* static */
    char *waiting_message;      /* owned; NULL: none */
    int64_t start_at_ms;        /* while waiting: earliest start */
    int64_t started_ms;
    pid_t pid;
    bool started; /* its startup probe has passed, or it has none */
    bool passes;  /* its readiness probe passes */
    int64_t restarts;
    struct container_end end; /* while terminated */
    struct container_end last;
    bool has_last;
};

struct pod_state {
    struct container_state *containers; /* init containers first */
    unsigned count, init_count;
    enum restart_policy policy;
    int64_t start_ms;
    char address[16];
    char *unscheduled;         /* owned; why no container starts yet, as a scheduler says it; NULL: they may start */
    bool stopping;             /* the pod is deleted or the node stops: no container starts */
    const char *ended_reason;  /* static; set when the node itself ended the pod, which is then Failed */
    const char *ended_message; /* static */
    bool disrupted;            /* the pod gets a DisruptionTarget condition */
};

/* `pod` must outlive the state. */
void pod_state_init(struct pod_state *state, const struct json *pod, const char *address, int64_t now_ms);
void pod_state_release(struct pod_state *state);

/* Says why the pod waits before its first container; NULL: it waits no longer, and starts at `now_ms`. */
void pod_state_hold(struct pod_state *state, const char *why, int64_t now_ms);

/* Returns a container that should be started now, or -1. `*ret_next_ms` is when one becomes due
 * later, else 0. */
int pod_state_due(const struct pod_state *state, int64_t now_ms, int64_t *ret_next_ms);
/* Returns whether no container runs or will start again. */
bool pod_state_over(const struct pod_state *state);
bool pod_state_runs(const struct pod_state *state); /* whether a process exists */
/* Returns a sidecar that has to get SIGTERM now, each one once, or -1. */
int pod_state_next_sidecar(struct pod_state *state);

void container_state_starting(struct container_state *container);
void container_state_started(struct container_state *container, pid_t pid, int64_t now_ms, bool has_startup_probe);
/* Notes that a ConfigMap or Secret of the container is missing, so that it waits and is tried again. */
void container_state_unconfigured(struct container_state *container, const char *message, int64_t now_ms);
/* Notes that a container has ended; it restarts if the policy says so. `start_error` is NULL unless its
 * command could not be run. `message` is the text of its termination log, or NULL. */
void container_state_ended(struct pod_state *state, unsigned index, int exit_code, const char *start_error,
                           const char *message, int64_t now_ms);

/* "Pending", "Running", "Succeeded", "Failed". */
const char *pod_state_phase(const struct pod_state *state);
/* Makes the whole status. Transition times of unchanged conditions, conditions of others and the
 * QoS class are copied from `previous`, which may be NULL. */
struct json *pod_state_status(const struct pod_state *state, const struct json *previous, int64_t now_ms);
/* Makes the status of a pod whose processes died with an earlier node process, which was last known to be alive at `end_ms`: Failed, with
 * DisruptionTarget. */
struct json *pod_status_lost(const struct json *status, int64_t end_ms);

#endif
