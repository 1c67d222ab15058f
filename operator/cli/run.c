/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/dataset.h"
#include "operator/cli/earlier_files.h"
#include "operator/cli/job_follow.h"
#include "operator/cli/manifest.h"
#include "operator/cli/paths.h"
#include "operator/cli/run_admission.h"
#include "operator/cli/run_check.h"
#include "operator/cli/run_keep.h"
#include "operator/cli/run_list.h"
#include "operator/cli/run_mark.h"
#include "operator/cli/run_sweep.h"
#include "operator/cli/summary.h"
#include "operator/cli/trained_run.h"
#include "operator/cli/volume_options.h"

#define REFRESH_MS 200
#define VOLUMES_TEXT_MAX 4096

struct run {
    const struct run_options *options;
    struct event_loop *loop;
    struct terminal *terminal;
    struct manifest manifest;
    char *state;
    bool state_is_new;           /* this run has created the directory */
    bool refused;                /* the API server does not take the manifest: nothing has begun */
    struct control_plane *plane; /* NULL: a cluster */
    struct kube_config config;
    struct kube_client *client;
    struct job_view view;
    struct job_follow *follow;
    struct sweep_follow *sweep; /* in place of `follow` where the manifest holds a sweep */
    struct preemption preemption;
    struct run_keep keep;
    struct run_record before; /* with --fresh: the record that was deleted */
    bool interrupted;
    bool plane_ended; /* the control plane has ended */
    bool created;     /* the job was not there before */
    int64_t begun_ms; /* before the control plane was started */
};

static bool in_cluster(const struct run *run)
{
    return run->options->kubeconfig || run->options->context;
}

static void changed(void *context)
{
    struct run *run = context;
    preemption_consider(&run->preemption, &run->view, clock_now_ms());
}

static void interrupted(void *context, int signal_number)
{
    (void)signal_number;
    ((struct run *)context)->interrupted = true;
}

/* ---------------------------------------------------------------- start */

static void tell_volumes(void *context)
{
    const struct run *run = context;
    SCOPED_BUFFER names = BUFFER_INIT(VOLUMES_TEXT_MAX);
    earlier_volumes(run->state, &names);
    SCOPED_FREE char *shown = path_for_people(run->state);
    if (names.length > 0)
        fprintf(stderr, "cox run: deleting the volumes in %s/" STATE_VOLUMES ": %s\n", shown, buffer_text(&names));
}

static void tell_restart(void *context, const char *message)
{
    const struct run *run = context;
    terminal_clear(run->terminal);
    fprintf(stderr, "cox run: %s\n", message);
}

/* Whether no other run was given a directory that would be deleted. */
static int check_users(const struct run *run, struct error *error)
{
    SCOPED_FREE char *state = run->options->delete_volumes ? realpath(run->state, NULL) : NULL;
    SCOPED_FREE char *user = state ? run_mark_user(state) : NULL;
    SCOPED_FREE char *shown = user ? path_for_people(user) : NULL;
    if (!user)
        return 0;
    return error_set(error, ERROR_CONFLICT,
                     "--delete-volumes: the run %s was given a directory in %s/" STATE_VOLUMES
                     "; delete that run first, or leave the option out",
                     shown, run->state);
}

static int plane_start(struct run *run, struct error *error)
{
    const struct run_options *options = run->options;
    struct control_plane_options plane = {.state_directory = run->state,
                                          .forget = options->fresh,
                                          .forget_volumes = options->delete_volumes,
                                          .forgetting = options->quiet ? NULL : tell_volumes,
                                          .restarted = tell_restart,
                                          .context = run,
                                          .volumes = options->volumes,
                                          .volume_count = options->volume_count};
    run->state_is_new = access(run->state, F_OK) < 0 && errno == ENOENT;
    if (options->fresh)
        (void)run_record_read(run->state, &run->before, NULL);
    if (check_users(run, error) < 0 || control_plane_start(run->loop, &plane, &run->plane, error) < 0)
        return -1;
    return kube_config_load(control_plane_kubeconfig(run->plane), NULL, &run->config, error);
}

/* For a manifest that names none: as kubectl does, the context's. */
static const char *default_namespace(const struct run *run)
{
    if (run->options->name_space)
        return run->options->name_space;
    return in_cluster(run) ? run->config.name_space : "default";
}

