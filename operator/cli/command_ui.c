/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/ui/server.h"

#define TURN_MS 1000

static const struct command_usage usage = {
    .text = "usage: cox ui [options]\n"
            "\n"
            "Serves a page with the jobs and sweeps, their curves, logs and trials, to this machine only (127.0.0.1), "
            "and prints its "
            "URL.\n"
            "The page sees and changes what the kubeconfig's user may. The URL has a random token, without which "
            "nothing is "
            "answered:\n"
            "who has the URL has these rights. Ctrl-C ends it.\n"
            "\n"
            "  -A, --all-namespaces   jobs of all namespaces\n"
            "  --port N               default: any free port\n"
            "\n"
            "Exit code: 0 ended by Ctrl-C, 1 the port is taken or the kubeconfig cannot be read, 2 wrong usage.\n",
    .options = "Ap",
    .names_min = 0,
    .names_max = 0};

static int serve(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct ui_server *server;
    int64_t port = line->port < 0 ? 0 : line->port;
    if (port > UINT16_MAX)
        return error_set(error, ERROR_INVALID, "--port %lld: give a port from 1 to 65535", (long long)port);
    if (ui_server_start(cluster, line->all_namespaces ? NULL : cluster->name_space, (uint16_t)port, &server, error) < 0)
        return -1;
    char *url = ui_server_url(server);
    printf("Open this URL in a browser on this machine (Ctrl-C ends it):\n  %s\n", url);
    fflush(stdout);
    free(url);
    int turned = 0;
    while (turned >= 0 && !cluster->interrupted) {
        turned = event_loop_turn(cluster->loop, TURN_MS, error);
        ui_server_work(server);
    }
    ui_server_free(server);
    cluster->interrupted = false; /* that is how it ends */
    return turned < 0 ? -1 : EXIT_SUCCESS;
}

int command_ui(int count, char **words)
{
    return command_in_cluster(count, words, &usage, serve);
}
