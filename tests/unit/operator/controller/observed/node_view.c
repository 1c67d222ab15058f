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
