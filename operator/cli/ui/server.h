/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the page of `cox ui` and what it asks for, on loopback. gate.h says which requests are answered. The list comes from watches
 * and is answered at once; a request for a job, a sweep or a log waits in a queue, and is answered by ui_server_work, which makes
 * blocking requests of the cluster. Meanwhile the loop goes on, so the list and the page stay alive.
 *
 * GET  /  /page.css  /page.js  /chart.js  /sweep_chart.js  /compare.js  /layer_graph.js  /model.js  /timeline.js
 * The page shows one cluster, or all runs of this machine (runs.h). In the second case each request of a job or a sweep also has run=, and
 * nothing can be changed.
 *
 * GET  /api/list?since=VERSION, and /api/events?since=VERSION for the same as server-sent events (streams.h)
 * GET  /api/job /api/layers /api/curves?known=VERSION /api/log?role=&index=&tail= /api/sweep   each with ?namespace=&name=
 * POST /api/suspend /api/resume /api/delete                                        with ?kind=job|sweep&namespace=&name=
 * POST /api/restart /api/scale?workers=                                            with ?namespace=&name=
 * POST /api/predict /api/generate?tokens=&temperature=&seed=, whose body is the prompt      with ?namespace=&name= (model_use.h)
 */
#ifndef COXSWAIN_CLI_UI_SERVER_H
#define COXSWAIN_CLI_UI_SERVER_H

#include "operator/cli/cluster.h"

struct ui_server;

struct ui_server_options {
    const char *name_space; /* NULL: the jobs of all namespaces */
    uint16_t port;          /* 0: any free one */
    const char *state; /* the state directory whose control plane this is, with the jobs' volumes; NULL: a cluster */
    bool runs;         /* all runs of this machine: the cluster has no client */
    bool kept;         /* the run of `state` has ended: its jobs cannot be changed, and the page says so */
};

/* Starts serving on 127.0.0.1. The cluster and `state` must outlive the server. */
int ui_server_start(struct cluster *cluster, const struct ui_server_options *options, struct ui_server **ret_server,
                    struct error *error);
void ui_server_free(struct ui_server *server);

/* Returns the URL with the token; free it with free(). */
char *ui_server_url(const struct ui_server *server);

/* Answers the requests that wait. Call it after each turn of the loop. */
void ui_server_work(struct ui_server *server);

#endif
