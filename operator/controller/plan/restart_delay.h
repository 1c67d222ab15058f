/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a crew waits before a pod is replaced.
 *
 * After any event: nothing the first time, then a second, doubled at each further
 * event, less ten times the time for which the pod had worked. So a node that
 * vanishes once a day costs nothing, and a pod that fails at once does not keep the
 * cluster busy.
 *
 * A failure of a foreign script waits longer, as in a Kubernetes Job: nothing the
 * first time, then ten seconds, doubled at each further failure, unless the crew had
 * run for ten minutes. That a foreign pod is ready says only that its process runs:
 * a script that crashes ten seconds after each start has worked for no time at all.
 * Our own worker is ready once it has joined its crew.
 *
 * Up to a tenth of jitter is added to each wait.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_DELAY_H
#define COXSWAIN_CONTROLLER_RESTART_DELAY_H

#include <stdint.h>

#define RESTART_DELAY_BASE_MS 1000
#define RESTART_DELAY_FAILURE_MS 10000
#define RESTART_DELAY_RECOVERED_MS (10 * 60 * 1000)
#define RESTART_DELAY_CEILING_MS (6 * 60 * 1000)

/* `events`: how many there were, this one included. `ran_ms`: how long the pod had worked, and the crew with it. `seed` makes
 * the jitter. */
int64_t restart_delay_ms(int64_t events, int64_t ran_ms, uint64_t seed);
/* After a failure of a foreign script; `failures` include this one. */
int64_t restart_delay_failure_ms(int64_t failures, int64_t ran_ms, uint64_t seed);

/* A seed from the job and the event: the same after a restart, another for each job. */
uint64_t restart_delay_seed(const char *job_uid, int64_t incarnation);

#endif
