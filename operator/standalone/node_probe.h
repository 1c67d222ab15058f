/* SPDX-License-Identifier: Apache-2.0
 *
 * Readiness, liveness and startup probes: HTTP GET and TCP connect to the pod's
 * address. A probe tells its verdict when it changes, by the thresholds of the
 * pod's API. Until its first success it tries every PROBE_EAGER_MS instead of
 * every period, so that a pod is ready within milliseconds of answering.
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

/* `spec` is the API's Probe; nothing of it is kept. ERROR_UNSUPPORTED for exec, grpc and HTTPS, which this node does not
 * have. `eager` shortens the first period (not for liveness). */
int probe_start(const struct probe_target *target, const struct json *spec, bool eager, probe_verdict *verdict,
                void *context, struct probe **ret_probe, struct error *error);
/* Not from within its own verdict. */
void probe_free(struct probe *probe);

#endif
