/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/state_directory.h"
#include "common/job/sweep_value.h"
#include "common/job/training_class.h"
#include "common/memory.h"
#include "common/yaml.h"
#include "operator/cli/paths.h"
#include "operator/cli/sweep_best.h"
#include "operator/cli/sweep_export.h"
#include "operator/cli/sweep_print.h"
#include "operator/cli/volume_options.h"

#define FILE_MAX (64 * 1024 * 1024)
#define COMMAND_MAX (256 * 1024)

/* ---------------------------------------------------------------- files */

/* Returns the file's path, to be freed with free(); NULL if it could not be written, which is reported. */
static char *keep(const struct run_place *place, const char *name, const struct buffer *text)
{
    struct error error = ERROR_INIT;
    char *path = memory_format("%s/%s", place->state, name);
    if (buffer_write_file(text, path, &error) == 0)
        return path;
    fprintf(stderr, "cox run: %s\n", error.message);
    free(path);
    return NULL;
}

static void say_path(const char *title, const char *path)
{
    SCOPED_FREE char *shown = path ? path_for_people(path) : NULL;
    if (shown)
        printf("  %-12s %s\n", title, shown);
}

static char *keep_trials(const struct run_place *place, const struct sweep_view *view)
{
    SCOPED_BUFFER text = BUFFER_INIT(FILE_MAX);
    return sweep_export_csv(view, &text, NULL) < 0 ? NULL : keep(place, STATE_TRIALS, &text);
}

/* The best job refers to a training class, which the control plane of the next `cox run` does not have yet. */
static int append_classes(const struct json *documents, struct buffer *text)
{
    const struct json *item = json_first(documents);
    for (; item; item = json_next(item)) {
        if (!training_class_is_kind(item))
            continue;
        if (buffer_append_string(text, "---\n", NULL) < 0 || yaml_print(item, text, NULL) < 0)
            return -1;
    }
    return 0;
}

static char *keep_best(const struct run_place *place, const struct training_sweep *sweep)
{
    SCOPED_BUFFER text = BUFFER_INIT(FILE_MAX);
    if (sweep_best_print(sweep, &text, NULL) < 0 || append_classes(place->manifest->documents, &text) < 0)
        return NULL;
    return keep(place, STATE_BEST, &text);
}

/* ---------------------------------------------------------------- the next command */

static void append_cluster(const struct run_options *options, struct buffer *text)
{
    path_append_option(text, "--kubeconfig", options->kubeconfig);
    path_append_option(text, "--context", options->context);
}

/* With absolute paths, as that of the manifest is. */
static void append_volumes(const struct run_options *options, struct buffer *text)
{
    for (unsigned i = 0; i < options->volume_count; i++) {
        const char *path = strchr(options->volumes[i], '=') + 1;
        SCOPED_FREE char *absolute = path_absolute(path);
        SCOPED_FREE char *option =
            memory_format("%.*s%s", (int)(path - options->volumes[i]), options->volumes[i], absolute);
        path_append_option(text, "--volume", option);
    }
}

/* The best job of a population begins with a checkpoint in this run's volumes. */
static void append_own_volumes(const struct run_place *place, struct buffer *text)
{
    const struct json *item = json_first(json_at(place->manifest->effective, "spec.template.storage"));
    for (; item; item = json_next(item)) {
        const char *claim = json_string_at(item, "persistentVolumeClaim.claimName", NULL);
        if (!claim || volume_options_find(place->options->volumes, place->options->volume_count, claim))
            continue;
        SCOPED_FREE char *option =
            memory_format("%s=%s/" STATE_VOLUMES "/%s/%s", claim, place->state, place->name_space, claim);
        path_append_option(text, "--volume", option);
    }
}

/* Has the best job of a population train for another generation, since it begins at its end. */
static void append_length(const struct training_sweep *sweep, struct buffer *text)
{
    static const char *const names[] = {"steps", "epochs"};
    SCOPED_JSON *job = NULL;
    if (sweep_best_job(sweep, &job, NULL) < 0)
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t more = json_integer_at(json_at(sweep->template, "coxswain.training"), names[i], 0);
        if (more > 0)
            buffer_format(text, " --set spec.coxswain.training.%s=%" PRId64, names[i],
                          more + json_integer_at(json_at(job, "spec.coxswain.training"), names[i], 0));
    }
}

static void say_next(const struct run_place *place, const struct training_sweep *sweep, const char *file)
{
    const struct run_options *options = place->options;
    bool goes_on = sweep_has_parents(sweep); /* a population's best values are only its last ones */
    SCOPED_FREE char *program = path_for_shell(path_of_this_program());
    SCOPED_BUFFER text = BUFFER_INIT(COMMAND_MAX);
    if (file) {
        SCOPED_FREE char *manifest = path_for_shell(file);
        buffer_format(&text, "%s run %s", program, manifest);
        append_volumes(options, &text);
        if (goes_on)
            append_own_volumes(place, &text);
    } else {
        buffer_format(&text, "%s sweep best %s", program, sweep->name);
        path_append_option(&text, "--namespace", place->name_space);
        append_cluster(options, &text);
        buffer_format(&text, " | %s run -", program);
        append_cluster(options, &text);
    }
    if (goes_on)
        append_length(sweep, &text);
    printf("\n%s, as a job of its own:\n  %s\n",
           goes_on ? "To go on from the best trial's checkpoint, for one more generation"
                   : "To train the best values once more",
           buffer_text(&text));
}

