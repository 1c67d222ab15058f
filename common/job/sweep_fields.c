/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/status_document.h"
#include "common/job/enum_words.h"
#include "common/job/field_table.h"
#include "common/job/training_sweep.h"

#define PARAMETER_PATH_MAX 256
#define INDICES_MAX 65536
/* Integers of a parameter: so that any number of them, and any difference, is exact in a double. */
#define INTEGER_MAX 1000000000000
#define REAL_MAX 1e15 /* API servers compare whole numbers with bounds as 64-bit integers */

/* ---------------------------------------------------------------- spec */

#define BOUND(field_name, owner, member, words_about_it)                                                               \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_DECIMAL, MEMBER(owner, member), LONE, .flags = FIELD_REQUIRED,               \
        BETWEEN(-REAL_MAX, REAL_MAX), .description = words_about_it                                                    \
    }
static const struct field range_fields[] = {
    BOUND("min", sweep_range, min, "The lowest value."),
    BOUND("max", sweep_range, max, "The highest value."),
};
OBJECT_TYPE(sweep_range_type, "Range", range_fields);

#define POSITIVE_BOUND(field_name, owner, member, words_about_it)                                                      \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_DECIMAL, MEMBER(owner, member), LONE, .flags = FIELD_REQUIRED,               \
        BETWEEN(0, REAL_MAX), .above = true, .description = words_about_it                                             \
    }
static const struct field log_range_fields[] = {
    POSITIVE_BOUND("min", sweep_range, min, "The lowest value."),
    POSITIVE_BOUND("max", sweep_range, max, "The highest value."),
};
OBJECT_TYPE(sweep_log_range_type, "Range of logarithms", log_range_fields);

#define WHOLE_BOUND(field_name, owner, member, words_about_it)                                                         \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_INTEGER, MEMBER(owner, member), LONE, .flags = FIELD_REQUIRED,               \
        RANGE(-INTEGER_MAX, INTEGER_MAX), .description = words_about_it                                                \
    }
static const struct field integers_fields[] = {
    WHOLE_BOUND("min", sweep_integers, min, "The lowest value."),
    WHOLE_BOUND("max", sweep_integers, max, "The highest value."),
    {.name = "step",
     .kind = FIELD_INTEGER,
     MEMBER(sweep_integers, step),
     LONE,
     RANGE(1, INTEGER_MAX),
     .fallback = "1",
     .description = "The distance from each value to the next, beginning with min."},
    {.name = "scale",
     .kind = FIELD_ENUM,
     MEMBER(sweep_integers, scale),
     LONE,
     .words = integer_scale_words,
     .fallback = "Linear",
     .description = "Linear: each value is as likely as the others. Log: as logUniform, as many from 16 to 32 as from "
                    "32 to 64. A Grid tries every value with either."},
};
OBJECT_TYPE(sweep_integers_type, "Range of integers", integers_fields);

static const struct field when_fields[] = {
    {.name = "parameter",
     .kind = FIELD_STRING,
     MEMBER(sweep_when, parameter),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, PARAMETER_PATH_MAX),
     .description = "The path, env or arg of a parameter that stands before this one and has values or integer."},
    {.name = "values",
     .kind = FIELD_SCALAR_LIST,
     MEMBER(sweep_when, values),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, SWEEP_VALUES_MAX),
     .description = "Those of its values with which this parameter is tried."},
};
static OBJECT_TYPE(sweep_when_type, "Condition of a parameter", when_fields);

