/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/trained_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/contract/exit_code.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/command_line.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/manifest.h"
#include "operator/cli/paths.h"
#include "operator/cli/run_list.h"
#include "operator/cli/worker_child.h"

#define COMMAND_MAX (64 * 1024)
#define VOLUMES_MAX 64

void worker_call_add(struct worker_call *call, const char *option, const char *value)
{
    if (call->count < WORKER_WORDS_MAX)
        call->words[call->count++] = value ? memory_format("%s=%s", option, value) : memory_copy_string(option);
}

void worker_call_release(struct worker_call *call)
{
    for (unsigned i = 0; i < call->count; i++)
        free(call->words[i]);
    call->count = 0;
}

int worker_call_read(struct worker_call *call, int count, char **words, const struct option *known, const char *usage)
{
    int which = 0;
    for (int option; (option = getopt_long(count, words, "h", known, &which)) != -1;) {
        if (option == '?')
            return command_refuse_option(words, known, usage);
        if (option != 0)
            return command_usage(option == 'h', usage);
        SCOPED_FREE char *text = memory_format("--%s", known[which].name);
        worker_call_add(call, text, optarg);
    }
    return -1;
}

/* ---------------------------------------------------------------- the run */

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static char *directory_of_manifest(const char *path, struct error *error)
{
    SCOPED(manifest_release) struct manifest manifest = {.documents = NULL};
    struct manifest_request request = {.path = path, .default_namespace = "default"};
    if (manifest_read(&request, &manifest, error) < 0)
        return NULL;
    char *directory = run_list_directory_of(&manifest);
    if (state_directory_is_one(directory))
        return directory;
    error_set(error, ERROR_NOT_FOUND,
              "the job %s has not run on this machine, or ran with another --state; `cox runs` lists the runs",
              manifest.name);
    free(directory);
    return NULL;
}

static char *directory_of_run(const char *word, struct error *error)
{
    SCOPED_FREE char *directory = run_directory(word, error);
    return directory ? realpath(directory, NULL) : NULL;
}

/* ---------------------------------------------------------------- its storages */

struct volumes {
    char *texts[VOLUMES_MAX]; /* "claim=directory" */
    unsigned count;
};

static void volumes_release(struct volumes *volumes)
{
    for (unsigned i = 0; i < volumes->count; i++)
        free(volumes->texts[i]);
}

void worker_call_add_storage(struct worker_call *call, const struct storage_place *place, const struct json *job,
                             const char *name_space, const char *storage)
{
    SCOPED_FREE char *path = storage_directory(place, job, name_space, storage);
    if (!path)
        return;
    SCOPED_FREE char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    SCOPED_FREE char *pair =
        here ? memory_format("%s=%s/%s", storage, here, path) : memory_format("%s=%s", storage, path);
    worker_call_add(call, "--storage", pair);
}

void trained_run_add_storages(const char *state, const char *name_space, const struct json *volumes,
                              const struct json *job, struct worker_call *call)
{
    SCOPED(volumes_release) struct volumes given = {.count = 0};
    for (const struct json *item = json_first(volumes); item && given.count < VOLUMES_MAX; item = json_next(item))
        given.texts[given.count++] = memory_format("%s=%s", json_key(item), json_string(item, ""));
    struct storage_place place = {
        .state = state, .volumes = (const char *const *)given.texts, .volume_count = given.count};
    for (const struct json *item = json_first(json_at(job, "spec.storage")); item; item = json_next(item))
        worker_call_add_storage(call, &place, job, name_space, json_string_at(item, "name", ""));
    SCOPED_FREE char *checkpoints = checkpoint_directory(&place, job, name_space);
    if (checkpoints)
        worker_call_add(call, "--checkpoint-dir", checkpoints);
}

/* What the worker is called with. */
struct use {
    struct worker_call call;
    /* The run's state directory; NULL for a trial, since the record there is the sweep's. */
    char *directory;
    int job; /* a file with the trial's job, for the worker's standard input; -1: the job is in the state directory */
};

static void use_release(struct use *use)
{
    worker_call_release(&use->call);
    free(use->directory);
    if (use->job >= 0)
        close(use->job);
}

static int add_run(const char *directory, struct worker_call *call, struct error *error)
{
    SCOPED(run_record_release) struct run_record record;
    SCOPED_JSON *job = NULL;
    SCOPED_FREE char *file = memory_format("%s/" STATE_JOB, directory);
    SCOPED_FREE char *program = path_of_program("coxswain-worker");
    if (run_record_read(directory, &record, error) < 0 || run_record_manifest(directory, &job, error) < 0)
        return -1;
    if (record.is_sweep)
        return error_set(error, ERROR_INVALID,
                         "%s is a sweep: name a trial that has a checkpoint or an export, such as %s-0, or train its "
                         "best job, %s/" STATE_BEST ", by `cox run`, and use that",
                         record.name, record.name, directory);
    worker_call_add(call, program, NULL);
    worker_call_add(call, "--job", file);
    trained_run_add_storages(directory, record.name_space, record.volumes, job, call);
    return 0;
}

