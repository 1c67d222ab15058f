/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the controller of TrainingJobs: it creates, replaces and deletes the pods of each job and
 * writes the job's status. main.c starts it once this process is the leader or, without
 * --leader-elect, at once.
 *
 * Informers for jobs, pods and Services feed a queue of job keys (work_queue.h). For each key, a
 * plan is made from the caches and from what the controller remembers about the job (plan.h,
 * job_entry.h), and is then executed (execute.h). A job is not planned while a cache does not show
 * the controller's own newest write for that job. Everything runs on the client's event loop; there
 * are no threads.
 *
 * Life cycle: call controller_start, run the loop, call controller_stop, free the client (which
 * ends requests in flight), then call controller_free.
 */
#ifndef COXSWAIN_CONTROLLER_CONTROLLER_H
#define COXSWAIN_CONTROLLER_CONTROLLER_H

#include "common/buffer.h"
#include "common/http_client.h"
#include "operator/controller/execute/push_intake.h"
#include "operator/controller/plan/plan.h"
#include "operator/kube/client.h"

struct controller;

struct controller_options {
    const char *name_space;        /* NULL: all */
    const char *instance;          /* for events */
    bool holds_lease;              /* no other operator acts at the same time; false: one may */
    const char *notification_sink; /* URL (notifier.h); NULL: no notifications are sent */
    int64_t sick_node_ms;          /* how long sick nodes have a taint (node_taints.h); 0: they get none */
    struct plan_options plan;
};

/* Starts a controller. `pods_client` speaks plain HTTP to pods. Both clients must outlive
 * controller_stop. Copies `options` but borrows its strings. */
struct controller *controller_start(struct kube_client *client, struct http_client *pods_client,
                                    const struct controller_options *options);
/* Stops starting new work. */
void controller_stop(struct controller *controller);
void controller_free(struct controller *controller);

/* Takes a report whose sender has the token of `path` (push_intake.h). */
void controller_take_report(struct controller *controller, const struct push_path *path, const char *body,
                            size_t length, struct push_answer *ret_answer);

/* Returns whether the initial state of every cache is complete. */
bool controller_synced(const struct controller *controller);

/* Returns the API server's error if it refuses to let the operator watch a collection that it
 * needs; NULL: not refused. */
const struct error *controller_refusal(const struct controller *controller);

/* Appends Prometheus text: coxswain_reconciles_total, coxswain_reconcile_duration_seconds,
 * coxswain_queue_depth, coxswain_jobs{state}, coxswain_pods_cached,
 * coxswain_watch_refused{resource}. */
int controller_write_metrics(const struct controller *controller, struct buffer *out, struct error *error);

#endif
