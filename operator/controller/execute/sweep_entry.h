/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what the controller of sweeps remembers about one TrainingSweep between two reconciles, in
 * memory only: the timer of its next reconcile, the resourceVersions of the controller's newest
 * writes, which the caches may not show yet, notes about single trials, and why a trial (one
 * TrainingJob of the sweep) could not be created. When the operator restarts, all entries are lost,
 * which costs only time: the decisions themselves are in the sweep's status (sweep_plan.h).
 */
#ifndef COXSWAIN_CONTROLLER_SWEEP_ENTRY_H
#define COXSWAIN_CONTROLLER_SWEEP_ENTRY_H

#include "common/event_loop.h"
#include "operator/controller/sweep/sweep_plan.h"

struct sweep_entry {
    char *key; /* "namespace/name" */
    char *uid; /* of the sweep that the rest is about; NULL: none */
    void *controller;
    struct event_timer *timer; /* of the next reconcile; NULL: none is due */
    int64_t due_ms;            /* when, by the monotonic clock */
    int64_t planned_ms;        /* when the last plan was made, by the same clock; 0: never */
    bool executing;
    bool dirty;                        /* something changed while it was executing */
    uint64_t sweep_write, trial_write; /* own_write_note (job_entry.h) */
    struct trial_note *notes;
    size_t note_count;
    struct trial_view **ended; /* trials whose jobs were deleted after they had ended (ttlSecondsAfterFinished) */
    size_t ended_count;
    char *obstacle;    /* why the last create of a trial failed; NULL: none has failed */
    unsigned failures; /* executed plans that failed since the last one that succeeded */
};

struct sweep_entry *sweep_entry_new(const char *key, void *controller);
/* Cancels its timer, too. */
void sweep_entry_free(struct sweep_entry *entry);

/* Sets the sweep that the entry is about. If its UID differs from the one before, forgets all that was noted about that sweep. */
void sweep_entry_set_sweep(struct sweep_entry *entry, const char *uid);
/* Returns how many milliseconds the next plan must wait, from `now_ms` on. Each plan reads the results of all trials, and each status write
 * sends them. So the plans of a sweep with 10000 results are at least a second apart, those of a sweep with fewer results proportionally
 * less, and the load does not grow with the size of a sweep. */
int64_t sweep_entry_pace_ms(const struct sweep_entry *entry, int64_t results, int64_t now_ms);
/* Replaces what was noted of the trial. Copies the message. */
void sweep_entry_note(struct sweep_entry *entry, int64_t trial, enum trial_note_kind kind, const char *message);
/* Keeps a copy of a trial that had ended before its job was deleted, because the sweep's status may not have counted it yet. */
void sweep_entry_keep_ended(struct sweep_entry *entry, const struct trial_view *trial);
/* Frees the copies of the trials that the sweep's status counts. */
void sweep_entry_forget_counted(struct sweep_entry *entry, const struct training_sweep *sweep);
/* Sets the message why a trial could not be created, which is copied; NULL removes it. */
void sweep_entry_set_obstacle(struct sweep_entry *entry, const char *message);

#endif
