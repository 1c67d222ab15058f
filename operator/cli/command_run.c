/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/job/immutability.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/command.h"
#include "operator/cli/job_setting.h"
#include "operator/cli/paths.h"
#include "operator/cli/run.h"

#define RESUME_MAX (256 * 1024)

static const char usage[] =
    "usage: cox run FILE [options]\n"
    "\n"
    "Applies the TrainingJob or TrainingSweep in FILE (YAML or JSON; - is the standard input) and shows its\n"
    "progress until it ends.\n"
    "Without --kubeconfig and --context it starts an embedded control plane and an operator on this machine, which\n"
    "run the pods as processes, and ends both with all their pods. The same command continues a run that was\n"
    "interrupted.\n"
    "\n"
    "  --volume CLAIM=DIR   the directory behind a PersistentVolumeClaim; repeatable\n"
    "                       (default: DIR/volumes/NAMESPACE/CLAIM in the state directory)\n"
    "  --set PATH=VALUE     changes the job before it is applied, such as spec.coxswain.training.steps=100;\n"
    "                       repeatable. [0] or [digits] behind a list is an element, by number or name; null removes\n"
    "                       the field. Values of text fields are taken literally, others as YAML:\n"
    "                       spec.workers={replicas: 3}\n"
    "  --state DIR          where the embedded control plane keeps its state\n"
    "                       (default: ~/.local/state/coxswain/NAMESPACE-NAME)\n"
    "  --fresh              forget the earlier runs in the state directory; volumes and their checkpoints stay\n"
    "  --delete-volumes     with --fresh: delete the volumes in the state directory, too; those of --volume stay\n"
    "  --kubeconfig FILE    run in that cluster instead\n"
    "  --context NAME       run in that context's cluster\n"
    "  -n, --namespace NAME for a manifest that names none (default: the context's)\n"
    "\n"
    "Exit code: 0 the job has succeeded (the sweep is complete), 1 it has failed or could not be run, 2 wrong usage, "
    "130 interrupted.\n";

static bool take_volume(struct run_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) {
        fprintf(stderr, "cox run: --volume \"%s\": it takes a claim and its directory, such as --volume digits=%s\n",
                text, *text == '/' || *text == '.' ? text : "/data");
        return false;
    }
    if (options->volume_count == RUN_VOLUMES_MAX) {
        fprintf(stderr, "cox run: --volume \"%s\": at most %d can be given\n", text, RUN_VOLUMES_MAX);
        return false;
    }
    options->volumes[options->volume_count++] = text;
    return true;
}

static bool take_setting(struct run_options *options, const char *text)
{
    if (options->setting_count == RUN_SETTINGS_MAX) {
        fprintf(stderr, "cox run: --set \"%s\": at most %d can be given\n", text, RUN_SETTINGS_MAX);
        return false;
    }
    options->settings[options->setting_count++] = text;
    return true;
}

/* False: the argument is wrong, which is said. */
static bool take(struct run_options *options, int option, const char *argument)
{
    const char **texts[128] = {
        ['s'] = &options->state, ['k'] = &options->kubeconfig, ['c'] = &options->context, ['n'] = &options->name_space};
    bool *flags[128] = {['f'] = &options->fresh, ['D'] = &options->delete_volumes};
    if (option == 'v')
        return take_volume(options, argument);
    if (option == 'S')
        return take_setting(options, argument);
    if (texts[option])
        *texts[option] = argument;
    else
        *flags[option] = true;
    return true;
}

static bool matches(const char *const *patterns, const char *path)
{
    while (*patterns && fnmatch(*patterns, path, 0) != 0)
        patterns++;
    return *patterns != NULL;
}

