/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the progress that scripts of PyTorch, TensorFlow and JAX send over HTTPS (jobs with progress.push), for main.c. Only the leader,
 * the one operator that acts, runs it; the others are standbys.
 *
 * A Secret in the operator's namespace holds an authority (a certificate and its key) and the key of the jobs' tokens (progress_push.h).
 * The first operator creates it; each later one reads it, so that the pods' files stay valid when another operator becomes the leader. The
 * operator signs a new certificate for itself whenever it starts to serve, and each PUSH_REFRESH_MS. The authority's certificate is renewed
 * years before it expires, with the same key, so that pods with the earlier one still trust the operator.
 *
 * With a Service, pods reach the operator through it. The Service has no selector: the leader writes its own address into the Service's
 * EndpointSlice, so that reports never reach a standby. Without a Service the URL has the address that the server listens on.
 *
 * If the Secret is wrong or missing, the operator logs why it takes no reports, tries again each minute, and works as usual otherwise. If
 * it serves already, it continues with the keys that it has.
 *
 * Answers are JSON with one sentence: {"message":"…"}. A request without the token of its job is refused before its body is looked at.
 */
#ifndef COXSWAIN_CONTROLLER_PUSH_SERVER_H
#define COXSWAIN_CONTROLLER_PUSH_SERVER_H

#include "operator/controller/controller.h"

#define PUSH_SECRET_NAME "coxswain-progress" /* without a Service; else it has the Service's name */
#define PUSH_REFRESH_MS ((int64_t)7 * 24 * 3600 * 1000)
#define PUSH_RETRY_MS 2000

struct push_server;

/* Strings are borrowed. */
struct push_server_options {
    const char *address;
    uint16_t port;          /* 0: any free one */
    const char *name_space; /* of the Secret and the Service */
    const char *service;    /* NULL: none */
    const char *pod_ip;     /* of this operator; needed with a Service */
    /* Called once, when the endpoint is known: it takes reports, or says why it does not. */
    void (*ready)(void *context);
    int64_t refresh_ms; /* 0: PUSH_REFRESH_MS */
    int64_t retry_ms;   /* how soon a request that failed is sent again; 0: PUSH_RETRY_MS */
    /* Called if the port cannot be bound. */
    void (*failed)(void *context, const struct error *error);
    void *context;
};

struct push_server *push_server_start(struct kube_client *client, const struct push_server_options *options);
/* Sets the controller that handles reports. While there is none (NULL), reports are answered with 503. */
void push_server_set_controller(struct push_server *server, struct controller *controller);
/* Stops serving. Call it before the client is freed, and push_server_free after that. */
void push_server_stop(struct push_server *server);
void push_server_free(struct push_server *server);

/* Valid as long as the server; its members may change on the loop. */
const struct push_endpoint *push_server_endpoint(const struct push_server *server);

#endif
