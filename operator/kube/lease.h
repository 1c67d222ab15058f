/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election with a coordination.k8s.io/v1 Lease. It follows the rules of client-go's
 * leaderelection, so that both can compete for the same lease: the holder renews it every
 * `retry_ms`; others take it over when it has not changed for its duration, measured by their own
 * monotonic clock (clocks of different machines are never compared). A failed renewal is retried
 * after a quarter of `retry_ms`.
 *
 * Only the holder writes: while the lease is not held, the client's write gate is closed. The gate
 * closes `renew_deadline_ms` after the start of the last successful renewal, which is before
 * another process can take the lease (`duration_ms`). The time is measured by a clock that also
 * counts while the machine sleeps, so the gate is closed even if the process was frozen. Writes on
 * the wire are then aborted before another byte of them is sent.
 */
#ifndef COXSWAIN_KUBE_LEASE_H
#define COXSWAIN_KUBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "operator/kube/client.h"

struct lease;

struct lease_options {
    const char *name_space;
    const char *name;
    const char *identity;      /* unique among the competitors: host name and something random */
    int64_t duration_ms;       /* 0: 15000 */
    int64_t renew_deadline_ms; /* 0: 10000 */
    int64_t retry_ms;          /* 0: 2000; jittered */
    void (*on_elected)(void *context);
    /* Once, after on_elected, when the lease was lost (not after lease_release). To compete again, call lease_free, then
     * lease_start. */
    void (*on_lost)(void *context, const struct error *error);
    void (*on_failure)(void *context, const struct error *error); /* for the log; retried by itself; may be NULL */
    void *context;
};

/* Closes the client's write gate and competes for the lease from the loop's next turn on. Copies `options`. The client
 * must outlive the lease. Until lease_free, the lease uses the loop's guard (event_loop_set_guard). */
struct lease *lease_start(struct kube_client *client, const struct lease_options *options);
bool lease_held(const struct lease *lease);
/* Returns the holder's identity as last read, "" when unknown. */
const char *lease_holder(const struct lease *lease);

/* Gives the lease up, so that the next holder need not wait: closes the gate, aborts writes on the wire (their callbacks
 * run before this returns), then clears the holder on the server. `released` is called once from the loop, also on
 * failure (error not NULL); call lease_free after that. */
typedef void lease_released(void *context, const struct error *error);
void lease_release(struct lease *lease, lease_released *released, void *context);
/* Frees the lease without telling the server. The write gate stays closed. */
void lease_free(struct lease *lease);

#endif