/* Returns what `cox generate --data` takes for data, such as a folder, in place of a manifest; NULL: it may be a manifest. free() it. */
static char *data_of(const char *path)
{
    static const char *const tables[] = {"*.csv", "*.tsv", "*.jsonl", "*.ndjson", NULL};
    static const char *const parts[] = {"*.npy", "*.png", "*.jpg", "*.jpeg", "*-ubyte*", NULL};
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (matches(tables, path) || (stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return memory_copy_string(path);
    if (!matches(parts, path))
        return NULL;
    return slash ? memory_copy_bytes(path, (size_t)(slash - path) + 1) : memory_copy_string(".");
}

/* `path`: data, where a manifest is wanted. */
static int refuse_data(const char *title, const char *path)
{
    SCOPED_FREE char *data = data_of(path);
    SCOPED_FREE char *shown = path_for_shell(data ? data : path);
    fprintf(stderr,
            "%s: %s: it takes a manifest that says how to train on data; print one by: cox generate NAME --data %s "
            ">NAME.yaml\n",
            title, path, shown);
    return EXIT_USAGE;
}

/* Returns an exit code when the command ends here, else -1. */
static int read_options(int count, char **words, struct run_options *options)
{
    static const struct option known[] = {
        {"volume", required_argument, NULL, 'v'},
        {"set", required_argument, NULL, 'S'},
        {"state", required_argument, NULL, 's'},
        {"fresh", no_argument, NULL, 'f'},
        {"delete-volumes", no_argument, NULL, 'D'},
        {"kubeconfig", required_argument, NULL, 'k'},
        {"context", required_argument, NULL, 'c'},
        {"namespace", required_argument, NULL, 'n'},
        {"data", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(count, words, "n:h", known, NULL)) != -1;) {
        if (option == '?')
            return command_refuse_option(words, known, usage);
        if (option == 'd')
            return refuse_data(words[0], optarg);
        if (option == 'h' || !take(options, option, optarg))
            return command_usage(option == 'h', usage);
    }
    if (options->delete_volumes && !options->fresh) {
        fprintf(stderr, "%s: --delete-volumes goes with --fresh\n", words[0]);
        return command_usage(false, usage);
    }
    if (options->volume_count > 0 && (options->kubeconfig || options->context)) {
        fprintf(stderr, "%s: --volume goes without --kubeconfig and --context: a cluster has volumes of its own\n",
                words[0]);
        return command_usage(false, usage);
    }
    if (optind + 1 != count) {
        fprintf(stderr, "%s: it takes one FILE, and %d are given\n", words[0], count - optind);
        return command_usage(false, usage);
    }
    options->manifest = words[optind];
    SCOPED_FREE char *data = data_of(options->manifest);
    return data ? refuse_data(words[0], options->manifest) : -1;
}

/* "-" is the standard input. */
static char *place(const char *path, bool absolute)
{
    return absolute && strcmp(path, "-") != 0 ? path_absolute(path) : memory_copy_string(path);
}

/* `path`: the part of `value` that is a path, up to its end. */
static void append_place(struct buffer *text, const char *option, const char *value, const char *path, bool absolute)
{
    SCOPED_FREE char *placed = place(path, absolute);
    SCOPED_FREE char *word = memory_format("%.*s%s", (int)(path - value), value, placed);
    path_append_option(text, option, word);
}

static char *program_of(bool absolute)
{
    const char *program = path_of_this_program();
    SCOPED_FREE char *path = place(program, absolute && strchr(program, '/'));
    return path_for_shell(path);
}

enum command_for { FOR_HERE, FOR_ANOTHER_NAME, FOR_ANYWHERE };

/* Without --fresh and --delete-volumes, however they were written. FOR_ANYWHERE: with absolute paths. FOR_ANOTHER_NAME: without the name. */
static char *resume_command(const struct run_options *options, enum command_for use)
{
    struct buffer text = BUFFER_INIT(RESUME_MAX);
    bool absolute = use == FOR_ANYWHERE;
    SCOPED_FREE char *program = program_of(absolute);
    buffer_format(&text, "%s", program);
    append_place(&text, "run", options->manifest, options->manifest, absolute);
    for (unsigned i = 0; i < options->volume_count; i++)
        append_place(&text, "--volume", options->volumes[i], strchr(options->volumes[i], '=') + 1, absolute);
    for (unsigned i = 0; i < options->setting_count; i++)
        if (use != FOR_ANOTHER_NAME || !job_setting_has_path(options->settings[i], "metadata.name"))
            path_append_option(&text, "--set", options->settings[i]);
    if (options->state)
        append_place(&text, "--state", options->state, options->state, absolute);
    path_append_option(&text, "--kubeconfig", options->kubeconfig);
    path_append_option(&text, "--context", options->context);
    path_append_option(&text, "--namespace", options->name_space);
    return buffer_take(&text);
}

/* Suggests another name for a changed job, so that it does not continue from the earlier job's checkpoints. */
static void advise_another(const struct run_options *options)
{
    SCOPED_FREE char *renamed = resume_command(options, FOR_ANOTHER_NAME);
    fprintf(
        stderr,
        "\nThe earlier run with this name has other settings, which cannot be changed any more. To keep it, give this "
        "one another name:\n"
        "  %s --set metadata.name=ANOTHER\n"
        "To replace it, and continue from its checkpoints if there are any:\n"
        "  %s --fresh\n"
        "or without them (this deletes all volumes in its state directory; those of --volume stay):\n"
        "  %s --fresh --delete-volumes\n",
        renamed, options->resume, options->resume);
}

/* Leaves out that the job is to be deleted, for which `cox run` has --fresh. */
static void print_without_remedy(const char *title, const char *message)
{
    static const char remedy[] = "; " IMMUTABLE_REMEDY;
    fprintf(stderr, "%s: ", title);
    for (const char *at; (at = strstr(message, remedy)); message = at + strlen(remedy))
        fprintf(stderr, "%.*s", (int)(at - message), message);
    fprintf(stderr, "%s\n", message);
}

/* A command that helps: the same job as before would meet the same checkpoints, which do not fit. */
static void advise_again(const char *again, const struct run_outcome *outcome)
{
    if (!outcome->misfit)
        printf(
            "\nWhen the cause is corrected, run the job again, from its last checkpoint if it has one:\n  %s --fresh\n",
            again);
    else if (outcome->own_checkpoints)
        printf("\nTo begin anew, without the checkpoints that do not fit (this deletes them):\n"
               "  %s --fresh --delete-volumes\n"
               "or to keep them and store this job's elsewhere:\n"
               "  %s --fresh --set spec.coxswain.checkpoint.path=ANOTHER\n",
               again, again);
    else
        printf("\nTo begin anew, and store this job's checkpoints elsewhere than those that do not fit:\n"
               "  %s --fresh --set spec.coxswain.checkpoint.path=ANOTHER\n",
               again);
}

static int run(int count, char **words, bool sweeps_only)
{
    struct run_options options = {.manifest = NULL, .sweeps_only = sweeps_only};
    int code = read_options(count, words, &options);
    if (code >= 0)
        return code;
    SCOPED_FREE char *resume = resume_command(&options, FOR_HERE);
    SCOPED_FREE char *again = resume_command(&options, FOR_ANYWHERE);
    options.resume = resume;
    options.again = again;
    bool embedded = !options.kubeconfig && !options.context;
    struct event_loop *loop = NULL;
    struct terminal terminal;
    SCOPED(run_outcome_release) struct run_outcome outcome = {.succeeded = false};
    struct error error = ERROR_INIT;
    terminal_init(&terminal);
    if (event_loop_new(&loop, &error) < 0 || run_job(&options, loop, &terminal, &outcome, &error) < 0) {
        access_explain(&error);
        if (error.kind == ERROR_ALREADY_EXISTS && embedded) {
            print_without_remedy(words[0], error.message);
            advise_another(&options);
        } else {
            fprintf(stderr, "%s: %s\n", words[0], error.message);
        }
        if (outcome.plane_ended)
            fprintf(stderr, "\nThe job was interrupted and its state is kept; to go on:\n  %s\n", resume);
        code = error.kind == ERROR_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILURE;
    } else {
        code = outcome.interrupted ? EXIT_INTERRUPTED : outcome.succeeded ? EXIT_SUCCESS : EXIT_FAILURE;
        if (code == EXIT_FAILURE && embedded && !outcome.deleted && !outcome.advised)
            advise_again(resume, &outcome);
    }
    if (loop)
        event_loop_free(loop);
    return code;
}

int command_run(int count, char **words)
{
    return run(count, words, false);
}

int command_run_sweep(int count, char **words)
{
    return run(count, words, true);
}
