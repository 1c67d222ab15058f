/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/node_view.h"

#include <criterion/criterion.h>
#include <string.h>

Test(node_view, only_a_node_that_reports_and_is_not_marked_is_alive)
{
    static const struct {
        const char *node;
        enum node_state state;
    } cases[] = {
        {"{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", NODE_ALIVE},
        {"{\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":\"NoSchedule\"}]},"
         "\"status\":{\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"},{\"type\":\"Ready\","
         "\"status\":\"True\"}]}}",
         NODE_ALIVE},
        {"{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}", NODE_DEAD},
        {"{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}", NODE_DEAD},
        {"{\"status\":{\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"True\"}]}}", NODE_DEAD},
        {"{}", NODE_DEAD},
        {"{\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/out-of-service\",\"effect\":\"NoExecute\"}]},"
         "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
         NODE_DEAD},
        {"{\"spec\":{\"taints\":[{\"key\":\"a\"},{\"key\":\"node.kubernetes.io/unreachable\"}]},"
         "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
         NODE_DEAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *node = NULL;
        cr_assert_eq(json_parse(cases[i].node, strlen(cases[i].node), 4096, &node, NULL), 0);
        cr_expect_eq(node_state_of(node), cases[i].state, "%s", cases[i].node);
    }
}

/* {removal_taint, conditions}; NULL: the node is not kept. */
static void expect_trouble(const char *text, const char *taint, const char *conditions)
{
    SCOPED_JSON *node = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 4096, &node, NULL), 0);
    SCOPED_FREE struct node_trouble *trouble = node_trouble_new(node);
    cr_assert_eq(trouble != NULL, taint != NULL, "%s", text);
    if (!trouble)
        return;
    cr_expect_str_eq(trouble->name, "n");
    cr_expect_str_eq(trouble->removal_taint, taint);
    cr_expect_str_eq(trouble->conditions, conditions);
}

#define NODE(taints, conditions)                                                                                       \
    "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[" taints "]},\"status\":{\"conditions\":[" conditions "]}}"
#define READY "{\"type\":\"Ready\",\"status\":\"True\"}"

Test(node_view, only_nodes_with_a_removal_taint_or_a_condition_are_kept)
{
    expect_trouble("{}", NULL, NULL);
    expect_trouble(NODE("", READY ",{\"type\":\"DiskPressure\",\"status\":\"False\"}"), NULL, NULL);
    expect_trouble(NODE("{\"key\":\"nvidia.com/gpu\"},{\"key\":\"DeletionCandidateOfClusterAutoscaler\"},"
                        "{\"key\":\"kubernetes.azure.com/scalesetpriority\",\"value\":\"spot\"}",
                        READY),
                   NULL, NULL);
    expect_trouble(NODE("{\"key\":\"a\"},{\"key\":\"aws-node-termination-handler/spot-itn\"}", READY),
                   "aws-node-termination-handler/spot-itn", "");
    expect_trouble(NODE("", READY ",{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"B\",\"status\":\"True\"}"), "",
                   "A\nB\n");
}

Test(node_view, a_condition_is_found_by_its_whole_type)
{
    const struct node_trouble trouble = {.name = "n", .removal_taint = "", .conditions = "GpuUnhealthy\nDisk\n"};
    cr_expect(node_trouble_has(&trouble, "GpuUnhealthy") && node_trouble_has(&trouble, "Disk"));
    cr_expect_not(node_trouble_has(&trouble, "Gpu"));
    cr_expect_not(node_trouble_has(&trouble, "DiskPressure"));
    cr_expect_not(node_trouble_has(&trouble, ""));
}

static struct node_trouble *trouble_of(const char *text)
{
    SCOPED_JSON *node = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 4096, &node, NULL), 0);
    return node_trouble_new(node);
}

Test(node_view, the_taint_of_sick_nodes_and_its_time_are_read)
{
    SCOPED_FREE struct node_trouble *by_hand =
        trouble_of("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":\"coxswain.dev/sick\"}]}}");
    cr_assert(by_hand && by_hand->sick_taint);
    cr_expect_eq(by_hand->sick_since_ms, 0);
    SCOPED_FREE struct node_trouble *ours = trouble_of(
        "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"coxswain.dev/sick-since\":\"2026-11-20T14:00:00Z\"}},"
        "\"spec\":{\"taints\":[{\"key\":\"a\"},{\"key\":\"coxswain.dev/sick\"}]}}");
    cr_assert(ours && ours->sick_taint && *ours->removal_taint == '\0' && *ours->conditions == '\0');
    cr_expect_eq(ours->sick_since_ms, 1795183200000);
    cr_expect_eq(ours->sick_until_ms, 0);
    SCOPED_FREE struct node_trouble *until = trouble_of(
        "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"coxswain.dev/sick-since\":\"2026-11-20T14:00:00Z\","
        "\"coxswain.dev/sick-until\":\"2026-11-20T14:00:10Z\"}},\"spec\":{}}");
    cr_assert(until);
    cr_expect_eq(until->sick_until_ms, 1795183210000);
    SCOPED_FREE struct node_trouble *flaw = trouble_of(
        "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"coxswain.dev/sick-since\":\"soon\"}},\"spec\":{}}");
    cr_assert(flaw && !flaw->sick_taint);
    cr_expect_eq(flaw->sick_since_ms, 1);
}