static int get_job(const char *directory, const char *name_space, const char *name, struct json **ret_job,
                   struct error *error)
{
    SCOPED(cluster_release) struct cluster cluster;
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, directory);
    const struct command_line line = {.kubeconfig = kubeconfig, .name_space = name_space};
    if (cluster_connect(&line, &cluster, error) < 0)
        return -1;
    struct resource_path path = cluster_job_path(&cluster, name);
    return cluster_get(&cluster, &path, ret_job, error);
}

/* Asks the run's control plane, which is started if the run does not go on. */
static int read_trial(const char *directory, const char *name_space, const char *name, struct json **ret_job,
                      struct error *error)
{
    struct event_loop *loop = NULL;
    struct control_plane *plane = NULL;
    if (event_loop_new(&loop, error) < 0)
        return -1;
    int result = control_plane_read(loop, directory, &plane, error);
    if (result == 0)
        result = get_job(directory, name_space, name, ret_job, error);
    if (plane)
        control_plane_end(plane);
    event_loop_free(loop);
    return result;
}

/* Adds the trial with that name of the sweep in a state directory. */
static int add_trial(const char *directory, const char *name, struct use *use, struct error *error)
{
    SCOPED(run_record_release) struct run_record record;
    SCOPED_JSON *job = NULL;
    SCOPED_FREE char *program = path_of_program("coxswain-worker");
    if (run_record_read(directory, &record, NULL) < 0 || !record.is_sweep)
        return -1; /* with the error that there is no such run */
    if (read_trial(directory, record.name_space, name, &job, error) < 0)
        return error->kind == ERROR_NOT_FOUND
                   ? error_set(error, ERROR_NOT_FOUND, "the sweep %s has no trial %s; `cox sweep get %s` lists them",
                               record.name, name, record.name)
                   : -1;
    if (worker_child_job(job, &use->job, error) < 0)
        return -1;
    worker_call_add(&use->call, program, NULL);
    worker_call_add(&use->call, "--job", "/dev/stdin");
    trained_run_add_storages(directory, record.name_space, record.volumes, job, &use->call);
    return 0;
}

/* The word of a run that does not exist may be that of a trial: the name of a sweep, and a number. */
static int open_trial(const char *word, struct use *use, struct error *error)
{
    SCOPED_FREE char *sweep = run_sweep_of_trial(word);
    SCOPED_FREE char *directory = sweep ? directory_of_run(sweep, NULL) : NULL;
    return directory ? add_trial(directory, word, use, error) : -1;
}

static int open_run(const char *word, struct use *use, struct error *error)
{
    use->directory = is_file(word) ? directory_of_manifest(word, error) : directory_of_run(word, error);
    if (use->directory)
        return add_run(use->directory, &use->call, error);
    return error->kind == ERROR_NOT_FOUND && !is_file(word) ? open_trial(word, use, error) : -1;
}

/* ---------------------------------------------------------------- the worker */

static int exit_of(int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        return EXIT_INTERRUPTED;
    return code == EXIT_CODE_BAD_JOB ? EXIT_USAGE : code == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Says why a run has no checkpoint, as far as its record tells. */
static void describe_unsaved(const char *directory, struct buffer *out)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    if (run_list_read(directory, &list, NULL) < 0 || list.count != 1)
        return;
    const struct run_record *record = &list.entries[0].record;
    SCOPED_FREE char *step =
        record->step < 0 ? memory_copy_string("") : memory_format(" at step %lld", (long long)record->step);
    if (list.entries[0].goes_on)
        buffer_format(out, "%s is%s and has saved none yet; checkpoint.everySteps and everySeconds say when it does",
                      record->name, *step ? step : " running");
    else if (record->state == RUN_FAILED || record->state == RUN_INTERRUPTED || record->state == RUN_SUSPENDED)
        buffer_format(out, "%s %s%s before it saved one; run it again", record->name,
                      record->state == RUN_FAILED      ? "failed"
                      : record->state == RUN_SUSPENDED ? "was suspended"
                                                       : "was interrupted",
                      step);
}

