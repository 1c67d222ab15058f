/* SPDX-License-Identifier: Apache-2.0
 *
 * What others may ask a worker: GET /healthz (200 once it is up; 503 before),
 * /healthz/live (503 when only a new process can help), /status (the status document)
 * and /metrics (Prometheus text). The server runs in a thread of its own, so that a
 * frozen training loop can still be asked.
 */
#ifndef COXSWAIN_REPORT_STATUS_SERVER_H
#define COXSWAIN_REPORT_STATUS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/contract/status_document.h"
#include "common/error.h"

struct status_server;

struct status_server_options {
    const char *address; /* NULL: all interfaces */
    uint16_t port;       /* 0: any free one */
    /* Both may be NULL; on the server's thread, for each request. `complete` adds what is only known now to a copy of the document.
     * `is_live` false: /healthz/live answers 503 with the reason. */
    void (*complete)(struct status_document *document);
    bool (*is_live)(char *reason, size_t size);
};

int status_server_start(const struct status_server_options *options, struct status_server **ret_server,
                        struct error *error);
void status_server_free(struct status_server *server);

/* Publishes a new state of affairs; copied. From the first call on /healthz answers 200. */
void status_server_publish(struct status_server *server, const struct status_document *document);

#endif
