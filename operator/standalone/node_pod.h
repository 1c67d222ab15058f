/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one pod on the embedded control plane's node (node.h): starts and stops its processes, probes them, stores their logs, and writes
 * the pod's status to the registry. node_pod_state.h decides which container starts next and what a container's end means.
 */
#ifndef COXSWAIN_STANDALONE_NODE_POD_H
#define COXSWAIN_STANDALONE_NODE_POD_H

#include "common/http_client.h"
#include "operator/standalone/node.h"
#include "operator/standalone/node_log.h"
#include "operator/standalone/node_pod_state.h"

struct pod;

/* The part of the node that its pods use. */
struct pod_host {
    const struct node_options *options;
    struct http_client *client; /* for probes */
    bool namespaces;
    /* A pod's process ended, or its address or readiness changed. */
    void (*changed)(void *context);
    void *context;
};

/* Makes the pod's directory and writes its address to the status; starts no container yet. Copies
 * `object`. */
int pod_new(const struct pod_host *host, const struct json *object, const char *address, struct pod **ret_pod,
            struct error *error);
/* Kills the processes that still run. The directory is kept for its logs. */
void pod_free(struct pod *pod);

/* Says why the pod waits for GPUs, or gives it those that CUDA_VISIBLE_DEVICES names. No container of a pod that requests GPUs starts
 * before it has some. */
void pod_wait_for_gpus(struct pod *pod, const char *why);
void pod_give_gpus(struct pod *pod, const char *visible);
/* Starts the containers that are due. */
void pod_advance(struct pod *pod);
/* Updates the pod to a new version of its object in the registry. */
void pod_update(struct pod *pod, const struct json *object);
/* Ends the pod because the node stops: SIGTERM, and SIGKILL after `grace_ms`. No container starts
 * any more. */
void pod_evict(struct pod *pod, int64_t grace_ms);
/* Rewrites the hosts file in place when it has changed. */
void pod_write_hosts(struct pod *pod, const struct buffer *published);
/* Updates volumes after ConfigMaps or Secrets of the pod's namespace have changed. */
void pod_refresh_volumes(struct pod *pod);

bool pod_runs(const struct pod *pod);
bool pod_is_over(const struct pod *pod);              /* no container runs or will start */
const struct json *pod_object(const struct pod *pod); /* with the newest status */
const char *pod_uid(const struct pod *pod);
const char *pod_address(const struct pod *pod);
/* The grace period of the delete request, else spec.terminationGracePeriodSeconds. */
int64_t pod_grace_ms(const struct pod *pod);
/* The log of a running container; NULL when it does not run. */
struct container_log *pod_container_log(const struct pod *pod, const char *container);

/* <state>/pods/<uid>; release with free(). */
char *pod_directory_path(const struct node_options *options, const char *uid);
/* Removes a pod's files: its directory and its TMPDIR. */
void pod_files_remove(const struct node_options *options, const char *uid);

#endif
