/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and validates the TrainingSweep resource as a C value. A sweep runs many TrainingJobs, its trials, which differ in some fields of
 * one template, and finds the best of them. The operator parses one from each object of a watch, the embedded control plane validates with
 * the same code at admission, and `cox` shows it. The template is validated only with the values of a trial.
 */
#ifndef COXSWAIN_TRAINING_SWEEP_H
#define COXSWAIN_TRAINING_SWEEP_H

#include "common/job/rules.h"
#include "common/job/training_job.h"

#define SWEEP_ALGORITHMS(X) X(SWEEP_GRID, "Grid") X(SWEEP_RANDOM, "Random") X(SWEEP_TPE, "TPE") X(SWEEP_PBT, "PBT")
#define SWEEP_TRIAL_STATES(X)                                                                                          \
    X(TRIAL_RUNNING, "Running") /* or recorded to be created */                                                        \
    X(TRIAL_SUCCEEDED, "Succeeded")                                                                                    \
    X(TRIAL_FAILED, "Failed")                                                                                          \
    X(TRIAL_STOPPED, "Stopped")   /* early, since others were better */                                                \
    X(TRIAL_PAUSED, "Paused")     /* since others were better so far; it may go on later */                            \
    X(TRIAL_DIVERGED, "Diverged") /* its loss became infinite or not a number */
#define EARLY_STOPPING_TYPES(X)                                                                                        \
    X(EARLY_STOPPING_MEDIAN, "Median") X(EARLY_STOPPING_ASHA, "ASHA") X(EARLY_STOPPING_HYPERBAND, "Hyperband")
#define EARLY_STOPPING_ACTIONS(X) X(EARLY_STOPPING_STOP, "Stop") X(EARLY_STOPPING_PAUSE, "Pause")
#define INTEGER_SCALES(X) X(INTEGER_LINEAR, "Linear") X(INTEGER_LOG, "Log")
#define SWEEP_GOALS(X) X(GOAL_MINIMIZE, "Minimize") X(GOAL_MAXIMIZE, "Maximize")
#define OBJECTIVE_VALUES(X) X(OBJECTIVE_AUTO, "Auto") X(OBJECTIVE_LAST, "Last") X(OBJECTIVE_BEST, "Best")
/* In the order in which the status lists them: the first one that is True is the sweep's state. */
#define SWEEP_CONDITION_TYPES(X)                                                                                       \
    X(SWEEP_COMPLETE, "Complete")                                                                                      \
    X(SWEEP_FAILED, "Failed")                                                                                          \
    X(SWEEP_SUSPENDED, "Suspended")                                                                                    \
    X(SWEEP_RUNNING, "Running")
#define X(name, text) name,
enum sweep_algorithm { SWEEP_ALGORITHMS(X) };
enum integer_scale { INTEGER_SCALES(X) };
enum sweep_goal { SWEEP_GOALS(X) };
enum objective_value { OBJECTIVE_VALUES(X) };
enum trial_state { SWEEP_TRIAL_STATES(X) };
enum early_stopping_type { EARLY_STOPPING_TYPES(X) };
enum early_stopping_action { EARLY_STOPPING_ACTIONS(X) };
enum sweep_condition { SWEEP_CONDITION_TYPES(X) SWEEP_CONDITION_COUNT };
#undef X

/* Trials are numbered from 0. A trial's job is named <sweep>-<number>, which must be a valid name of a job. */
#define SWEEP_TRIALS_MAX 10000
/* With TPE or early stopping: the status keeps more of each trial than its result. */
#define SWEEP_RECORDED_TRIALS_MAX 1000
/* The operator starts at most this many trials of a sweep in one reconciliation. */
#define SWEEP_STARTS_MAX 16
#define SWEEP_NAME_MAX (JOB_NAME_MAX - 5)
#define SWEEP_NAME_MESSAGE                                                                                             \
    "the name must be at most 35 lower-case letters, digits and '-', begin with a letter and end with a letter or "    \
    "digit; its trials' names are longer"
#define SWEEP_BRACKETS_MAX 8
#define SWEEP_PARAMETERS_MAX 32
#define SWEEP_VALUES_MAX 256

struct sweep_range {
    double min, max;
};

struct sweep_integers {
    int64_t min, max, step;
    enum integer_scale scale;
};

/* A parameter that is drawn only for trials in which an earlier parameter has one of these values. */
struct sweep_when {
    const char *parameter; /* its path, variable or argument */
    const struct json *values;
};

/* A field of the template, a variable or an argument of the pods, and where its values come from. A sound parameter has one of `path`,
 * `env` and `arg`, and one of `values`, `uniform`, `log_uniform` and `integer`. */
struct sweep_parameter {
    const char *path, *env, *arg;
    const struct json *values; /* NULL: not given */
    bool has_uniform, has_log_uniform, has_integer;
    struct sweep_range uniform, log_uniform;
    struct sweep_integers integer;
    bool has_when;
    struct sweep_when when;
};

