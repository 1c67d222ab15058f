/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_control.h"
#include "operator/cli/job_table.h"
#include "operator/cli/sweep_best.h"
#include "operator/cli/sweep_export.h"
#include "operator/cli/sweep_follow.h"
#include "operator/cli/sweep_print.h"
#include "operator/cli/sweep_read.h"
#include "operator/cli/terminal.h"
#include "operator/cli/view_print.h"

#define TOP_REFRESH_MS 200

#define SWEEP_USAGE                                                                                                    \
    "usage: cox sweep run FILE | get [NAME] | top NAME | best NAME | export NAME | stop NAME… | resume NAME…\n"    \
    "\n"                                                                                                               \
    "Runs, shows and controls TrainingSweeps.\n"                                                                       \
    "\n"                                                                                                               \
    "  run FILE       runs the sweep in FILE, with the options of `cox run`: see `cox run --help`\n"                   \
    "  get            lists the sweeps, without a cluster those of this machine\n"                                     \
    "  get NAME       lists the trials of one: number, state, parameters, objective; the best is marked\n"             \
    "  top NAME       shows the trials that run and the best one live, until the sweep is over\n"                      \
    "  best NAME      prints the best trial as the manifest of a job: `cox sweep best NAME | cox run -`\n"             \
    "  export NAME    prints all trials for a spreadsheet or a data frame\n"                                           \
    "  stop NAME…     suspends the trials that run, and starts no others\n"                                          \
    "  resume NAME…   lets a sweep that was stopped go on\n"                                                         \
    "\n"                                                                                                               \
    "  -o, --output FORM      get: json, yaml or name (the sweeps themselves); best: yaml (the default) or json;\n"    \
    "                         export: csv (the default) or json\n"                                                     \
    "  -A, --all-namespaces   get: of all namespaces\n"                                                                \
    "  -l, --selector TEXT    get: with these labels, such as team=vision\n"                                           \
    "  --once                 top: print once, as where the output is no terminal\n"                                   \
    "\n"                                                                                                               \
    "Exit code: 0 done, 1 there is no such sweep, it has no best trial, it is over (stop, resume), or the cluster "    \
    "did\n"                                                                                                            \
    "not answer, 2 wrong usage, 130 interrupted.\n"

/* ---------------------------------------------------------------- get */

static const struct command_usage get_usage = {.text = SWEEP_USAGE,
                                               .options = "oAls",
                                               .names_min = 0,
                                               .names_max = 1,
                                               .sweeps = true,
                                               .lists_runs = true,
                                               .forms = "json, yaml and name"};

static int list_sweeps(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED_JSON *sweeps = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (cluster_list(cluster, (struct kube_resource){API_GROUP, API_VERSION, TRAINING_SWEEP_PLURAL},
                     line->all_namespaces ? NULL : cluster->name_space, line->selector, &sweeps, error) < 0)
        return -1;
    if (line->output == OUTPUT_TABLE && json_count(sweeps) == 0) {
        fprintf(stderr, "no training sweeps%s%s\n", line->all_namespaces ? "" : " in namespace ",
                line->all_namespaces ? "" : cluster->name_space);
        return 0;
    }
    if (line->output == OUTPUT_TABLE) {
        for (struct json *sweep = json_first(sweeps); cluster->kept && sweep; sweep = json_next(sweep))
            job_mark_interrupted(sweep, cluster->again);
        sweep_print_list(sweeps, line->all_namespaces, clock_now_ms(), &text);
    } else if (objects_print(sweeps, line->output, "trainingsweep", false, &text, error) < 0)
        return -1;
    fputs(buffer_text(&text), stdout);
    return 0;
}

static int print_object(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct resource_path path = cluster_sweep_path(cluster, line->names[0]);
    struct json *object = NULL;
    SCOPED_JSON *list = json_new_array();
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (cluster_get(cluster, &path, &object, error) < 0)
        return -1;
    json_append(list, object);
    if (objects_print(list, line->output, "trainingsweep", true, &text, error) < 0)
        return -1;
    fputs(buffer_text(&text), stdout);
    return 0;
}

/* Prints the trials of a sweep in a form of its own. */
typedef int trials_print(const struct sweep_view *view, struct buffer *out, struct error *error);

/* Only trials without a job: `cox why` explains the others. */
static void explain_failures(const struct sweep_view *view)
{
    for (size_t i = 0; i < view->own_count; i++)
        if (view->own[i]->failed && *view->own[i]->message)
            fprintf(stderr, "%s failed: %s\n", view->own[i]->name, view->own[i]->message);
}

static int print_trials(struct cluster *cluster, const char *name, trials_print *print, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    SCOPED(sweep_trials_release) struct sweep_trials trials = {.count = 0};
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (sweep_read(cluster, name, &sweep, NULL, error) < 0 || sweep_trials_read(cluster, &sweep, &trials, error) < 0 ||
        print(&trials.view, &text, error) < 0)
        return -1;
    fputs(buffer_text(&text), stdout);
    explain_failures(&trials.view);
    return 0;
}

static int print_table(const struct sweep_view *view, struct buffer *out, struct error *error)
{
    (void)error;
    sweep_print_table(view, out);
    return 0;
}

/* What a run has left does not change. */
static int print_block(const struct sweep_view *view, struct buffer *out, struct error *error)
{
    (void)error;
    sweep_print_block(view, clock_now_ms(), UINT_MAX, out);
    return 0;
}