/* ---------------------------------------------------------------- the end */

static void say_resume(const struct run_place *place, const struct training_sweep *sweep)
{
    SCOPED_FREE char *shown = place->state ? path_for_people(place->state) : NULL;
    printf("\n%s with %" PRId64 " of %" PRId64 " trials done. ", sweep->suspend ? "Suspended" : "Interrupted",
           sweep_done(sweep), sweep->status.trials.total);
    if (shown)
        printf("The state is kept in %s; to %s:\n  %s\n", shown, sweep->suspend ? "resume it" : "go on",
               place->options->resume);
    else
        printf("The sweep goes on in the cluster; to see it again:\n  %s\n", place->options->resume);
}

/* Returns the setting to raise so that a sweep that ended at a limit goes on; NULL: there is none. */
static const char *find_limit(const struct training_sweep *sweep)
{
    int64_t all = sweep_trial_count(sweep), most = sweep_trial_limit(sweep);
    const char *budget = "spec.budget.workerHours=N";
    const char *trials = sweep->max_trials != FIELD_UNSET && sweep->max_trials < most ? "spec.maxTrials=N"
                                                                                      : NULL; /* NULL: all were tried */
    bool cut_short = sweep->has_budget && sweep->status.result_count < all;                   /* by the budget */
    const struct {
        enum sweep_condition end;
        const char *reason, *setting;
    } limits[] = {
        {SWEEP_COMPLETE, "TrialsDone", trials},
        {SWEEP_COMPLETE, "BudgetUsed", budget},
        {SWEEP_FAILED, "NoTrialSucceeded", cut_short ? budget : trials},
        {SWEEP_FAILED, "TooManyFailedTrials", "spec.maxFailedTrials=N"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const struct condition *end = &sweep->status.conditions[limits[i].end];
        if (end->status == CONDITION_TRUE && strcmp(end->reason, limits[i].reason) == 0)
            return limits[i].setting;
    }
    return NULL;
}

static void say_limit(const struct run_place *place, const struct training_sweep *sweep)
{
    const char *limit = find_limit(sweep);
    if (limit)
        printf("\nTo let it go on, with a higher limit:\n  %s --set %s\n", place->options->resume, limit);
}

/* The result that follows is of the earlier command. */
static void say_earlier(const struct run_place *place, const struct training_sweep *sweep)
{
    printf("\n%s had %s before this command; no trial was run now.\n", sweep->name,
           sweep->status.conditions[SWEEP_COMPLETE].status == CONDITION_TRUE ? "finished" : "failed");
    say_limit(place, sweep);
    if (!place->state) {
        printf("To run it anew, delete it first: kubectl delete ts %s --namespace %s\n", sweep->name,
               place->name_space);
        return;
    }
    printf("To run it anew:\n  %s --fresh\n", place->options->resume);
}

static void say_result(const struct run_place *place, const struct sweep_view *view)
{
    SCOPED_BUFFER text = BUFFER_INIT(FILE_MAX);
    if (place->was_over)
        say_earlier(place, view->sweep);
    sweep_print_result(view->sweep, &text);
    printf("\n%s", buffer_text(&text));
    bool has_best = view->sweep->status.best.trial != NULL;
    bool has_failed = view->sweep->status.conditions[SWEEP_COMPLETE].status != CONDITION_TRUE;
    SCOPED_FREE char *trials = place->state ? keep_trials(place, view) : NULL;
    SCOPED_FREE char *best = place->state && has_best ? keep_best(place, view->sweep) : NULL;
    say_path("trials", trials);
    say_path("best job", best);
    if (has_best && (best || !place->state))
        say_next(place, view->sweep, best);
    if (!place->was_over && has_failed)
        say_limit(place, view->sweep);
    if (place->state && !place->was_over && has_failed)
        printf("\nWhen the cause is corrected, run the sweep again:\n  %s --fresh\n", place->options->resume);
}

void run_sweep_conclude(const struct run_place *place, struct sweep_follow *follow, struct run_outcome *ret_outcome)
{
    SCOPED(sweep_view_release) struct sweep_view view;
    sweep_follow_view(follow, &view);
    *ret_outcome = (struct run_outcome){
        .succeeded = view.sweep->status.conditions[SWEEP_COMPLETE].status == CONDITION_TRUE,
        .interrupted = place->interrupted,
        .deleted = sweep_follow_deleted(follow),
        .advised = true,
        .accuracy = NAN,
        .killed_at_step = -1,
        .repeated_steps = -1,
        .seconds_to_next_step = NAN,
    };
    if (place->interrupted)
        say_resume(place, view.sweep);
    else if (ret_outcome->deleted)
        printf("\n%s was deleted before it was over; the volumes and checkpoints of its trials are kept\n",
               view.sweep->name);
    else
        say_result(place, &view);
    fflush(stdout);
}
