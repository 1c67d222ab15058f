/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the Kubernetes API of the embedded control plane (coxswain-standalone) over HTTPS on the loopback interface, from the objects of
 * the registry (registry.h). The server runs on the caller's event loop. Every request needs the bearer token, except /healthz, /livez,
 * /readyz and /version.
 */
#ifndef COXSWAIN_STANDALONE_API_SERVER_H
#define COXSWAIN_STANDALONE_API_SERVER_H

#include "common/event_loop.h"
#include "operator/standalone/pod_log.h"
#include "operator/standalone/registry.h"

struct api_server;

struct api_server_options {
    struct event_loop *loop;
    struct registry *registry;
    uint16_t port; /* 0: any free port */
    const char *cert_pem, *key_pem;
    const char *token;
    pod_log_hook *pod_log; /* NULL: pod logs are not available */
    void *pod_log_context;
};

/* Listens and serves on the loop. Copies all strings. Fails when the port is taken or the
 * certificate is invalid. */
int api_server_start(const struct api_server_options *options, struct api_server **ret_server, struct error *error);
void api_server_free(struct api_server *server);
uint16_t api_server_port(const struct api_server *server);

#endif