/* Prints the cause that the worker gives; instead of its question about a checkpoint that is missing what the run's record says. */
static void print_cause(const char *command, const char *cause, const char *directory)
{
    static const char unsaved[] = " holds no checkpoint; ";
    const char *at = strstr(cause, unsaved);
    SCOPED_BUFFER why = BUFFER_INIT(COMMAND_MAX);
    if (at && directory)
        describe_unsaved(directory, &why);
    if (why.length > 0)
        fprintf(stderr, "%s: %.*s%s\n", command, (int)(at + strlen(unsaved) - cause), cause, buffer_text(&why));
    else
        fprintf(stderr, "%s: %s", command, cause);
}

/* Passes on what the worker prints on its standard error; the line with its exit code becomes the command's own. */
static void forward_messages(const char *command, const char *directory, int messages)
{
    FILE *stream = fdopen(messages, "r");
    SCOPED_FREE char *line = NULL;
    size_t room = 0;
    while (stream && getline(&line, &room, stream) > 0) {
        const char *cause = worker_child_cause(line);
        if (cause)
            print_cause(command, cause, directory);
        else
            fputs(line, stderr);
    }
    if (stream)
        fclose(stream);
}

/* An event loop, with which a trial was read, blocks signals and ignores SIGPIPE; the worker must not. */
static _Noreturn void become_worker(const struct use *use, int messages)
{
    char *const *words = use->call.words;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (use->job >= 0)
        dup2(use->job, STDIN_FILENO);
    dup2(messages, STDERR_FILENO);
    execvp(words[0], words);
    fprintf(stderr, "cox: start %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int run_worker(const char *command, const struct use *use, struct error *error)
{
    const struct worker_call *call = &use->call;
    int status, ends[2];
    fflush(stdout);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(error, "make a pipe for %s", call->words[0]);
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGINT, &ignored, &before); /* Ctrl-C ends the worker, and so this command */
    pid_t worker = fork();
    if (worker == 0) {
        sigaction(SIGINT, &before, NULL);
        become_worker(use, ends[1]);
    }
    close(ends[1]);
    if (worker > 0)
        forward_messages(command, use->directory, ends[0]);
    else
        close(ends[0]);
    if (worker < 0)
        return error_set_errno(error, "start %s", call->words[0]);
    while (waitpid(worker, &status, 0) < 0)
        if (errno != EINTR)
            return error_set_errno(error, "wait for %s", call->words[0]);
    return exit_of(status);
}

int trained_run_use(const char *command, const char *word, const char *option, const char *value,
                    const struct worker_call *options)
{
    SCOPED(use_release) struct use use = {.job = -1};
    struct error error = ERROR_INIT;
    int code = open_run(word, &use, &error);
    if (code == 0) {
        worker_call_add(&use.call, option, value);
        for (unsigned i = 0; i < options->count; i++)
            worker_call_add(&use.call, options->words[i], NULL);
        code = run_worker(command, &use, &error);
    }
    if (code < 0)
        fprintf(stderr, "%s: %s\n", command, error.message);
    return code < 0 ? EXIT_FAILURE : code;
}

/* ---------------------------------------------------------------- the next command */

static void append_use(const char *word, const struct json *job, struct buffer *out)
{
    const char *format = json_string_at(job, "spec.coxswain.data.format", "");
    const struct json *validation = json_at(job, "spec.coxswain.data.validation");
    bool is_program = json_at(job, "spec.coxswain.model.program") != NULL;
    bool is_bytes = strcmp(format, "Bytes") == 0, is_text = is_bytes || strcmp(format, "Tokens") == 0;
    bool has_classes = strcmp(json_string_at(job, "spec.coxswain.model.loss", ""), "MeanSquaredError") != 0;
    if (is_text && !is_program)
        buffer_format(out, " generate-text %s '%s'", word, is_bytes ? "To be" : "17 4");
    else if (json_count(validation) > 0)
        buffer_format(out, " predict %s %s", word, has_classes && !is_text && !is_program ? "0" : "all");
    else
        buffer_format(out, " predict %s --data %s", word,
                      strcmp(format, "CSV") == 0           ? "FILE.csv"
                      : strcmp(format, "ImageFolder") == 0 ? "FOLDER"
                                                           : "FILE.npy");
}

char *trained_run_command(const char *state, const struct json *job)
{
    bool leaves_weights = json_at(job, "spec.coxswain.checkpoint") || json_at(job, "spec.coxswain.export");
    if (!json_at(job, "spec.coxswain") || !leaves_weights)
        return NULL;
    SCOPED_FREE char *program = path_for_shell(path_of_this_program());
    SCOPED_FREE char *name = run_list_word(state);
    SCOPED_FREE char *word = path_for_shell(name);
    SCOPED_BUFFER text = BUFFER_INIT(COMMAND_MAX);
    buffer_append_string(&text, program, NULL);
    append_use(word, job, &text);
    return buffer_take(&text);
}
