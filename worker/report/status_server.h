/* SPDX-License-Identifier: Apache-2.0
 *
 * What the world may ask a worker: GET /healthz (200 once it is up; 503 before),
 * /status (the status document) and /metrics (Prometheus text). The server runs
 * in a thread of its own, so that a frozen training loop can still be asked.
 */
#ifndef COXSWAIN_REPORT_STATUS_SERVER_H
#define COXSWAIN_REPORT_STATUS_SERVER_H

#include <stdint.h>

#include "common/contract/status_document.h"
#include "common/error.h"

struct status_server;

/* `address` NULL: all interfaces. `port` 0: any free one. */
int status_server_start(const char *address, uint16_t port, struct status_server **ret_server, struct error *error);
void status_server_free(struct status_server *server);

/* Publishes a new state of affairs; copied. From the first call on /healthz answers 200. */
void status_server_publish(struct status_server *server, const struct status_document *document);

#endif