static int read_inputs(struct run *run, struct error *error)
{
    if (in_cluster(run) && kube_config_load(run->options->kubeconfig, run->options->context, &run->config, error) < 0)
        return -1;
    struct manifest_request request = {.path = run->options->manifest,
                                       .default_namespace = default_namespace(run),
                                       .settings = run->options->settings,
                                       .setting_count = run->options->setting_count};
    if (manifest_read(&request, &run->manifest, error) < 0)
        return -1;
    if (run->options->sweeps_only && !run->manifest.is_sweep)
        return error_set(error, ERROR_INVALID, "%s is a TrainingJob, not a TrainingSweep: run it with `cox run`",
                         run->manifest.name);
    return 0;
}

static int check_volumes(struct run *run, struct error *error)
{
    const char *given = run->options->state;
    run->state = given ? memory_copy_string(given) : run_list_directory_of(&run->manifest);
    const struct json *spec = json_at(run->manifest.effective, run->manifest.is_sweep ? "spec.template" : "spec");
    const char *const *volumes = run->options->volumes;
    unsigned count = run->options->volume_count;
    SCOPED_FREE char *own = memory_format("%s/" STATE_VOLUMES "/%s", run->state, run->manifest.name_space);
    return volume_options_check(spec, volumes, count, error) < 0
               ? -1
               : volume_options_check_data(spec, volumes, count, own, error);
}

/* A sweep in a job's directory would replace the job's record, by which `cox predict` finds its model; and the other way round. */
static int check_kind(const struct run *run, struct error *error)
{
    SCOPED(run_record_release) struct run_record earlier;
    bool known = run_record_read(run->state, &earlier, NULL) == 0;
    if (!known || run->options->fresh || earlier.is_sweep == run->manifest.is_sweep)
        return 0;
    const char *kind = run->manifest.is_sweep ? "sweep" : "job", *other = earlier.is_sweep ? "sweep" : "job";
    SCOPED_FREE char *shown = path_for_people(run->state);
    return error_set(error, ERROR_CONFLICT,
                     "%s holds the %s %s, and a %s cannot share it: give the %s another name (--set "
                     "metadata.name=ANOTHER) or directory (--state DIRECTORY), or replace the %s with --fresh",
                     shown, other, earlier.name, kind, kind, other);
}

static struct storage_place place_of(const struct run *run)
{
    return (struct storage_place){
        .state = run->state, .volumes = run->options->volumes, .volume_count = run->options->volume_count};
}

/* Says after a message that a file of the examples' data is not there how to get it. Returns -1. */
static int add_download(struct error *error)
{
    const struct dataset *dataset = dataset_find("digits");
    SCOPED_FREE char *message = memory_copy_string(error->message);
    bool missing = false;
    for (const struct dataset_file *file = dataset->files; file->path; file++)
        missing = missing || (strstr(message, "cannot open ") && strstr(message, file->path));
    return missing ? error_set(error, error->kind,
                               "%s. `cox demo` downloads this file once; then give the folder with --volume "
                               "%s=~/.cache/coxswain/data",
                               message, dataset->name)
                   : -1;
}

/* Whether the state directory has the same job already, which was checked when it was created. */
static bool was_checked(const struct run *run)
{
    SCOPED_JSON *earlier = NULL;
    return !run->options->fresh && state_directory_is_one(run->state) &&
           run_record_manifest(run->state, &earlier, NULL) == 0 && json_equal(earlier, run->manifest.effective);
}

/* Whether --delete-volumes removes the directory. */
static bool is_in_volumes(const struct run *run, const char *directory)
{
    SCOPED_FREE char *volumes = memory_format("%s/" STATE_VOLUMES "/", run->state);
    return strncmp(directory, volumes, strlen(volumes)) == 0;
}

/* Whether it removes the directory, and with it no other volume, such as one with data. */
static bool is_deleted_alone(const struct run *run, const char *directory)
{
    return is_in_volumes(run, directory) && !earlier_volumes_are_several(run->state);
}

/* Returns the job's folder of checkpoints, to be freed with free(), if the job goes on from what is there; NULL: the folder is deleted
 * before, is not on this machine, or the job differs from that of its name in the state directory, which the API server refuses. */
static char *continued_folder(const struct run *run)
{
    struct storage_place place = place_of(run);
    SCOPED_JSON *earlier = NULL;
    bool fresh = run->options->fresh;
    char *directory =
        run->manifest.is_sweep ? NULL : checkpoint_directory(&place, run->manifest.effective, run->manifest.name_space);
    bool is_refused = !fresh && run_record_manifest(run->state, &earlier, NULL) == 0 &&
                      strcmp(json_string_at(earlier, "metadata.name", ""), run->manifest.name) == 0;
    if (directory && !is_refused && !(run->options->delete_volumes && is_in_volumes(run, directory)))
        return directory;
    free(directory);
    return NULL;
}