static int get(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    if (line->name_count == 0)
        return list_sweeps(cluster, line, error);
    if (line->output != OUTPUT_TABLE)
        return print_object(cluster, line, error);
    return print_trials(cluster, line->names[0], print_table, error);
}

/* ---------------------------------------------------------------- top */

static const struct command_usage top_usage = {
    .text = SWEEP_USAGE, .options = "Os", .names_min = 1, .names_max = 1, .sweeps = true};

static void draw(const struct sweep_follow *follow, struct terminal *terminal)
{
    SCOPED(sweep_view_release) struct sweep_view view;
    SCOPED_BUFFER block = BUFFER_INIT(VIEW_PRINT_MAX);
    sweep_follow_view(follow, &view);
    sweep_print_block(&view, clock_now_ms(), terminal->live ? terminal_width(terminal) : UINT_MAX, &block);
    terminal_draw(terminal, buffer_text(&block));
}

static int follow_trials(struct cluster *cluster, struct sweep_follow *follow, bool once, struct error *error)
{
    struct terminal terminal;
    terminal_init(&terminal);
    once |= !terminal.live;
    while (!cluster->interrupted) {
        if (event_loop_turn(cluster->loop, TOP_REFRESH_MS, error) < 0 || sweep_follow_check(follow, error) < 0)
            return -1;
        if (!sweep_follow_synced(follow))
            continue;
        draw(follow, &terminal);
        if (once || sweep_follow_is_over(follow, clock_now_ms()))
            break;
    }
    return 0;
}

static int top(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct resource_path path = cluster_sweep_path(cluster, line->names[0]);
    SCOPED_JSON *object = NULL;
    if (cluster->kept)
        return print_trials(cluster, line->names[0], print_block, error);
    if (cluster_get(cluster, &path, &object, error) < 0)
        return -1;
    struct sweep_follow *follow = sweep_follow_start(cluster->client, object, cluster->name_space, false);
    int status = follow_trials(cluster, follow, line->once, error);
    sweep_follow_free(follow);
    return status;
}

/* ---------------------------------------------------------------- best and export */

static const struct command_usage best_usage = {
    .text = SWEEP_USAGE, .options = "os", .names_min = 1, .names_max = 1, .sweeps = true, .forms = "yaml and json"};

static int best_print_json(const struct training_sweep *sweep, struct buffer *out, struct error *error)
{
    SCOPED_JSON *job = NULL;
    if (sweep_best_job(sweep, &job, error) < 0 || json_print_indented(job, out, error) < 0)
        return -1;
    return buffer_append_byte(out, '\n', error);
}

static int best(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (sweep_read(cluster, line->names[0], &sweep, NULL, error) < 0 ||
        (line->output == OUTPUT_JSON ? best_print_json : sweep_best_print)(&sweep, &text, error) < 0)
        return -1;
    fputs(buffer_text(&text), stdout);
    return 0;
}

static const struct command_usage export_usage = {
    .text = SWEEP_USAGE, .options = "os", .names_min = 1, .names_max = 1, .sweeps = true, .forms = "csv and json"};

static int export_trials(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    return print_trials(cluster, line->names[0], line->output == OUTPUT_JSON ? sweep_export_json : sweep_export_csv,
                        error);
}

/* ---------------------------------------------------------------- stop and resume */

static const struct command_usage control_usage = {
    .text = SWEEP_USAGE, .options = "", .names_min = 1, .names_max = 1000, .sweeps = true, .use = COMMAND_CONTROLS};

static int set_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    if (sweep_read(cluster, name, &sweep, NULL, error) < 0)
        return -1;
    if (sweep_is_over(&sweep))
        return error_set(error, ERROR_INVALID, "sweep %s is over: there is nothing to %s", name,
                         suspend ? "stop" : "resume");
    return sweep_suspend(cluster, name, suspend, error);
}

static int stop(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count && !cluster->interrupted; i++) {
        if (set_suspend(cluster, line->names[i], true, error) < 0)
            return -1;
        printf("%s is being stopped; `cox sweep resume %s` lets it go on\n", line->names[i], line->names[i]);
    }
    return 0;
}

static int resume(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    for (int i = 0; i < line->name_count && !cluster->interrupted; i++) {
        if (set_suspend(cluster, line->names[i], false, error) < 0)
            return -1;
        printf("%s goes on\n", line->names[i]);
    }
    return 0;
}

/* ---------------------------------------------------------------- the command */

static const struct {
    const char *name;
    const struct command_usage *usage;
    command_action *action;
} actions[] = {{"get", &get_usage, get},       {"top", &top_usage, top},
               {"best", &best_usage, best},    {"export", &export_usage, export_trials},
               {"stop", &control_usage, stop}, {"resume", &control_usage, resume}};

static void refuse_action(const char *title, const char *name)
{
    const char *names[sizeof actions / sizeof *actions + 1] = {"run"};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        names[i + 1] = actions[i].name;
    command_refuse_word(title, name, names, sizeof names / sizeof *names);
}

int command_sweep(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "";
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    SCOPED_FREE char *title = memory_format("%s %s", words[0], name);
    if (strcmp(name, "run") == 0) {
        words[1] = title;
        return command_run_sweep(count - 1, words + 1);
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, name) != 0)
            continue;
        words[1] = title;
        return command_in_cluster(count - 1, words + 1, actions[i].usage, actions[i].action);
    }
    if (strcmp(name, "list") == 0)
        fprintf(stderr, "%s: there is no \"list\"; `cox sweep get` lists the sweeps\n", words[0]);
    else if (*name && !help)
        refuse_action(words[0], name);
    return command_usage(help, SWEEP_USAGE);
}
