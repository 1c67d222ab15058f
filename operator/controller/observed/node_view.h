/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides from a node's JSON object whether the node can still terminate its pods. dead_node.c may
 * delete pods of a dead node by force. The operator does not watch nodes: it reads a node only if
 * one of the node's pods does not terminate in time.
 */
#ifndef COXSWAIN_CONTROLLER_NODE_VIEW_H
#define COXSWAIN_CONTROLLER_NODE_VIEW_H

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

/* Returns NODE_ALIVE or NODE_DEAD for a node's JSON object. */
enum node_state node_state_of(const struct json *node);

#endif