/* Says after a message that a checkpoint has other tensors how to begin without it. Returns -1. */
static int add_way_out(const struct run *run, const char *folder, struct error *error)
{
    SCOPED_FREE char *message = memory_copy_string(error->message);
    if (!folder || !strstr(message, CHECKPOINT_MISFIT))
        return -1;
    return error_set(error, error->kind, "%s; to begin at step 0: %s--set spec.coxswain.checkpoint.path=ANOTHER",
                     message, is_deleted_alone(run, folder) ? "--fresh --delete-volumes, or " : "");
}

static int check_job(struct run *run, struct error *error)
{
    SCOPED_BUFFER warnings = BUFFER_INIT(RUN_WARNINGS_MAX);
    if (was_checked(run))
        return 0;
    struct storage_place place = place_of(run);
    SCOPED_FREE char *continued = continued_folder(run);
    if (run_check(&run->manifest, &place, continued != NULL, run->loop, &run->interrupted, &warnings, error) < 0)
        return add_download(error) < 0 ? add_way_out(run, continued, error) : 0;
    for (char *line = warnings.data, *end; line && *line && !run->options->quiet; line = end + 1) {
        end = strchr(line, '\n');
        fprintf(stderr, "cox run: warning: %.*s\n", (int)(end - line), line);
    }
    return 0;
}

/* Before the earlier run is deleted, so that a refused manifest costs nothing. */
static int check_admission(struct run *run, struct error *error)
{
    if (!run->options->fresh || !state_directory_is_one(run->state))
        return 0;
    return run_admission_check(&run->manifest, run->state, run->loop, &run->interrupted, error);
}

static int connect(struct run *run, struct error *error)
{
    run->begun_ms = clock_now_ms();
    if (!in_cluster(run) && (check_volumes(run, error) < 0 || check_kind(run, error) < 0 || check_job(run, error) < 0 ||
                             check_admission(run, error) < 0 || plane_start(run, error) < 0))
        return -1;
    struct kube_client_options client = {.user_agent = "cox", .exec_plugins = true};
    return kube_client_new(run->loop, &run->config, &client, &run->client, error);
}

/* Tells the user why the new job does not begin at step 0. */
static void tell_checkpoints(const struct run *run, const char *directory, int64_t step)
{
    SCOPED_FREE char *shown = path_for_people(directory);
    fprintf(stderr,
            "cox run: %s goes on from the checkpoints of an earlier run, up to step %lld, in %s; to begin at step 0: "
            "%s--set spec.coxswain.checkpoint.path=ANOTHER\n",
            run->manifest.name, (long long)step, shown,
            is_deleted_alone(run, directory) ? "--fresh --delete-volumes, or " : "");
}

/* On this machine the command that continues a run also resumes it; in a cluster another user may have suspended the job. */
static void tell_suspended(const struct run *run)
{
    const char *name = run->manifest.name, *sweep = run->manifest.is_sweep ? "sweep " : "";
    bool stays = json_boolean_at(run->manifest.job, "spec.suspend", !run->plane);
    if (!stays)
        fprintf(stderr, "cox run: %s was suspended, and is resumed\n", name);
    else if (run->plane || run->manifest.is_sweep) /* of a job in a cluster the view says so */
        fprintf(stderr, "cox run: %s is suspended; to resume it: cox %sresume %s\n", name, sweep, name);
}

static int apply(struct run *run, struct error *error)
{
    struct storage_place place = place_of(run);
    SCOPED_FREE char *checkpoints = checkpoint_directory(&place, run->manifest.effective, run->manifest.name_space);
    int64_t step = checkpoints ? earlier_checkpoint(checkpoints) : -1;
    struct error cause = ERROR_INIT;
    struct manifest_result result = {.created = false};
    if (manifest_apply(&run->manifest, run->client, run->plane != NULL, &run->interrupted, &result, &cause) < 0) {
        run->refused = cause.http_status >= 400 && cause.http_status < 500;
        *error = cause;
        return -1;
    }
    run->created = result.created;
    if (result.suspended)
        tell_suspended(run);
    if (run->created && step >= 0)
        tell_checkpoints(run, checkpoints, step);
    return 0;
}

