/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a node what the plan of a job needs. node_state_of decides whether the node can still
 * terminate its pods: dead_node.c may delete pods of a dead node by force, and the operator reads the
 * node for that when one of its pods does not terminate in time.
 *
 * A node_trouble describes a node that is about to be removed, or that has conditions other than Ready
 * (node_leave.h), or that has the taint of sick nodes or had it (sick_node.h). The informer's cache keeps
 * only such nodes, so that it is empty in a healthy cluster. Where the operator may not watch nodes, there
 * are none.
 */
#ifndef COXSWAIN_CONTROLLER_NODE_VIEW_H
#define COXSWAIN_CONTROLLER_NODE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

enum node_state {
    NODE_UNKNOWN, /* it could not be read: access denied, or no answer */
    NODE_ALIVE,   /* its kubelet reports, so the pod is only slow to terminate */
    NODE_DEAD,    /* deleted, not ready, or marked as unreachable or out of service */
};

/* The result of reading a node. */
struct node_look {
    const char *name;
    enum node_state state;
    int64_t at_ms;
};

/* A single allocation; free with free(). */
struct node_trouble {
    const char *name;
    const char *removal_taint; /* key of the taint by which a cloud or an autoscaler announces the removal; "": none */
    const char *conditions;    /* types of conditions that are True, except Ready, each with a newline behind it */
    bool sick_taint;           /* it has the taint TAINT_SICK */
    /* When an operator set that taint, by its annotation; 0: none did; 1: the annotation is no time. */
    int64_t sick_since_ms;
    int64_t sick_until_ms; /* when that taint ends, by its annotation; 0: unknown */
};

/* Returns NULL if the node has no such taint, condition or annotation. */
struct node_trouble *node_trouble_new(const struct json *node);

/* Returns whether a condition of this type is True. */
bool node_trouble_has(const struct node_trouble *trouble, const char *type);

/* Returns NODE_ALIVE or NODE_DEAD for a node's JSON object. */
enum node_state node_state_of(const struct json *node);

#endif
