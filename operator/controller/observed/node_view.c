/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/node_view.h"

#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"

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

/* ---------------------------------------------------------------- nodes that are about to be removed, or have conditions */

/* Returns the key of the node's first taint that announces its removal; "": none. The keys are those of the cluster autoscaler, Karpenter,
 * GKE, the AWS node termination handler, and AKS. */
static const char *removal_taint_of(const struct json *node)
{
    static const char *const keys[] = {
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "remediator.kubernetes.azure.com/unschedulable",
        "remediator.aks.microsoft.com/unschedulable",
    };
    const struct json *taints = json_at(node, "spec.taints");
    for (const struct json *taint = json_first(taints); taint; taint = json_next(taint))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(json_string_at(taint, "key", ""), keys[i]) == 0)
                return keys[i];
    return "";
}

#define CONDITIONS_TEXT_MAX 4096

static void collect_conditions(const struct json *node, struct buffer *out)
{
    const struct json *conditions = json_at(node, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item)) {
        const char *type = json_string_at(item, "type", "");
        if (strcmp(json_string_at(item, "status", ""), "True") == 0 && strcmp(type, "Ready") != 0)
            buffer_format(out, "%s\n", type);
    }
}

static bool has_sick_taint(const struct json *node)
{
    const struct json *taints = json_at(node, "spec.taints");
    for (const struct json *taint = json_first(taints); taint; taint = json_next(taint))
        if (strcmp(json_string_at(taint, "key", ""), TAINT_SICK) == 0)
            return true;
    return false;
}

struct node_trouble *node_trouble_new(const struct json *node)
{
    const char *name = json_string_at(node, "metadata.name", ""), *taint = removal_taint_of(node);
    SCOPED_BUFFER conditions = BUFFER_INIT(CONDITIONS_TEXT_MAX);
    collect_conditions(node, &conditions);
    const char *since = json_string(json_member(json_at(node, "metadata.annotations"), ANNOTATION_SICK_SINCE), NULL);
    bool sick_taint = has_sick_taint(node);
    if (*taint == '\0' && conditions.length == 0 && !since && !sick_taint)
        return NULL;
    size_t name_size = strlen(name) + 1, conditions_size = strlen(buffer_text(&conditions)) + 1;
    struct node_trouble *trouble = memory_allocate(1, sizeof *trouble + name_size + conditions_size);
    char *text = (char *)(trouble + 1);
    memcpy(text, name, name_size);
    memcpy(text + name_size, buffer_text(&conditions), conditions_size);
    *trouble = (struct node_trouble){
        .name = text, .removal_taint = taint, .conditions = text + name_size, .sick_taint = sick_taint};
    trouble->sick_since_ms = since != NULL;
    if (since)
        clock_parse(since, &trouble->sick_since_ms);
    clock_parse(json_string(json_member(json_at(node, "metadata.annotations"), ANNOTATION_SICK_UNTIL), ""),
                &trouble->sick_until_ms);
    return trouble;
}

bool node_trouble_has(const struct node_trouble *trouble, const char *type)
{
    size_t length = strlen(type);
    for (const char *at = trouble->conditions; *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") == length && strncmp(at, type, length) == 0)
            return true;
    return false;
}