static const struct field parameter_fields[] = {
    {.name = "path",
     .kind = FIELD_STRING,
     MEMBER(sweep_parameter, path),
     LONE,
     RANGE(1, PARAMETER_PATH_MAX),
     FORMAT(FIELD_PATH),
     .description = "The field of the template that each trial gets a value for, such as "
                    "coxswain.training.optimizer.learningRate. A number stands for an element of a list, from 0: "
                    "coxswain.model.layers.0.units."},
    {.name = "env",
     .kind = FIELD_STRING,
     MEMBER(sweep_parameter, env),
     LONE,
     RANGE(1, PARAMETER_PATH_MAX),
     FORMAT(VARIABLE),
     .description = "In place of path: an environment variable of the container that trains, in the pods of all roles, "
                    "for scripts of other frameworks."},
    {.name = "arg",
     .kind = FIELD_STRING,
     MEMBER(sweep_parameter, arg),
     LONE,
     RANGE(1, PARAMETER_PATH_MAX),
     FORMAT(ARGUMENT),
     .description = "In place of path: an argument of the container that trains, in the pods of all roles. --lr adds "
                    "--lr=VALUE to the end of its args."},
    {.name = "values",
     .kind = FIELD_SCALAR_LIST,
     MEMBER(sweep_parameter, values),
     LONE,
     RANGE(1, SWEEP_VALUES_MAX),
     .description = "The values to choose from. TPE takes three or more numbers in ascending or descending order for "
                    "places on a scale, and all others for words without an order."},
    {.name = "uniform",
     .kind = FIELD_OBJECT,
     MEMBER(sweep_parameter, uniform),
     COMPANION(sweep_parameter, has_uniform),
     .type = &sweep_range_type,
     .description = "In place of values: any number from min to max, each as likely as the others."},
    {.name = "logUniform",
     .kind = FIELD_OBJECT,
     MEMBER(sweep_parameter, log_uniform),
     COMPANION(sweep_parameter, has_log_uniform),
     .type = &sweep_log_range_type,
     .description = "In place of values: any number from min to max, whose logarithm is uniform: as many between 0.001 "
                    "and 0.01 as between 0.01 and 0.1."},
    {.name = "integer",
     .kind = FIELD_OBJECT,
     MEMBER(sweep_parameter, integer),
     COMPANION(sweep_parameter, has_integer),
     .type = &sweep_integers_type,
     .description = "In place of values: a whole number from min to max."},
    {.name = "when",
     .kind = FIELD_OBJECT,
     MEMBER(sweep_parameter, when),
     COMPANION(sweep_parameter, has_when),
     .type = &sweep_when_type,
     .description = "Try this parameter only in trials in which another one has one of these values; in the others the "
                    "template stays as it is there. Default: in all trials."},
};
OBJECT_TYPE(sweep_parameter_type, "Parameter", parameter_fields, .size = sizeof(struct sweep_parameter));

static const struct field objective_fields[] = {
    {.name = "metric",
     .kind = FIELD_STRING,
     MEMBER(sweep_objective, metric),
     LONE,
     RANGE(1, NAME_MAX_LENGTH),
     .fallback = METRIC_VALIDATION_LOSS,
     .description = "Name of the metric in status.progress.metrics of a trial."},
    {.name = "goal",
     .kind = FIELD_ENUM,
     MEMBER(sweep_objective, goal),
     LONE,
     .words = sweep_goal_words,
     .description = "Whether a lower or a higher value is better. Required unless the metric's name ends in loss or "
                    "Loss, of which a lower one is better."},
    {.name = "value",
     .kind = FIELD_ENUM,
     MEMBER(sweep_objective, value),
     LONE,
     .words = objective_value_words,
     .fallback = "Auto",
     .description =
         "Which value of the metric a trial is compared by once it has succeeded. Last: the last one. Best: that "
         "of the evaluation with the lowest validation loss, whose weights coxswain.checkpoint.keepBest keeps; "
         "for validationLoss, validationAccuracy and validationRMSE, and not with PBT. Auto: Best where the template "
         "exports "
         "these weights (coxswain.export.weights Best) and Best is possible, otherwise Last. At rungs "
         "the last value counts."},
};
static OBJECT_TYPE(objective_type, "Objective", objective_fields);

static const struct field algorithm_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(training_sweep, algorithm.type),
     LONE,
     .words = sweep_algorithm_words,
     .fallback = "Random",
     .description =
         "Grid: every combination of the values and integers, the last parameter changing fastest. Random: "
         "each trial draws every parameter independently, and values that an earlier trial had are drawn again. TPE: "
         "as Random at first, then the parameters are drawn together, where the trials so far had good results. PBT: "
         "trials run in generations, and each goes on from the checkpoint of a trial of the generation before; the "
         "worst trials are replaced by copies of the best with other values."},
    {.name = "seed",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, algorithm.seed),
     LONE,
     RANGE(0, 1000000000000),
     .fallback = "0",
     .description =
         "What Random, TPE and PBT draw from. With Random the values of a trial depend on nothing but the seed, "
         "the parameters and the trial's number; with TPE and PBT also on the results of the trials that were over "
         "when it was started."},
    {.name = "startupTrials",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, algorithm.startup_trials),
     LONE,
     RANGE(1, SWEEP_RECORDED_TRIALS_MAX),
     .fallback = "10",
     ONLY_FOR("TPE"),
     .description = "How many trials must have succeeded before others learn from them; until then values are drawn at "
                    "random."},
    {.name = "population",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, algorithm.population),
     LONE,
     RANGE(2, 500),
     .fallback = "10",
     ONLY_FOR("PBT"),
     .description = "How many trials a generation has. Each trains for the steps or epochs of the template."},
};
static OBJECT_TYPE(algorithm_type, "Algorithm", algorithm_fields, .kind_field = "type");

