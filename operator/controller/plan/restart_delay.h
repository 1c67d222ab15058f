/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a crew waits before a pod is replaced: nothing at the first event, then
 * a second, doubled at each further one, plus up to a tenth of jitter. A pod that
 * worked well before is let off: ten times the time it ran is taken off the wait.
 * So a node that vanishes once a day costs nothing, and a pod that fails at once
 * does not keep the cluster busy.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_DELAY_H
#define COXSWAIN_CONTROLLER_RESTART_DELAY_H

#include <stdint.h>

#define RESTART_DELAY_BASE_MS 1000
#define RESTART_DELAY_CEILING_MS (5 * 60 * 1000)

/* `events`: how many there were, this one included. `ran_ms`: how long the pod had, and the crew with it. `seed` makes the jitter. */
int64_t restart_delay_ms(int64_t events, int64_t ran_ms, uint64_t seed);

/* A seed from the job and the event: the same after a restart, another for each job. */
uint64_t restart_delay_seed(const char *job_uid, int64_t incarnation);

#endif
