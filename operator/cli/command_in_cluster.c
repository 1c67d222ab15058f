/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/cluster.h"
#include "operator/cli/command.h"

int command_in_cluster(int count, char **words, const struct command_usage *usage, command_action *action)
{
    struct command_line line;
    int code = command_line_parse(count, words, usage, &line);
    if (code >= 0)
        return code;
    SCOPED(cluster_release) struct cluster cluster;
    struct error error = ERROR_INIT;
    int result = cluster_connect(&line, &cluster, &error);
    if (result == 0)
        result = action(&cluster, &line, &error);
    if (cluster.interrupted)
        return EXIT_INTERRUPTED;
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", words[0], error.message);
        return EXIT_FAILURE;
    }
    return result;
}
