/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod that runs, or has run, on the node: its state (node_pod_state.h) tied to
 * processes, probes, logs and the registry.
 */
#ifndef COXSWAIN_STANDALONE_NODE_POD_H
#define COXSWAIN_STANDALONE_NODE_POD_H

#include "common/http_client.h"
#include "operator/standalone/node.h"
#include "operator/standalone/node_log.h"
#include "operator/standalone/node_pod_state.h"

struct pod;

/* What pods need of their node. */
struct pod_host {
    const struct node_options *options;
    struct http_client *client; /* of probes */
    bool namespaces;
    /* A pod's process ended, or its address or readiness changed. */
    void (*changed)(void *context);
    void *context;
};

/* Makes the pod's directory and publishes its address; starts nothing yet. `object` is copied. */
int pod_new(const struct pod_host *host, const struct json *object, const char *address, struct pod **ret_pod,
            struct error *error);
/* Kills what still runs; its directory stays for its logs. */
void pod_free(struct pod *pod);

/* Starts what is due. */
void pod_advance(struct pod *pod);
/* The object as the registry has it now. */
void pod_update(struct pod *pod, const struct json *object);
/* SIGTERM, and SIGKILL after `grace_ms`; nothing starts any more, and its end is the node's doing. */
void pod_evict(struct pod *pod, int64_t grace_ms);
/* Writes the hosts file in place when it has changed. */
void pod_write_hosts(struct pod *pod, const struct buffer *published);
/* ConfigMaps or Secrets of its namespace have changed. */
void pod_refresh_volumes(struct pod *pod);

bool pod_runs(const struct pod *pod);
const struct json *pod_object(const struct pod *pod); /* with the newest status */
const char *pod_uid(const struct pod *pod);
const char *pod_address(const struct pod *pod);
/* spec.terminationGracePeriodSeconds, or the delete's. */
int64_t pod_grace_ms(const struct pod *pod);
/* NULL when the container does not run. */
struct container_log *pod_container_log(const struct pod *pod, const char *container);

/* <state>/pods/<uid>; release with free(). */
char *pod_directory_path(const struct node_options *options, const char *uid);
/* Removes what a pod has left on the machine: that directory and its TMPDIR. */
void pod_files_remove(const struct node_options *options, const char *uid);

#endif
