/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves a worker's health, status and metrics over HTTP: GET /healthz (200 once a status has been
 * published, 503 before), /healthz/live (503 if only a new process can help), /status (the status
 * document) and /metrics (Prometheus text). The server runs in its own thread, so that it answers
 * even if the training loop hangs.
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
    uint16_t port;       /* 0: any free port */
    /* Called for each request on the server's thread; both may be NULL. `complete` adds current
     * values to a copy of the status document. If `is_live` returns false, /healthz/live answers
     * 503 with the reason. */
    void (*complete)(struct status_document *document);
    bool (*is_live)(char *reason, size_t size);
};

int status_server_start(const struct status_server_options *options, struct status_server **ret_server,
                        struct error *error);
void status_server_free(struct status_server *server);

/* Publishes a new status document, which is copied. After the first call /healthz answers 200. */
void status_server_publish(struct status_server *server, const struct status_document *document);

#endif
