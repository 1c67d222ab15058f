/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a TrainingJob what the plan of a sweep needs to know of its trial: to which sweep it
 * belongs, whether it is over or suspended, and its metrics. The informer's cache keeps this view
 * and not the JSON. The jobs in the cache are found by a label that anybody can set; which sweep a
 * job belongs to is decided by its owner reference.
 */
#ifndef COXSWAIN_CONTROLLER_TRIAL_VIEW_H
#define COXSWAIN_CONTROLLER_TRIAL_VIEW_H

#include "common/job/training_job.h"

struct trial_view {
    const char *name;
    const char *sweep_uid, *sweep_name; /* the sweep that is its controller; "": none */
    bool succeeded, failed;
    bool diverged;             /* it has failed because its loss became infinite or not a number */
    bool suspend;              /* spec.suspend */
    bool suspended;            /* its state: it has no pods */
    const char *message;       /* of the condition Failed; "": it has not failed */
    int64_t step, total_steps; /* FIELD_UNSET: unknown */
    int64_t pause_step;        /* at which it waits for the sweep's decision; FIELD_UNSET: it does not */
    int64_t start_ms;          /* FIELD_UNSET: not yet */
    int64_t end_ms;            /* when it was over, or since when it is suspended; FIELD_UNSET: it goes on */
    int64_t suspended_ms;      /* how long it was suspended, or without pods and operator (absence_ms), before */
    int64_t pods;              /* that the spec asks for, of all roles */
    struct progress_metric *metrics;
    unsigned metric_count;
    struct arena arena;
};

struct trial_view *trial_view_new(const struct json *object);
struct trial_view *trial_view_copy(const struct trial_view *trial);
void trial_view_free(struct trial_view *trial);

/* Returns whether the sweep must be planned because the trial has changed from `before` to `after`. Changes of its progress alone do not
 * count; they matter only to a sweep with early stopping (trial_view_steps). */
bool trial_view_has_moved(const struct trial_view *before, const struct trial_view *after);

/* Returns the trial's last value of a metric as text; NULL: it reported none that is a finite number. */
const char *trial_view_metric(const struct trial_view *trial, const char *name);
/* Returns the step after which that value was measured; -1: there is no value, or the step is unknown. */
int64_t trial_view_steps(const struct trial_view *trial, const char *name);

#endif