static const struct field early_stopping_fields[] = {
    {.name = "type",
     .kind = FIELD_ENUM,
     MEMBER(sweep_early_stopping, type),
     LONE,
     .flags = FIELD_REQUIRED,
     .words = early_stopping_type_words,
     .description = "Median: a trial is stopped when its best value so far is worse than the median of what the other "
                    "trials had at the same step. ASHA: a trial that reaches a rung goes on only among the best of "
                    "those that have reached it. Hyperband: as ASHA in each of several brackets of trials, which are "
                    "judged from different rungs on."},
    {.name = "minSteps",
     .kind = FIELD_INTEGER,
     MEMBER(sweep_early_stopping, min_steps),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, 1000000000000),
     .description = "Steps of the first rung: no trial is judged before. Each further rung has twice the steps of the "
                    "one before it, with ASHA and Hyperband reductionFactor times as many."},
    {.name = "startupTrials",
     .kind = FIELD_INTEGER,
     MEMBER(sweep_early_stopping, startup_trials),
     LONE,
     RANGE(1, SWEEP_RECORDED_TRIALS_MAX),
     .fallback = "5",
     ONLY_FOR("Median"),
     .description = "How many trials must be over before one is stopped."},
    {.name = "reductionFactor",
     .kind = FIELD_INTEGER,
     MEMBER(sweep_early_stopping, reduction_factor),
     LONE,
     RANGE(2, 100),
     .fallback = "4",
     ONLY_FOR("ASHA", "Hyperband"),
     .description = "Of n trials that have reached a rung, the best n / reductionFactor, rounded down, continue. While "
                    "that is 0, all continue, or none with action Pause."},
    {.name = "brackets",
     .kind = FIELD_INTEGER,
     MEMBER(sweep_early_stopping, brackets),
     LONE,
     RANGE(2, SWEEP_BRACKETS_MAX),
     .fallback = "3",
     ONLY_FOR("Hyperband"),
     .description =
         "Number of brackets that the trials are divided among. Trials of the first bracket are judged at every "
         "rung, trials of the second from the second rung on, and so on; each is compared only with trials of its own "
         "bracket. The first bracket has most trials, each further one about reductionFactor times fewer."},
    {.name = "action",
     .kind = FIELD_ENUM,
     MEMBER(sweep_early_stopping, action),
     LONE,
     .words = early_stopping_action_words,
     .fallback = "Stop",
     ONLY_FOR("ASHA", "Hyperband"),
     .description = "What the operator does with a trial that is not among the best at a rung. Stop: it is stopped for "
                    "good. Pause: "
                    "its job is suspended, and goes on from its checkpoint once the trial is among the best of those "
                    "that have reached the rung by then; trials that can go on come before new ones."},
};
static OBJECT_TYPE(early_stopping_type_fields, "Early stopping", early_stopping_fields, .kind_field = "type");

static const struct field budget_fields[] = {
    {.name = "workerHours",
     .kind = FIELD_DECIMAL,
     MEMBER(sweep_budget, worker_hours),
     LONE,
     .flags = FIELD_REQUIRED,
     BETWEEN(0, REAL_MAX),
     .above = true,
     .description = "Hours of worker time: each trial takes those from its start to its end, times the number of its "
                    "pods."},
};
static OBJECT_TYPE(budget_type, "Budget", budget_fields);

