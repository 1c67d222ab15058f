/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what to do about one sweep: a pure function of the sweep, its trials (the TrainingJobs
 * that it creates) as the cache shows them, and what the operator has learned from answers of the
 * API server. The controller of sweeps calls plan_sweep at every reconcile and executes the result
 * (sweep_execute.h). plan_sweep does no I/O, reads no clock and keeps no state.
 *
 * The durable protocol: the status is written first, with a resourceVersion precondition. It has a
 * result for each trial that has been started (a trial's name follows from its number), and says
 * which of them are pending: recorded for creation, their jobs not yet observed. Only a later plan that sees this
 * status creates the pending trials. So whenever the operator is killed, its successor finds in the
 * API what was decided:
 *   pending, there is no such job -> create it; if it exists after all, the create changes nothing
 *   pending, the job exists       -> it is no longer pending
 *   the result is not Running     -> nothing is done about it, whether its job is still there or not
 *   Running, there is no such job -> a read confirms that, as the cache may be outdated; then it was deleted, and has failed
 * If a pending trial is created and then deleted before a status write has recorded that it exists,
 * the operator knows that from memory only. If the operator is killed at that moment, its successor
 * creates the trial a second time.
 *
 * With early stopping, a trial's value at a rung and the decision about it are in one status write:
 * the trial is listed as stopping. Only a later plan that sees this suspends the trial's job, and one
 * that sees that the job is suspended and has no pods counts the trial as Stopped and starts
 * another. A trial that ends before that counts as it ended. What a person does with the job of a trial that is
 * Stopped changes nothing.
 *
 * With earlyStopping.action Pause such a trial becomes Paused instead, and may go on later (promotion.h): the status write that says so
 * makes it Running again and lists it as promoted. Only a later plan that sees this resumes its job. A job that a person resumes while
 * its trial is Paused counts only once it has ended. If fewer than `parallelism` trials run, one that may go on is resumed, otherwise a new
 * one is created.
 *
 * With TPE and PBT the values of a trial depend on the results that were known when it became
 * pending. They are drawn once, and the same status write records them, with PBT also the trial that
 * it goes on from (population.h).
 *
 * Suspending follows the same protocol: the status says that trials are being suspended before any
 * trial is, and that the sweep is suspended once all trials that run are suspended. When
 * the sweep is resumed, suspended trials are resumed until the status says that the sweep was
 * resumed. A trial that a person has suspended is resumed only if the sweep was suspended and
 * resumed meanwhile.
 *
 * A sweep that has ended at a limit (maxTrials, maxFailedTrials, budget) goes on if the limit is raised: one status write takes back the
 * condition Complete or Failed, and only a later plan that sees this starts or resumes trials. Trials that the end has suspended are
 * resumed like those of a sweep that was suspended. This is decided once for each generation of the spec, and recorded in
 * status.observedGeneration.
 */
#ifndef COXSWAIN_CONTROLLER_SWEEP_PLAN_H
#define COXSWAIN_CONTROLLER_SWEEP_PLAN_H

#include "common/job/training_sweep.h"
#include "operator/controller/sweep/trial_view.h"

/* Notes about a trial that the cache does not show, from answers of the API server. Kept in memory for each sweep. */
enum trial_note_kind {
    TRIAL_NOTE_SEEN,    /* it has existed: do not create it, even if it is pending */
    TRIAL_NOTE_ABSENT,  /* a read has found no such job */
    TRIAL_NOTE_REFUSED, /* the API server finds the job invalid */
};

struct trial_note {
    int64_t trial;
    enum trial_note_kind kind;
    char *message; /* REFUSED */
};

struct sweep_input {
    const struct training_sweep *sweep;
    const char *invalid;                    /* what is wrong with the spec; NULL: nothing */
    const struct trial_view *const *trials; /* the jobs whose controller is the sweep */
    size_t trial_count;
    const struct trial_note *notes;
    size_t note_count;
    const char *obstacle; /* why a trial could not be created (it is tried again); NULL: none failed */
    int64_t now_ms;
};

enum sweep_action_type {
    SWEEP_CREATE_TRIAL,
    SWEEP_LOOK_FOR_TRIAL, /* reads whether the job exists */
    SWEEP_SUSPEND_TRIAL,
    SWEEP_RESUME_TRIAL,
    SWEEP_DELETE, /* the sweep itself, with its trials */
};

struct sweep_action {
    enum sweep_action_type type;
    int64_t trial; /* not of SWEEP_DELETE */
};

struct sweep_event {
    bool warning;
    const char *reason, *action, *note;
};

/* What the operator must do about a sweep. Zero it before plan_sweep; release it with sweep_plan_release. */
struct sweep_plan {
    /* Executed before this plan's status write: they only carry out what the status already records. */
    struct sweep_action *actions;
    size_t action_count;
    struct sweep_event *events; /* emitted after the status write; not if it fails */
    size_t event_count;
    struct sweep_status status; /* the wanted status; strings are borrowed from the sweep or lie in the arena */
    bool write_status;
    int64_t again_ms; /* plan again at this time (input.now_ms), even if nothing changes; 0: no need */

    size_t action_capacity, event_capacity;
    struct arena arena;
};

void plan_sweep(const struct sweep_input *input, struct sweep_plan *ret_plan);
void sweep_plan_release(struct sweep_plan *plan);

#endif
