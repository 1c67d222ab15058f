/* SPDX-License-Identifier: Apache-2.0
 *
 * Corrects times from the API after the machine's clock was set (clock_watch.h), so that durations
 * computed from them stay right. For each time of a status or a pod that was known when the clock
 * was set, the sum of all adjustments since is kept in the job's entry (job_entry.h) and added when
 * a plan reads the time. A time that is first seen later was taken by the new clock and is not
 * changed. The adjustments are in memory only: another operator process reads all times by its own
 * clock.
 */
#ifndef COXSWAIN_CONTROLLER_MOVED_TIMES_H
#define COXSWAIN_CONTROLLER_MOVED_TIMES_H

#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

/* The times in a status that a plan compares with the present. */
#define STATUS_TIMES(X)                                                                                                \
    X(STATUS_TIME_START, start_ms)                                                                                     \
    X(STATUS_TIME_COMPLETION, completion_ms)                                                                           \
    X(STATUS_TIME_CHIEF_FINISH, chief_finish_ms)                                                                       \
    X(STATUS_TIME_BACKOFF, backoff_until_ms)                                                                           \
    X(STATUS_TIME_BACKOFF_CHIEF, replicas[ROLE_CHIEF].backoff_until_ms)                                                \
    X(STATUS_TIME_BACKOFF_WORKER, replicas[ROLE_WORKER].backoff_until_ms)                                              \
    X(STATUS_TIME_BACKOFF_PS, replicas[ROLE_PS].backoff_until_ms)                                                      \
    X(STATUS_TIME_BACKOFF_EVALUATOR, replicas[ROLE_EVALUATOR].backoff_until_ms)                                        \
    X(STATUS_TIME_CHARGED, charged_ms)                                                                                 \
    X(STATUS_TIME_PROGRESSED, progressed_ms)                                                                           \
    X(STATUS_TIME_CERTIFICATE, certificate_from_ms)                                                                    \
    X(STATUS_TIME_RUNNING, conditions[CONDITION_RUNNING].last_transition_ms)                                           \
    X(STATUS_TIME_RESTARTING, conditions[CONDITION_RESTARTING].last_transition_ms)                                     \
    X(STATUS_TIME_SUSPENDED, conditions[CONDITION_SUSPENDED].last_transition_ms)
#define X(name, field) name,
enum status_time { STATUS_TIMES(X) STATUS_TIME_COUNT };
#undef X

#define POD_TIMES(X) X(created_ms) X(startable_ms) X(started_ms) X(finished_ms) X(deletion_ms)
#define X(field) POD_TIME_##field,
enum pod_time { POD_TIMES(X) POD_TIME_COUNT };
#undef X

/* Returns the time of replicas[role].backoff_until_ms. */
enum status_time status_time_of_back_off(enum role role);
/* Returns a time of the status, uncorrected; FIELD_UNSET: it has none. */
int64_t status_time_of(const struct job_status *status, enum status_time time);

/* Zeroed: the clock was not set. */
struct status_moves {
    int64_t known_ms[STATUS_TIME_COUNT], by_ms[STATUS_TIME_COUNT];
};
void status_moves_clock_set(struct status_moves *moves, const struct job_status *status, int64_t by_ms);
/* Returns by how much to shift a time of the status; 0 if it was first seen after the clock was
 * set. `moves` NULL: the clock was not set. */
int64_t status_moves_by(const struct status_moves *moves, const struct job_status *status, enum status_time time);

struct pod_moves {
    int64_t by_ms[POD_TIME_COUNT];
};
void pod_moves_clock_set(struct pod_moves *moves, const struct pod_view *pod, int64_t by_ms);
/* Called when the pod changes: times that have changed were taken by the new clock and are no
 * longer shifted. */
void pod_moves_change(struct pod_moves *moves, const struct pod_view *old, const struct pod_view *pod);
/* Shifts the times in the view to the present clock. */
void pod_moves_apply(const struct pod_moves *moves, struct pod_view *pod);

#endif
