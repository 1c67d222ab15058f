/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how long the operator waits before it replaces a pod that has ended or is lost (an event;
 * pods that end together, found by one plan, are one event). restart_wait.c uses the longer one of the
 * two delays below, and back_off.h stores when the wait ends.
 *
 * The delay after any event: none the first time, then one second, doubled with each further event,
 * minus ten times the time for which the pod had run. So a node that fails once a day causes no
 * delay, and a pod that fails at once does not keep the cluster busy.
 *
 * The delay after a failure of a user's own script is longer, as in a Kubernetes Job: none the
 * first time, then ten seconds, doubled with each further failure. The reason is that such a pod is
 * ready as soon as its process runs, so a script that crashes ten seconds after each start would
 * seem to have worked. The project's own worker is ready only once it has joined the others.
 *
 * In both cases an event after RESTART_DELAY_RECOVERED_MS of work counts as the first one, no delay
 * is longer than RESTART_DELAY_CEILING_MS, and then up to a tenth of jitter is added.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_DELAY_H
#define COXSWAIN_CONTROLLER_RESTART_DELAY_H

#include <stdint.h>

#define RESTART_DELAY_BASE_MS 1000
#define RESTART_DELAY_FAILURE_MS 10000
#define RESTART_DELAY_RECOVERED_MS (10 * 60 * 1000)
#define RESTART_DELAY_CEILING_MS (6 * 60 * 1000)

/* Returns the delay after any event. `events`: their number since the job last recovered, including
 * this one. `ran_ms`: how long the pod had run with its crew. `seed` determines the jitter. */
int64_t restart_delay_ms(int64_t events, int64_t ran_ms, uint64_t seed);
/* Returns the delay after a failure of a user's own script. `failures`: their number since the job last
 * recovered, including this one. */
int64_t restart_delay_failure_ms(int64_t failures, int64_t ran_ms, uint64_t seed);

/* Returns a seed for the jitter: different for each job and event, the same after a restart of the
 * operator. */
uint64_t restart_delay_seed(const char *job_uid, int64_t incarnation);

#endif
