/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a node can still end its pods. The operator watches no nodes: it reads
 * the one node of a pod that does not end.
 */
#ifndef COXSWAIN_CONTROLLER_NODE_VIEW_H
#define COXSWAIN_CONTROLLER_NODE_VIEW_H

#include <stdint.h>

#include "common/json.h"

enum node_state {
    NODE_UNKNOWN, /* it could not be read: no right, or no answer */
    NODE_ALIVE,   /* its kubelet reports: a slow pod is being ended */
    NODE_DEAD,    /* gone, not ready, or marked as unreachable or out of service */
};

/* What a read of a node has shown. */
struct node_look {
    const char *name;
    enum node_state state;
    int64_t at_ms;
};

/* NODE_ALIVE or NODE_DEAD. */
enum node_state node_state_of(const struct json *node);

#endif
