/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which node gets the taint coxswain.dev/sick, so that no pods without a toleration are scheduled
 * there. A job avoids a node on which its own pods have failed (node_avoidance.h); the taint spares other
 * jobs the same failures. A node is sick when the pods of at least SICK_NODE_JOBS jobs have blamed it
 * (node_blame.h) at least SICK_NODE_FAILURES times within the window. One job alone cannot make a node
 * sick, because its program may be the cause; nor can the trials of one sweep, which run the same program
 * and so count as one job.
 *
 * An outage that ends pods of several jobs within a minute is one failure of the node, counted for the job
 * that noticed it first.
 *
 * The taint stays for the length of the window of the operator that set it. Failures before the taint no longer count, so a taint that
 * somebody removes by hand comes back only after new failures.
 */
#ifndef COXSWAIN_CONTROLLER_SICK_NODE_H
#define COXSWAIN_CONTROLLER_SICK_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SICK_NODE_FAILURES 3
#define SICK_NODE_JOBS 2

/* A failure that a job's status blames on a node. The strings belong to whoever keeps it. */
struct sick_failure {
    char *uid, *job; /* the job's UID, and "namespace/name" */
    char *program;   /* the UID of the sweep whose trial the job is, or the job's */
    char *node;
    char *reason;     /* "a device failed (pod digits-worker-1-3)" */
    int64_t at_ms;    /* by the clock of sick_failures.now_ms */
    int64_t noted_ms; /* as the job's status says */
};

struct sick_failures {
    const struct sick_failure *list;
    size_t count;
    int64_t window_ms, now_ms;
};

/* What is blamed on a node. */
struct sick_node {
    unsigned failures, jobs;         /* all trials of a sweep are one job */
    const struct sick_failure *last; /* the newest failure; NULL: none */
};

/* Counts the failures on `node` within the window that are newer than `since_ms`. */
struct sick_node sick_node_count(const struct sick_failures *failures, const char *node, int64_t since_ms);
bool sick_node_is_sick(const struct sick_node *node);

/* Returns whether a taint that was set at `since_ms`, for `lasts_ms`, is over. A `since_ms` that is more than `lasts_ms` in the future is
 * wrong, and that taint is over, too. */
bool sick_node_is_over(const struct sick_failures *failures, int64_t since_ms, int64_t lasts_ms);

/* Returns how many of `total` nodes may have the taint at a time: a tenth, but at least one. */
size_t sick_nodes_most(size_t total);

#endif