static const struct field spec_fields[] = {
    {.name = "suspend",
     .kind = FIELD_BOOLEAN,
     MEMBER(training_sweep, suspend),
     LONE,
     .flags = FIELD_MUTABLE,
     .fallback = "false",
     .description = "Suspend the trials that run and start no others; set it back to false to go on."},
    {.name = "template",
     .kind = FIELD_OPAQUE,
     MEMBER(training_sweep, template),
     LONE,
     .flags = FIELD_REQUIRED,
     .description = "The spec of the TrainingJobs, each of which is a trial. One default differs: with pytorch, "
                    "tensorflow and jax, runPolicy.backoffLimit is 0 unless the job is elastic, so a script that fails "
                    "is not started again. Preemptions and other disruptions do not count, as in all jobs."},
    {.name = "parameters",
     .kind = FIELD_LIST,
     MEMBER(training_sweep, parameters),
     COMPANION(training_sweep, parameter_count),
     .flags = FIELD_REQUIRED,
     RANGE(1, SWEEP_PARAMETERS_MAX),
     .type = &sweep_parameter_type,
     .description = "The parameters in which the trials differ."},
    {.name = "objective",
     .kind = FIELD_OBJECT,
     MEMBER(training_sweep, objective),
     LONE,
     .type = &objective_type,
     .fallback = "{}",
     .description = "The metric by which trials are compared."},
    {.name = "algorithm",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct training_sweep),
     LONE,
     .type = &algorithm_type,
     .fallback = "{}",
     .description = "How the values of each trial are chosen."},
    {.name = "earlyStopping",
     .kind = FIELD_OBJECT,
     MEMBER(training_sweep, early_stopping),
     COMPANION(training_sweep, has_early_stopping),
     .type = &early_stopping_type_fields,
     .description =
         "Stop trials before their end that are worse than others. Default: none is stopped. Jobs of other "
         "frameworks are only stopped if progress.logPatterns or progress.push tells step and metric while they run."},
    {.name = "budget",
     .kind = FIELD_OBJECT,
     MEMBER(training_sweep, budget),
     COMPANION(training_sweep, has_budget),
     .type = &budget_type,
     .flags = FIELD_MUTABLE,
     .description = "Limit on the worker time of all trials together. Once the trials that run and those that are over "
                    "have used it, no "
                    "other trial is started, and the sweep is complete when those that run are over. It goes on if "
                    "this is raised."},
    {.name = "parallelism",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, parallelism),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, 1000),
     .fallback = "1",
     .description = "How many trials run at a time."},
    {.name = "maxTrials",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, max_trials),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(1, SWEEP_TRIALS_MAX),
     .description =
         "Number of trials in all. It is an upper limit where the parameters have fewer combinations of values: with "
         "Grid the default is all of them, and with Random and TPE none is tried twice. With TPE, PBT or earlyStopping "
         "it is at most 1000. A sweep whose trials are all over goes on if it is raised."},
    {.name = "maxFailedTrials",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, max_failed_trials),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(0, SWEEP_TRIALS_MAX),
     .fallback = "3",
     .description =
         "How many trials may fail. With one more the sweep fails, and its other trials are suspended. "
         "Trials whose loss becomes infinite or not a number do not count. The sweep goes on if this is raised."},
    {.name = "ttlSecondsAfterFinished",
     .kind = FIELD_INTEGER,
     MEMBER(training_sweep, ttl_seconds_after_finished),
     LONE,
     .flags = FIELD_MUTABLE,
     RANGE(0, INTEGER_MAX),
     .description = "The sweep is deleted this number of seconds after its end, with its results and the jobs of its "
                    "trials. What they have stored on volumes is kept. Default: it is kept. The template's field of "
                    "this name deletes each trial's job alone."},
};
OBJECT_TYPE(training_sweep_spec_type, "TrainingSweep spec", spec_fields);

/* ---------------------------------------------------------------- status */

static const struct field trials_fields[] = {
    COUNTER("total", sweep_status, trials.total, "Trials that there will be in all."),
    COUNTER("running", sweep_status, trials.running, "Trials that have been started and are not over."),
    COUNTER("succeeded", sweep_status, trials.succeeded, "Trials that succeeded and reported the metric."),
    COUNTER("failed", sweep_status, trials.failed,
            "Trials that failed, were deleted, could not be created or did not report the metric."),
    COUNTER("diverged", sweep_status, trials.diverged,
            "Trials whose loss became infinite or not a number. They do not count against maxFailedTrials."),
    COUNTER("stopped", sweep_status, trials.stopped, "Trials that were stopped early."),
    COUNTER("paused", sweep_status, trials.paused, "Trials that are paused, and may go on."),
};
static OBJECT_TYPE(trials_type, "Trials", trials_fields);

static const struct field assignment_fields[] = {
    {.name = "name",
     .kind = FIELD_STRING,
     MEMBER(sweep_assignment, name),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(1, PARAMETER_PATH_MAX),
     .description = "Path, env or arg of the parameter."},
    {.name = "value",
     .kind = FIELD_STRING,
     MEMBER(sweep_assignment, value),
     LONE,
     .flags = FIELD_REQUIRED,
     RANGE(0, SCALAR_TEXT_MAX),
     .description = "Its value in the trial."},
};
static OBJECT_TYPE(assignment_type, "Value of a parameter", assignment_fields, .size = sizeof(struct sweep_assignment),
                   .map_key = "name");

static const struct field best_fields[] = {
    TEXT("trial", sweep_best, trial, NAME_MAX_LENGTH, "Name of the TrainingJob."),
    TEXT("objective", sweep_best, objective, DECIMAL_TEXT_MAX, "Its value of the metric, a decimal string."),
    {.name = "parameters",
     .kind = FIELD_LIST,
     MEMBER(sweep_best, parameters),
     COMPANION(sweep_best, parameter_count),
     RANGE(0, SWEEP_PARAMETERS_MAX),
     .type = &assignment_type,
     .description = "Its values of the parameters."},
};
static OBJECT_TYPE(best_type, "Best trial", best_fields);

