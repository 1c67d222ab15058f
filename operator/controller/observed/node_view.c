/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/node_view.h"

#include <stdbool.h>
#include <string.h>

/* The node controller sets the first when the kubelet no longer reports, a person or a machine's controller the second when
 * the node is known to be switched off. */
static bool has_taint_of_dead(const struct json *node)
{
    static const char *const keys[] = {"node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service"};
    const struct json *taints = json_at(node, "spec.taints");
    for (const struct json *taint = json_first(taints); taint; taint = json_next(taint))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(json_string_at(taint, "key", ""), keys[i]) == 0)
                return true;
    return false;
}

enum node_state node_state_of(const struct json *node)
{
    const char *ready = "Unknown";
    const struct json *conditions = json_at(node, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), "Ready") == 0)
            ready = json_string_at(item, "status", "");
    return strcmp(ready, "True") != 0 || has_taint_of_dead(node) ? NODE_DEAD : NODE_ALIVE;
}
