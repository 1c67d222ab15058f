/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a pod as a value: which container may start next, what a container's
 * end means under the restart policy, and the status that all of it adds up to.
 * No clock, no processes: everything comes in through parameters.
 *
 * Init containers run one after the other, then all others side by side. As with
 * a kubelet, a command that cannot be run ends with StartError and 128; a
 * configuration that is missing (a ConfigMap, a Secret) keeps the container waiting with
 * CreateContainerConfigError, and is tried again.
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
    enum container_phase phase;
    const char *waiting_reason; /* static */
    char *waiting_message;      /* owned; NULL: none */
    int64_t start_at_ms;        /* while waiting: not before */
    int64_t started_ms;
    pid_t pid;
    bool started; /* its startup probe has passed, or it has none */
    bool passes;  /* its readiness probe */
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
    bool stopping;             /* deleted, or the node stops: nothing starts any more */
    const char *ended_reason;  /* static; the node ended the pod as a whole: Failed */
    const char *ended_message; /* static */
    bool disrupted;            /* by no fault of its own */
};

/* `pod` must outlive the state. */
void pod_state_init(struct pod_state *state, const struct json *pod, const char *address, int64_t now_ms);
void pod_state_release(struct pod_state *state);

/* A container that should be started now, or -1. `ret_next_ms` is set when one becomes due later, else to 0. */
int pod_state_due(const struct pod_state *state, int64_t now_ms, int64_t *ret_next_ms);
/* Every container has ended for good (or never will start), and none runs. */
bool pod_state_over(const struct pod_state *state);
bool pod_state_runs(const struct pod_state *state); /* a process is there */

void container_state_starting(struct container_state *container);
void container_state_started(struct container_state *container, pid_t pid, int64_t now_ms, bool has_startup_probe);
/* The configuration is not there yet. */
void container_state_unconfigured(struct container_state *container, const char *message, int64_t now_ms);
/* `start_error` NULL: it ran. `message` as it stood in the termination log, may be NULL. Restarts by policy. */
void container_state_ended(struct pod_state *state, unsigned index, int exit_code, const char *start_error,
                           const char *message, int64_t now_ms);

/* "Pending", "Running", "Succeeded", "Failed". */
const char *pod_state_phase(const struct pod_state *state);
/* The whole status; from `previous` (may be NULL) come the transition times of conditions that have not changed,
 * conditions that are not this node's, and the QoS class. */
struct json *pod_state_status(const struct pod_state *state, const struct json *previous, int64_t now_ms);
/* The status of a pod whose processes went with an earlier life of this node: Failed, by no fault of its own. */
struct json *pod_status_lost(const struct json *status, int64_t now_ms);

#endif
