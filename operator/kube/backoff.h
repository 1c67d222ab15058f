/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how long the Kubernetes client and informers wait before they retry a request: exponential backoff with "equal jitter", so that
 * a thousand clients that failed together do not retry together. Leases draw the jitter of their renewals here, too.
 */
#ifndef COXSWAIN_KUBE_BACKOFF_H
#define COXSWAIN_KUBE_BACKOFF_H

#include <stdint.h>

/* Returns the delay before the next try, drawn from the upper half of [0, min(base * 2^attempt, ceiling)].
 * `attempt` is 0 after the first failure. */
int64_t backoff_delay_ms(int64_t base_ms, int64_t ceiling_ms, unsigned attempt);

/* Returns a number drawn uniformly from [low, high], both ends included. */
int64_t jitter_between(int64_t low, int64_t high);

#endif