static int run_start(struct run *run, struct error *error)
{
    if (event_loop_on_signal(run->loop, SIGINT, interrupted, run, error) < 0 ||
        event_loop_on_signal(run->loop, SIGTERM, interrupted, run, error) < 0 || read_inputs(run, error) < 0 ||
        connect(run, error) < 0)
        return -1;
    job_view_init(&run->view, run->manifest.name_space, run->manifest.name);
    run->view.shares_processors = run->plane != NULL;
    preemption_init(&run->preemption, run->options->preempt);
    if (apply(run, error) < 0)
        return -1;
    const struct run_keep_options kept = {run->options->volumes, run->options->volume_count, run->options->again};
    if (run->plane && !run->created)
        run->view.since_ms = run->begun_ms;
    if (run->plane)
        run_keep_begin(&run->keep, run->state, &run->manifest, &kept, clock_now_ms());
    if (run->manifest.is_sweep)
        run->sweep = sweep_follow_start(run->client, run->manifest.job, run->manifest.name_space, !run->created);
    else
        run->follow = job_follow_start(run->client, &run->view, changed, run);
    return 0;
}

/* ---------------------------------------------------------------- follow */

static int show(struct run *run, struct error *error)
{
    if (run->sweep) {
        if (sweep_follow_check(run->sweep, error) < 0)
            return -1;
        sweep_follow_show(run->sweep, run->terminal, clock_now_ms());
        run_keep_sweep(&run->keep, sweep_follow_sweep(run->sweep), clock_now_ms());
        return 0;
    }
    if (job_follow_check(run->follow, "cox run", run->terminal, error) < 0)
        return -1;
    terminal_show(run->terminal, &run->view, clock_now_ms());
    run_keep_job(&run->keep, &run->view, clock_now_ms());
    return 0;
}

static bool is_over(struct run *run)
{
    return run->sweep ? sweep_follow_is_over(run->sweep, clock_now_ms()) : job_follow_is_over(run->follow);
}

static int run_follow(struct run *run, struct error *error)
{
    while (!run->interrupted) {
        if (event_loop_turn(run->loop, REFRESH_MS, error) < 0 || show(run, error) < 0)
            return -1;
        const char *trouble = run->plane ? control_plane_trouble(run->plane) : NULL;
        run->plane_ended = trouble != NULL;
        if (trouble)
            return error_set(error, ERROR_UNAVAILABLE, "%s", trouble);
        if (is_over(run))
            return 0;
    }
    return 0;
}

/* ---------------------------------------------------------------- end */

static void say_resume(const struct run *run)
{
    SCOPED_FREE char *shown = run->state ? path_for_people(run->state) : NULL;
    const char *end = run->view.suspended ? "Suspended" : "Interrupted";
    if (run->view.step >= 0)
        printf("\n%s after step %lld. ", end, (long long)run->view.step);
    else /* a foreign image that tells of none, too */
        printf("\n%s; the last step is not known. ", end);
    if (run->plane && run->view.suspended)
        printf("The state is kept in %s; to resume it:\n  %s\n", shown, run->options->resume);
    else if (run->plane)
        printf("The state is kept in %s; to go on:\n  %s\n", shown, run->options->resume);
    else
        printf("The job goes on in the cluster; to see it again:\n  %s\n", run->options->resume);
}

static void conclude_sweep(struct run *run, struct run_outcome *outcome)
{
    const struct run_place place = {.options = run->options,
                                    .manifest = &run->manifest,
                                    .name_space = run->manifest.name_space,
                                    .state = run->state,
                                    .interrupted = run->interrupted,
                                    .was_over = !run->created && sweep_follow_was_over(run->sweep)};
    sweep_follow_show(run->sweep, run->terminal, clock_now_ms());
    run->terminal->block_lines = 0;
    run_sweep_conclude(&place, run->sweep, outcome);
}

static void say_use(const struct run *run)
{
    SCOPED_FREE char *command = run->state ? trained_run_command(run->state, run->manifest.effective) : NULL;
    if (command)
        printf("\nTo use the trained model:\n  %s\n", command);
}

/* With --fresh alone the new job would go on from the checkpoints of the last step, and be done at once. */
static void say_anew(const struct run *run, const char *checkpoints)
{
    bool has_checkpoints = checkpoints && earlier_checkpoint(checkpoints) >= 0;
    if (!has_checkpoints)
        printf("To train it anew:\n  %s --fresh\n", run->options->resume);
    else if (is_deleted_alone(run, checkpoints))
        printf("To train it anew, without its checkpoints (this deletes them):\n  %s --fresh --delete-volumes\n",
               run->options->resume);
    else
        printf("To train it anew, with other checkpoints:\n  %s --fresh --set spec.coxswain.checkpoint.path=ANOTHER\n",
               run->options->resume);
}

