/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a command of `cox` to a cluster by a kubeconfig, and makes blocking requests for it. Each request
 * runs the event loop until the response has arrived; watches and timers on the same loop go on meanwhile.
 * SIGINT and SIGTERM cancel the request and set cluster.interrupted.
 */
#ifndef COXSWAIN_CLI_CLUSTER_H
#define COXSWAIN_CLI_CLUSTER_H

#include "operator/cli/command_line.h"
#include "operator/kube/client.h"

/* Longer answers are refused. */
#define CLUSTER_ANSWER_MAX (64 * 1024 * 1024)

struct cluster {
    struct event_loop *loop;
    struct kube_config config;
    struct kube_client *client;
    const char *name_space; /* of --namespace, else the context's */
    bool interrupted;       /* SIGINT or SIGTERM came */
    bool kept;         /* a state directory whose `cox run` has ended: jobs in it that are not over were interrupted */
    const char *again; /* if `kept`: the command that continues the run; NULL: unknown */
};

/* Creates the event loop and handles SIGINT and SIGTERM, but connects to no cluster: `client` is NULL. Release the result with
 * cluster_release, also after a failure. Until then it must stay at its address, to which the signal handlers point. */
int cluster_init(struct cluster *ret_cluster, struct error *error);
/* Initialises as cluster_init does, and connects to the cluster that the command line names. Release the result with cluster_release, also
 * after a failure. */
int cluster_connect(const struct command_line *line, struct cluster *ret_cluster, struct error *error);
void cluster_release(struct cluster *cluster);

/* Returns the path of a TrainingJob in the cluster's namespace. Borrows both arguments. */
struct resource_path cluster_job_path(const struct cluster *cluster, const char *name);
/* Returns the path of a TrainingSweep in the cluster's namespace. Borrows both arguments. */
struct resource_path cluster_sweep_path(const struct cluster *cluster, const char *name);

/* Results: free with json_free. */
int cluster_get(struct cluster *cluster, const struct resource_path *path, struct json **ret_object,
                struct error *error);
/* Lists a collection as an array of items. `name_space` NULL: all namespaces; `selector` NULL: all
 * objects. */
int cluster_list(struct cluster *cluster, struct kube_resource resource, const char *name_space, const char *selector,
                 struct json **ret_items, struct error *error);
int cluster_patch(struct cluster *cluster, const struct resource_path *path, const struct json *patch,
                  struct error *error);
int cluster_delete(struct cluster *cluster, const struct resource_path *path, struct error *error);
/* Makes a GET request and appends the body to `text`. Retries a few times if the server is
 * unavailable or the response was cut off. On failure `text` has what the last try received. */
int cluster_read(struct cluster *cluster, const char *path_and_query, struct buffer *text, struct error *error);

/* Lists the pods of a job. */
int cluster_pods(struct cluster *cluster, const char *job, struct json **ret_items, struct error *error);

#endif