struct sweep_objective {
    const char *metric;
    enum sweep_goal goal;
    enum objective_value value; /* of a trial that has succeeded (sweep_final_metric) */
};

/* Which trials are stopped before their end (operator/controller/sweep/early_stopping.h), or paused (promotion.h). */
struct sweep_early_stopping {
    enum early_stopping_type type;
    int64_t min_steps;
    int64_t startup_trials;            /* Median */
    int64_t reduction_factor;          /* ASHA, Hyperband */
    int64_t brackets;                  /* Hyperband (sweep_bracket.h) */
    enum early_stopping_action action; /* ASHA, Hyperband */
};

/* Limit on what all trials may take together. */
struct sweep_budget {
    double worker_hours;
};

/* A parameter's value in one trial, as text. */
struct sweep_assignment {
    const char *name; /* the parameter's path, variable or argument */
    const char *value;
};

/* A trial that has been started, as the sweep's status records it. Grid and Random draw the values of its parameters again when they are
 * needed (sweep_value.h); with TPE they are drawn once and recorded, and later trials learn from them. */
struct trial_record {
    enum trial_state state;
    const char *objective; /* decimal string; NULL: the trial has neither succeeded nor been stopped or paused */
    int64_t
        step; /* after which the objective of a trial that is stopped or paused was measured; FIELD_UNSET: it is neither */
    const char *rungs; /* with early stopping: the values that it had at each rung (early_stopping.h); NULL: none yet */
    int64_t parent;    /* with PBT: the trial from whose checkpoint this one goes on; FIELD_UNSET: it begins anew */
    const char *values; /* of all parameters, as suggestion_record writes them; NULL: not recorded */
};

struct sweep_best {
    const char *trial;     /* its name; NULL: no trial has succeeded */
    const char *objective; /* decimal string, as the trial reported it */
    struct sweep_assignment *parameters;
    unsigned parameter_count;
};

struct sweep_status {
    /* The contract: what users and other programs read. */
    int64_t observed_generation;
    struct condition conditions[SWEEP_CONDITION_COUNT];
    const char *other_conditions; /* of types that are not ours, as a JSON list; NULL: none */
    struct {
        int64_t total, running, succeeded, failed, diverged, stopped, paused;
    } trials;
    struct sweep_best best;
    struct trial_record *results; /* of the trials that have been started, by number */
    unsigned result_count;
    int64_t worker_ms;               /* worker time of the trials that are over; FIELD_UNSET: none is over */
    int64_t start_ms, completion_ms; /* FIELD_UNSET: not yet */

    /* status.controllerState; lists of numbers such as "0-3,7", NULL: none. */
    const char *pending;  /* trials recorded to be created and not observed yet (sweep_plan.h) */
    const char *stopping; /* trials that are to be stopped early or paused, and whose jobs are not suspended yet */
    const char *promoted; /* trials that go on after a pause, and whose jobs are not resumed yet */
};

struct training_sweep {
    const char *name, *namespace, *uid, *resource_version;
    int64_t generation;
    int64_t deleted_ms;     /* FIELD_UNSET: not being deleted */
    const char *queue_name; /* the label by which Kueue admits the trials; NULL: none */

    const struct json *template; /* a TrainingJob's spec */
    struct sweep_parameter *parameters;
    unsigned parameter_count;
    struct sweep_objective objective;
    struct {
        enum sweep_algorithm type;
        int64_t seed;
        int64_t startup_trials; /* TPE */
        int64_t population;     /* PBT (operator/controller/sweep/population.h) */
    } algorithm;
    bool has_early_stopping;
    struct sweep_early_stopping early_stopping;
    bool has_budget;
    struct sweep_budget budget;
    int64_t parallelism, max_failed_trials;
    int64_t max_trials;                 /* FIELD_UNSET: all points of the grid */
    int64_t ttl_seconds_after_finished; /* FIELD_UNSET: kept */
    bool suspend;

    struct sweep_status status;

    struct arena arena;  /* of strings and lists */
    struct json *opaque; /* owns the template and the lists of values */
};

/* Parses an object as the API server gives it. Applies the defaults and validates the spec, but not its template, which is validated later
 * with the values of a trial. On ERROR_INVALID, `ret_sweep` is filled as far as possible and must be released, too. */
int training_sweep_parse(const struct json *object, struct training_sweep *ret_sweep, struct error *error);
void training_sweep_release(struct training_sweep *sweep);

/* Finds all violations of a sweep, as training_job_violations does for a job. */
struct json *training_sweep_violations(const struct json *object, const struct json *old);

bool sweep_name_holds(const char *name);

/* How many points the grid of a spec has, at most SWEEP_TRIALS_MAX + 1; 0: a parameter has infinitely many values. */
int64_t sweep_grid_size(const struct json *spec);

struct json *sweep_status_to_json(const struct sweep_status *status);

#endif
