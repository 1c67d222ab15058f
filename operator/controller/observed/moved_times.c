/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/moved_times.h"

int64_t status_time_of(const struct job_status *status, enum status_time time)
{
    const int64_t times[] = {
#define X(name, field) [name] = status->field,
        STATUS_TIMES(X)
#undef X
    };
    return times[time];
}

enum status_time status_time_of_back_off(enum role role)
{
    static const enum status_time times[ROLE_COUNT] = {[ROLE_CHIEF] = STATUS_TIME_BACKOFF_CHIEF,
                                                       [ROLE_WORKER] = STATUS_TIME_BACKOFF_WORKER,
                                                       [ROLE_PS] = STATUS_TIME_BACKOFF_PS,
                                                       [ROLE_EVALUATOR] = STATUS_TIME_BACKOFF_EVALUATOR};
    return times[role];
}

void status_moves_clock_set(struct status_moves *moves, const struct job_status *status, int64_t by_ms)
{
    for (unsigned i = 0; i < STATUS_TIME_COUNT; i++) {
        int64_t before_ms = status_moves_by(moves, status, (enum status_time)i);
        moves->known_ms[i] = status_time_of(status, (enum status_time)i);
        moves->by_ms[i] = before_ms + by_ms;
    }
}

int64_t status_moves_by(const struct status_moves *moves, const struct job_status *status, enum status_time time)
{
    int64_t ms = status_time_of(status, time);
    return moves && ms != FIELD_UNSET && ms == moves->known_ms[time] ? moves->by_ms[time] : 0;
}

static void times_of(struct pod_view *pod, int64_t *ret_times[POD_TIME_COUNT])
{
#define X(field) ret_times[POD_TIME_##field] = &pod->field;
    POD_TIMES(X)
#undef X
}

void pod_moves_clock_set(struct pod_moves *moves, const struct pod_view *pod, int64_t by_ms)
{
    struct pod_view view = *pod;
    int64_t *times[POD_TIME_COUNT];
    times_of(&view, times);
    for (unsigned i = 0; i < POD_TIME_COUNT; i++)
        if (*times[i] != FIELD_UNSET)
            moves->by_ms[i] += by_ms;
}

void pod_moves_change(struct pod_moves *moves, const struct pod_view *old, const struct pod_view *pod)
{
    struct pod_view before = *old, after = *pod;
    int64_t *old_times[POD_TIME_COUNT], *times[POD_TIME_COUNT];
    times_of(&before, old_times);
    times_of(&after, times);
    for (unsigned i = 0; i < POD_TIME_COUNT; i++)
        if (*times[i] != *old_times[i])
            moves->by_ms[i] = 0;
}

void pod_moves_apply(const struct pod_moves *moves, struct pod_view *pod)
{
    int64_t *times[POD_TIME_COUNT];
    times_of(pod, times);
    for (unsigned i = 0; i < POD_TIME_COUNT; i++)
        if (*times[i] != FIELD_UNSET)
            *times[i] += moves->by_ms[i];
}
