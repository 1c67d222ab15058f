/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/directory.h"
#include "common/job/rules.h"
#include "common/job/string_format.h"
#include "common/job/training_sweep.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/run_list.h"
#include "operator/cli/run_print.h"
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

/* The name of a job may be that of a sweep instead, and the other way round. */
static void explain_kind(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED_JSON *object = NULL;
    if (error->kind != ERROR_NOT_FOUND || !cluster->client || line->name_count != 1)
        return;
    struct resource_path job = cluster_job_path(cluster, line->names[0]);
    struct resource_path sweep = cluster_sweep_path(cluster, line->names[0]);
    if (cluster_get(cluster, line->sweeps ? &sweep : &job, &object, NULL) < 0 &&
        cluster_get(cluster, line->sweeps ? &job : &sweep, &object, NULL) == 0)
        error_set(error, ERROR_NOT_FOUND, "%s is a %s: cox %sget %s", line->names[0], line->sweeps ? "job" : "sweep",
                  line->sweeps ? "" : "sweep ", line->names[0]);
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
        explain_kind(&cluster, line, &error);
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

/* ---------------------------------------------------------------- runs on this machine */

static const struct run_entry *run_named(const struct run_list *list, const char *name)
{
    const struct run_entry *entry;
    bool found = run_list_find(list, name, &entry, NULL) == 0 && strcmp(entry->record.name, name) == 0;
    return found ? entry : NULL;
}

/* Returns the run of the job or the sweep with that name, or of the sweep whose trial has it; NULL: there is none, or several. */
static const struct run_entry *run_or_sweep_named(const struct run_list *list, const struct command_usage *usage,
                                                  const char *name)
{
    const struct run_entry *entry = run_named(list, name);
    SCOPED_FREE char *sweep = entry || usage->sweeps ? NULL : run_sweep_of_trial(name);
    if (sweep)
        entry = run_named(list, sweep);
    return sweep && entry && !entry->record.is_sweep ? NULL : entry;
}

/* A job that is not in the cluster may be one of `cox run` on this machine. */
static void hint_at_run(const char *title, const char *name)
{
    fprintf(stderr, "%s: there is a run %s on this machine; to see it, add --state %s\n", title, name, name);
}

/* Without a cluster, says how to name a run on this machine. */
static void explain_names(const char *title, const struct command_usage *usage, const struct command_line *line,
                          const struct run_list *list)
{
    const struct run_entry *entry;
    struct error error = ERROR_INIT;
    if (list->count == 0)
        return;
    if (line->name_count == 0)
        fprintf(stderr, "%s: to see a run on this machine, name it: `cox runs` lists them\n", title);
    else if (line->name_count > 1 && run_or_sweep_named(list, usage, line->names[0]))
        fprintf(stderr, "%s: to see runs on this machine, name one at a time\n", title);
    else if (run_list_find(list, line->names[0], &entry, &error) < 0)
        fprintf(stderr, "%s: %s\n", title, error.message);
    else if (strchr(usage->options, 's'))
        hint_at_run(title, line->names[0]);
}

static int refuse_ended(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    (void)cluster;
    return error_set(error, ERROR_INVALID, "the run %s has ended", line->names[0]);
}

static int control_run(const char *title, const struct command_usage *usage, struct command_line line,
                       const struct run_entry *entry, command_action *action)
{
    enum run_state state = entry->record.state;
    if (entry->goes_on) {
        line.state = entry->directory;
        return command_run_in_state(title, &line, action, refuse_ended);
    }
    if (usage->use == COMMAND_DELETES)
        fprintf(stderr, "%s: the run %s %s; to delete it with its files: cox runs delete %s\n", title, entry->label,
                state == RUN_INTERRUPTED ? "was interrupted"
                : state == RUN_SUSPENDED ? "was suspended, and its cox run has ended"
                                         : "has ended",
                entry->label);
    else if (state == RUN_INTERRUPTED || state == RUN_SUSPENDED)
        fprintf(stderr, "%s: the run %s was %s; %s%s\n", title, entry->label,
                state == RUN_SUSPENDED ? "suspended, and its cox run has ended" : "interrupted",
                entry->record.command ? "to continue: " : "run the same command again to continue",
                entry->record.command ? entry->record.command : "");
    else
        fprintf(stderr, "%s: the run %s has ended (%s)\n", title, entry->label, run_state_word(state));
    return EXIT_FAILURE;
}

/* Returns the exit code of the first that fails; -1: one name is that of no run, and nothing was done. */
static int control_runs(const char *title, const struct command_usage *usage, const struct command_line *line,
                        const struct run_list *list, command_action *action)
{
    int code = EXIT_SUCCESS;
    for (int i = 0; i < line->name_count; i++)
        if (!run_or_sweep_named(list, usage, line->names[i]))
            return -1;
    for (int i = 0; i < line->name_count && code == EXIT_SUCCESS; i++) {
        struct command_line one = *line;
        one.names = &line->names[i];
        one.name_count = 1;
        code = control_run(title, usage, one, run_or_sweep_named(list, usage, line->names[i]), action);
    }
    return code;
}

/* Lists the jobs or sweeps of this machine, as `cox runs` does. Returns the exit code; -1: there are none, or it is asked for more. */
static int list_runs(const char *title, const struct command_usage *usage, const struct command_line *line,
                     const struct run_list *list)
{
    SCOPED_FREE struct run_entry *entries = memory_allocate(list->count + 1, sizeof *entries);
    SCOPED_FREE int64_t *bytes = memory_allocate(list->count + 1, sizeof *bytes);
    SCOPED_BUFFER text = BUFFER_INIT(RUN_PRINT_MAX);
    struct run_list shown = {.entries = entries};
    bool is_table = line->output == OUTPUT_TABLE || line->output == OUTPUT_WIDE;
    for (size_t i = 0; i < list->count && is_table && !line->selector && !line->watch; i++) {
        const struct run_entry *entry = &list->entries[i];
        if (entry->trouble || entry->record.is_sweep != usage->sweeps ||
            (line->name_space && strcmp(line->name_space, entry->record.name_space) != 0))
            continue;
        bytes[shown.count] = directory_bytes(entry->directory);
        entries[shown.count++] = *entry;
    }
    if (shown.count == 0)
        return -1;
    fprintf(stderr, "%s: no cluster is configured; these are the %s of this machine (see `cox runs`)\n", title,
            usage->sweeps ? "sweeps" : "jobs");
    run_print_table(&shown, bytes, line->output == OUTPUT_WIDE, clock_now_ms(), &text);
    fputs(buffer_text(&text), stdout);
    return EXIT_SUCCESS;
}

/* Without a cluster, a name can only be that of a run on this machine. Returns the exit code; -1: no run was used. */
static int command_in_runs(const char *title, const struct command_usage *usage, struct command_line *line,
                           const struct run_list *list, command_action *action)
{
    if (line->name_count == 0)
        return usage->lists_runs ? list_runs(title, usage, line, list) : -1;
    if (usage->use != COMMAND_SHOWS)
        return control_runs(title, usage, line, list, action);
    const struct run_entry *entry = line->name_count == 1 ? run_or_sweep_named(list, usage, line->names[0]) : NULL;
    if (!entry || !strchr(usage->options, 's'))
        return -1;
    line->state = entry->directory;
    return command_run_in_state(title, line, action, action);
}

static int command_without_cluster(const char *title, const struct command_usage *usage, struct command_line *line,
                                   command_action *action)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    run_list_read(NULL, &list, NULL); /* without them there are no runs to name */
    int code = command_in_runs(title, usage, line, &list, action);
    if (code >= 0)
        return code;
    code = command_run_in_cluster(title, line, action); /* says what is missing */
    if (code == EXIT_FAILURE)
        explain_names(title, usage, line, &list);
    return code;
}

int command_in_cluster(int count, char **words, const struct command_usage *usage, command_action *action)
{
    struct command_line line;
    int code = command_parse(count, words, usage, &line);
    if (code >= 0)
        return code;
    if (line.state)
        return command_run_in_state(words[0], &line, action, action);
    if (!cluster_is_configured(&line))
        return command_without_cluster(words[0], usage, &line, action);
    code = command_run_in_cluster(words[0], &line, action);
    if (code != EXIT_FAILURE || line.name_count == 0 || !strchr(usage->options, 's'))
        return code;
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    const struct run_entry *entry;
    if (run_list_read(NULL, &list, NULL) == 0 && run_list_find(&list, line.names[0], &entry, NULL) == 0)
        hint_at_run(words[0], line.names[0]);
    return code;
}
