/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs readiness, liveness and startup probes of the pods on the embedded control plane's node: HTTP GET and TCP connect to the pod's
 * address. A probe reports its result when it changes, by successThreshold and failureThreshold. Until its first success a probe that the
 * caller starts as `eager` runs every PROBE_EAGER_MS instead of every period, so that a pod becomes ready within milliseconds of answering.
 */
#ifndef COXSWAIN_STANDALONE_NODE_PROBE_H
#define COXSWAIN_STANDALONE_NODE_PROBE_H

#include <stdbool.h>

#include "common/http_client.h"
#include "common/json.h"

#define PROBE_EAGER_MS 50

struct probe;
typedef void probe_verdict(void *context, bool passes);

struct probe_target {
    struct event_loop *loop;
    struct http_client *client;
    const struct json *container; /* for named ports */
    const char *address;
};

/* Starts the Probe `spec`, which is not kept. ERROR_UNSUPPORTED for exec, grpc and HTTPS probes, ERROR_INVALID for a wrong port or host.
 * What `target` points to, except for `container` and `address`, must outlive the probe.
 * `eager` shortens the period until the first success; not for liveness. */
int probe_start(const struct probe_target *target, const struct json *spec, bool eager, probe_verdict *verdict,
                void *context, struct probe **ret_probe, struct error *error);
/* Must not be called from the probe's own `verdict`. */
void probe_free(struct probe *probe);

#endif
