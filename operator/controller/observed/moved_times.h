/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the API that were known when the machine's clock was set (clock_watch.h),
 * and by how much that was since: moved along, they say how long something has
 * lasted. A time that is first seen later is the new clock's, and stays as it is.
 * In memory only: a successor reads all times by its own clock.
 */
#ifndef COXSWAIN_CONTROLLER_MOVED_TIMES_H
#define COXSWAIN_CONTROLLER_MOVED_TIMES_H

#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

/* What a plan compares with the time. */
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

/* Of the pods of that role that wait (replicas[role].backing_off). */
enum status_time status_time_of_back_off(enum role role);
/* FIELD_UNSET: it has none. */
int64_t status_time_of(const struct job_status *status, enum status_time time);

/* Zeroed: the clock was not set. */
struct status_moves {
    int64_t known_ms[STATUS_TIME_COUNT], by_ms[STATUS_TIME_COUNT];
};
void status_moves_clock_set(struct status_moves *moves, const struct job_status *status, int64_t by_ms);
/* `moves` NULL: the clock was not set. */
int64_t status_moves_by(const struct status_moves *moves, const struct job_status *status, enum status_time time);

struct pod_moves {
    int64_t by_ms[POD_TIME_COUNT];
};
void pod_moves_clock_set(struct pod_moves *moves, const struct pod_view *pod, int64_t by_ms);
/* The pod changed: times that did so are the new clock's. */
void pod_moves_change(struct pod_moves *moves, const struct pod_view *old, const struct pod_view *pod);
/* The pod's times, as the clock would have told them. */
void pod_moves_apply(const struct pod_moves *moves, struct pod_view *pod);

#endif
