/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/rules.h"
#include "common/job/string_format.h"
#include "common/job/training_sweep.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/run_list.h"
#include "operator/cli/unknown_field.h"
#include "operator/kube/credentials.h"

#define NAMESPACE_MAX 63

/* Refuses names that no object in a cluster can have, without asking the cluster. */
static bool can_exist(const char *title, const struct command_usage *usage, const struct command_line *line)
{
    enum role role;
    bool known = !line->role || role_parse(line->role, &role);
    for (int i = 0; i < line->name_count; i++)
        if (!(usage->sweeps ? sweep_name_holds : job_name_holds)(line->names[i])) {
            fprintf(stderr, "%s: no %s can be called \"%s\": %s\n", title, usage->sweeps ? "sweep" : "job",
                    line->names[i], usage->sweeps ? SWEEP_NAME_MESSAGE : JOB_NAME_MESSAGE);
            return false;
        }
    if (line->name_space &&
        (strlen(line->name_space) > NAMESPACE_MAX || !string_format_matches(STRING_FORMAT_NAME, line->name_space))) {
        fprintf(stderr,
                "%s: no namespace can be called \"%s\"; write at most %d of lower-case letters, digits and '-'\n",
                title, line->name_space, NAMESPACE_MAX);
        return false;
    }
    if (!known)
        fprintf(stderr, "%s: --role %s: there are chief, worker, ps and evaluator\n", title, line->role);
    return known;
}

int command_run_in_cluster(const char *title, const struct command_line *line, command_action *action)
{
    SCOPED(cluster_release) struct cluster cluster;
    struct error error = ERROR_INIT;
    int result = cluster_connect(line, &cluster, &error);
    if (result == 0)
        result = action(&cluster, line, &error);
    if (cluster.interrupted || (result < 0 && error.kind == ERROR_CANCELLED))
        return EXIT_INTERRUPTED;
    if (result < 0) {
        refusal_shorten(&error);
        access_explain(&error);
        fprintf(stderr, "%s: %s\n", title, error.message);
        return EXIT_FAILURE;
    }
    return result;
}

int command_parse(int count, char **words, const struct command_usage *usage, struct command_line *ret_line)
{
    int code = command_line_parse(count, words, usage, ret_line);
    return code < 0 && !can_exist(words[0], usage, ret_line) ? EXIT_USAGE : code;
}

static bool cluster_is_configured(const struct command_line *line)
{
    SCOPED(kube_config_release) struct kube_config config = {0};
    const char *paths = getenv("KUBECONFIG");
    struct error error = ERROR_INIT;
    return line->kubeconfig || line->context || (paths && *paths) ||
           kube_config_load(NULL, NULL, &config, &error) == 0 || error.kind != ERROR_NOT_FOUND;
}

/* Without a cluster only a run on this machine can be meant. Returns its state directory, to be freed with free(); NULL: there is no
 * run of a job with that name, or several. */
static char *run_that_is_meant(const struct command_usage *usage, const struct command_line *line)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    const struct run_entry *entry;
    if (line->state || line->name_count != 1 || !strchr(usage->options, 's') || cluster_is_configured(line) ||
        run_list_read(NULL, &list, NULL) < 0 || run_list_find(&list, line->names[0], &entry, NULL) < 0 ||
        strcmp(entry->record.name, line->names[0]) != 0)
        return NULL;
    return memory_copy_string(entry->directory);
}

/* A job that is not in the cluster may be one of `cox run` on this machine. */
static void hint_at_run(const char *title, const struct command_line *line)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    const struct run_entry *entry;
    if (run_list_read(NULL, &list, NULL) < 0 || list.count == 0)
        return;
    if (line->name_count == 0 && !cluster_is_configured(line))
        fprintf(stderr, "%s: to see a run on this machine, name it: `cox runs` lists them\n", title);
    else if (line->name_count > 0 && run_list_find(&list, line->names[0], &entry, NULL) == 0)
        fprintf(stderr, "%s: there is a run %s on this machine; to see it, add --state %s\n", title, line->names[0],
                line->names[0]);
}

int command_in_cluster(int count, char **words, const struct command_usage *usage, command_action *action)
{
    struct command_line line;
    int code = command_parse(count, words, usage, &line);
    if (code >= 0)
        return code;
    SCOPED_FREE char *state = run_that_is_meant(usage, &line);
    if (state)
        line.state = state;
    if (line.state)
        return command_run_in_state(words[0], &line, action, action);
    code = command_run_in_cluster(words[0], &line, action);
    if (code == EXIT_FAILURE && strchr(usage->options, 's'))
        hint_at_run(words[0], &line);
    return code;
}