static const struct field record_fields[] = {
    {.name = "state",
     .kind = FIELD_ENUM,
     MEMBER(trial_record, state),
     LONE,
     .words = sweep_trial_state_words,
     .description = "What became of the trial. Running: it has been started, or is about to be, and is not over. "
                    "Paused: it is not over, and its job is suspended until it is among the best of its rung. "
                    "Diverged: its loss became infinite or not a number."},
    TEXT("objective", trial_record, objective, DECIMAL_TEXT_MAX,
         "Its value of the metric, a decimal string: the one that objective.value names if it has succeeded, or the "
         "one for which it was stopped or paused."),
    NUMBER("step", trial_record, step,
           "If it was stopped early or is paused: the step after which the objective was measured."),
    TEXT("rungs", trial_record, rungs, TEXT_MAX_LENGTH,
         "With earlyStopping: its first value of the metric after the steps of each rung, with commas between them; "
         "empty where it has none."),
    NUMBER(
        "parent", trial_record, parent,
        "With PBT: the number of the trial from whose last checkpoint it goes on. It is written here before the trial "
        "is created."),
    TEXT("values", trial_record, values, TEXT_MAX_LENGTH,
         "With TPE and PBT: its values of the parameters, in their order, with commas between them; of values the "
         "position in "
         "the list, from 0; empty where a parameter is not tried, because of its when. They are drawn once and written "
         "here before the trial is created. With Random only those that were drawn again, because an earlier trial had "
         "the "
         "same. All other values of Random, and those of Grid, follow from the spec and the number; cox sweep get "
         "shows them."),
};
static OBJECT_TYPE(record_type, "Result of a trial", record_fields, .size = sizeof(struct trial_record));

static const struct field sweep_state_fields[] = {
    TEXT("pending", sweep_status, pending, INDICES_MAX,
         "Trials that are recorded to be created, and whose jobs the operator has not seen yet, such as 0-3,7. The job "
         "of a trial that is Running in the results and not listed here exists or was deleted."),
    TEXT("stopping", sweep_status, stopping, INDICES_MAX,
         "Trials that are to be stopped early or paused, such as 3,7, and whose jobs are not suspended yet."),
    TEXT("promoted", sweep_status, promoted, INDICES_MAX,
         "Trials that go on after a pause, such as 3,7, and whose jobs are not resumed yet."),
};
static OBJECT_TYPE(sweep_state_type, "Controller state of a sweep", sweep_state_fields);

static const struct field status_fields[] = {
    COUNTER("observedGeneration", sweep_status, observed_generation,
            "The generation of the spec that this status was made from."),
    {.name = "conditions",
     .kind = FIELD_LIST,
     SCHEMA_ONLY,
     RANGE(0, JOB_CONDITIONS_MAX),
     .type = &condition_type,
     .description = "State of the sweep: Complete, Failed, Suspended, Running, in this order, before those of others. "
                    "The first that is True is the sweep's state."},
    {.name = "trials",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct sweep_status),
     LONE,
     .type = &trials_type,
     .description = "Number of trials in each state, and in total."},
    {.name = "best",
     .kind = FIELD_OBJECT,
     MEMBER(sweep_status, best),
     LONE,
     .type = &best_type,
     .description = "The best trial so far; of equal ones the one with the lowest number."},
    {.name = "results",
     .kind = FIELD_LIST,
     MEMBER(sweep_status, results),
     COMPANION(sweep_status, result_count),
     RANGE(0, SWEEP_TRIALS_MAX),
     .type = &record_type,
     .description = "The trials that have been started, the first one being trial 0. They stay when the trials' jobs "
                    "are gone."},
    NUMBER("workerMilliseconds", sweep_status, worker_ms, "Worker time that the trials which are over have taken."),
    TIME("startTime", sweep_status, start_ms, "When the first trial was started."),
    TIME("completionTime", sweep_status, completion_ms, "When the sweep was complete or failed."),
    {.name = "controllerState",
     .kind = FIELD_OBJECT,
     .offset = 0,
     .size = sizeof(struct sweep_status),
     LONE,
     .type = &sweep_state_type,
     .description = "Data that the operator needs after a restart. It is not part of the API: clients should ignore "
                    "it, only the operator writes it, and its form may change in any version."},
};
OBJECT_TYPE(training_sweep_status_type, "TrainingSweep status", status_fields);
