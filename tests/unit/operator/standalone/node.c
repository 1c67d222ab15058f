/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node.h"

#include <criterion/criterion.h>

/* SIGTERM may come before the node is there. */
Test(node, one_that_never_started_is_freed)
{
    node_free(NULL);
}
