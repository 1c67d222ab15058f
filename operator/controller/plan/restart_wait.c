/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_wait.h"

#include "operator/controller/plan/restart_delay.h"

static int64_t since(int64_t count, int64_t recovered)
{
    return recovered == FIELD_UNSET ? count : count - recovered;
}

int64_t restart_wait_ms(struct planning *planning, int64_t worked_ms, bool failed)
{
    struct job_status *next = planning->next;
    uint64_t seed = restart_delay_seed(planning->job->uid, next->incarnation);
    int64_t failures = next->restarts.failures + next->restarts.out_of_memory;
    if (worked_ms >= RESTART_DELAY_RECOVERED_MS) {
        next->recovered_restarts = next->restart_count - 1;
        next->recovered_failures = failures - failed;
    }
    int64_t wait_ms = restart_delay_ms(since(next->restart_count, next->recovered_restarts), worked_ms, seed);
    if (planning->job->framework == FRAMEWORK_COXSWAIN || !failed)
        return wait_ms;
    int64_t failure_ms = restart_delay_failure_ms(since(failures, next->recovered_failures), worked_ms, seed);
    return failure_ms > wait_ms ? failure_ms : wait_ms;
}