/* The summary is of the earlier run. */
static void say_earlier(const struct run *run, const char *checkpoints)
{
    bool succeeded = job_view_succeeded(&run->view);
    printf("\n%s had %s before this command; nothing was trained now.\n", run->view.name,
           succeeded ? "finished" : "failed");
    if (!run->plane)
        printf("To train it anew, delete it first: cox delete %s\n", run->view.name);
    else if (succeeded)
        say_anew(run, checkpoints);
}

static void conclude_job(struct run *run, struct run_outcome *outcome)
{
    struct storage_place place = place_of(run);
    SCOPED_FREE char *checkpoints = checkpoint_directory(&place, run->manifest.effective, run->manifest.name_space);
    terminal_keep(run->terminal, &run->view, clock_now_ms());
    *outcome = (struct run_outcome){
        .succeeded = job_view_succeeded(&run->view),
        .interrupted = run->interrupted,
        .deleted = run->view.deleted,
        .misfit =
            strstr(run->view.message, CHECKPOINT_MISFIT) != NULL && strstr(run->view.message, "init.path ") == NULL,
        .own_checkpoints = checkpoints && is_deleted_alone(run, checkpoints),
        .accuracy = job_view_score(&run->view).accuracy,
        .weights = export_file(&place, run->manifest.effective, run->view.name_space),
        .killed_at_step = run->preemption.step,
        .repeated_steps = run->preemption.repeated,
        .seconds_to_next_step =
            run->preemption.back_ms ? (double)(run->preemption.back_ms - run->preemption.time_ms) / 1000 : NAN,
    };
    if (outcome->succeeded && checkpoints)
        run_keep_take_over(&run->keep, &run->before, earlier_checkpoint(checkpoints));
    if (run->interrupted) {
        say_resume(run);
        return;
    }
    if (run->view.deleted) {
        printf("\n%s was deleted before it was over; its volumes and checkpoints are kept\n", run->view.name);
        return;
    }
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    summary_write(&run->view, run->manifest.effective, &place, !run->terminal->live, &text);
    fputs(buffer_text(&text), stdout);
    if (!run->created && run->view.was_over)
        say_earlier(run, checkpoints);
    if (job_view_succeeded(&run->view))
        say_use(run);
    fflush(stdout);
}

static enum run_state state_of(const struct run_outcome *outcome)
{
    return outcome->interrupted ? RUN_INTERRUPTED
           : outcome->deleted   ? RUN_DELETED
           : outcome->succeeded ? RUN_SUCCEEDED
                                : RUN_FAILED;
}

/* After a refused manifest there is nothing in the directory to go on with, and `cox runs` would list it as trouble. */
static void forget_refused(const struct run *run)
{
    bool gone;
    if (run->plane && run->state_is_new && run->refused)
        (void)state_directory_delete(run->state, &gone, NULL);
}

static void run_release(struct run *run)
{
    run_keep_release(&run->keep);
    run_record_release(&run->before);
    if (run->follow)
        job_follow_free(run->follow);
    if (run->sweep)
        sweep_follow_free(run->sweep);
    if (run->client)
        kube_client_free(run->client);
    if (run->plane)
        control_plane_end(run->plane);
    forget_refused(run);
    kube_config_release(&run->config);
    manifest_release(&run->manifest);
    job_view_release(&run->view);
    free(run->state);
}

int run_job(const struct run_options *options, struct event_loop *loop, struct terminal *terminal,
            struct run_outcome *ret_outcome, struct error *error)
{
    SCOPED(run_release) struct run run = {.options = options, .loop = loop, .terminal = terminal};
    if (run_start(&run, error) < 0 || run_follow(&run, error) < 0) {
        terminal_clear(terminal);
        *ret_outcome = (struct run_outcome){.plane_ended = run.plane_ended};
        return -1;
    }
    if (run.sweep)
        conclude_sweep(&run, ret_outcome);
    else
        conclude_job(&run, ret_outcome);
    run_keep_end(&run.keep, state_of(ret_outcome), clock_now_ms());
    return 0;
}

void run_outcome_release(struct run_outcome *outcome)
{
    free(outcome->weights);
    outcome->weights = NULL;
}
