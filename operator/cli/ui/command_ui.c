/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/state_directory.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/ui/server.h"

#define TURN_MS 300 /* also how often the directories of runs are read */

static const struct command_usage usage = {
    .text =
        "usage: cox ui [options]\n"
        "\n"
        "Serves a page with the jobs and sweeps, their curves, logs and trials, to this machine only (127.0.0.1), "
        "and prints its "
        "URL.\n"
        "Without a kubeconfig, or with --runs, these are all runs of cox run on this machine. In a cluster the page "
        "sees and changes what\n"
        "the kubeconfig's user may. The URL has a random token, without which "
        "nothing is "
        "answered:\n"
        "who has the URL has these rights. Ctrl-C ends it.\n"
        "\n"
        "  -A, --all-namespaces   jobs of all namespaces\n"
        "  --runs                 all runs of cox run on this machine, also those that have ended\n"
        "  --port N               default: any free port\n"
        "\n"
        "Exit code: 0 ended by Ctrl-C, 1 the port is taken or the kubeconfig cannot be read, 2 wrong usage.\n",
    .options = "ApsR",
    .names_min = 0,
    .names_max = 0};

/* Returns the state directory that the kubeconfig is in, as it is with --state; free it with free(). NULL: the kubeconfig is a cluster's. */
static char *state_of(const struct command_line *line)
{
    const char *kubeconfig = line->kubeconfig ? line->kubeconfig : getenv("KUBECONFIG");
    char *path = kubeconfig && !line->context ? realpath(kubeconfig, NULL) : NULL; /* NULL also for a list of files */
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    if (slash && strcmp(slash + 1, STATE_KUBECONFIG) == 0 && state_directory_is_one(path))
        return path;
    free(path);
    return NULL;
}

/* With a control plane of our own the state of a run that has ended is shown. */
static int serve(struct cluster *cluster, const struct command_line *line, bool kept, struct error *error)
{
    SCOPED_FREE char *state = line->runs ? NULL : state_of(line);
    struct ui_server_options options = {.name_space = line->all_namespaces ? NULL : cluster->name_space,
                                        .port = line->port < 0 ? 0 : (uint16_t)line->port,
                                        .state = state,
                                        .runs = line->runs,
                                        .kept = kept};
    struct ui_server *server;
    if (ui_server_start(cluster, &options, &server, error) < 0)
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

static int serve_live(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    return serve(cluster, line, false, error);
}

static int serve_kept(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    return serve(cluster, line, true, error);
}

static int serve_runs(const char *title, const struct command_line *line)
{
    SCOPED(cluster_release) struct cluster cluster;
    struct error error = ERROR_INIT;
    int code = cluster_init(&cluster, &error);
    if (code == 0)
        code = serve(&cluster, line, false, &error);
    if (code < 0)
        fprintf(stderr, "%s: %s\n", title, error.message);
    return code < 0 ? EXIT_FAILURE : code;
}

/* Whether the line, the environment or ~/.kube/config names a cluster, be it a wrong one. */
static bool has_cluster(const struct command_line *line)
{
    SCOPED(kube_config_release) struct kube_config config = {.server = NULL};
    struct error error = ERROR_INIT;
    const char *paths = getenv("KUBECONFIG");
    return line->kubeconfig || line->context || line->name_space || (paths && *paths) ||
           kube_config_load(NULL, NULL, &config, &error) == 0 || error.kind != ERROR_NOT_FOUND;
}

int command_ui(int count, char **words)
{
    struct command_line line;
    int code = command_parse(count, words, &usage, &line);
    if (code >= 0)
        return code;
    if (line.port > UINT16_MAX) {
        fprintf(stderr, "%s: --port %lld: give a port from 1 to 65535, or 0 for any free one\n", words[0],
                (long long)line.port);
        return EXIT_USAGE;
    }
    if (line.runs && (line.state || line.kubeconfig || line.context || line.name_space || line.all_namespaces)) {
        fprintf(stderr, "%s: --runs shows all runs of this machine: leave out the options that choose others\n",
                words[0]);
        return EXIT_USAGE;
    }
    line.runs |= !line.state && !has_cluster(&line);
    if (line.runs)
        return serve_runs(words[0], &line);
    return line.state ? command_run_in_state(words[0], &line, serve_live, serve_kept)
                      : command_run_in_cluster(words[0], &line, serve_live);
}
