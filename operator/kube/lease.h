/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election with a coordination.k8s.io/v1 Lease, by the rules of client-go's
 * leaderelection, so that both can compete for the same one: who holds it renews
 * it every `retry_ms`; others take it over once it has not changed for its
 * duration, measured by their own monotonic clock (clocks of different machines
 * are never compared). A renewal that fails is tried again sooner: after a quarter of `retry_ms`.
 *
 * It stops all writes at once: while the lease is not held, the client's write gate is
 * closed, from the instant on at which another may have taken it by our own clock, which goes on
 * while the machine sleeps (`renew_deadline_ms` after the start of the last successful renewal, sooner than
 * `duration_ms`), even if the process was frozen meanwhile. Writes on the wire are then aborted before another byte of
 * them is sent.
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
    /* Once, after on_elected, when it was lost (not after lease_release). It may compete again: lease_free and start. */
    void (*on_lost)(void *context, const struct error *error);
    void (*on_trouble)(void *context, const struct error *error); /* for the log; tried again by itself. May be NULL */
    void *context;
};

/* Copies `options`, closes the client's write gate and competes from the loop's next turn on. The client must outlive
 * it. */
struct lease *lease_start(struct kube_client *client, const struct lease_options *options);
bool lease_held(const struct lease *lease);
/* The current holder's identity as last seen, "" when unknown. */
const char *lease_holder(const struct lease *lease);

/* Gives it up, so that the next one need not wait: the gate closes at once, writes on the wire are aborted (their
 * callbacks are called from within), then the holder is emptied on the server. `released` is called once from the loop,
 * also on failure (error not NULL). */
typedef void lease_released(void *context, const struct error *error);
void lease_release(struct lease *lease, lease_released *released, void *context);
/* Without a word to the server. The write gate stays closed. */
void lease_free(struct lease *lease);

#endif
