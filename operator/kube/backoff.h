/* SPDX-License-Identifier: Apache-2.0
 *
 * How long to wait before trying again: exponential with "equal jitter", so that a
 * thousand clients that failed together do not come back together.
 */
#ifndef COXSWAIN_KUBE_BACKOFF_H
#define COXSWAIN_KUBE_BACKOFF_H

#include <stdint.h>

/* Before try `attempt` + 1 (0: after the first failure): between half and all of min(base * 2^attempt, ceiling). */
int64_t backoff_delay_ms(int64_t base_ms, int64_t ceiling_ms, unsigned attempt);

/* Evenly distributed, both ends included. */
int64_t jitter_between(int64_t low, int64_t high);

#endif
