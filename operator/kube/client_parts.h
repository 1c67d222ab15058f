/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files that implement client.h, which sends requests to a Kubernetes API server: client.c (the public
 * functions), client_call.c (queueing, sending and finishing a call) and client_credentials.c. No other file includes it.
 */
#ifndef COXSWAIN_KUBE_CLIENT_PARTS_H
#define COXSWAIN_KUBE_CLIENT_PARTS_H

#include "operator/kube/call_queue.h"
#include "operator/kube/client.h"
#include "operator/kube/credentials.h"
#include "operator/kube/request_metrics.h"

#define NS_PER_MS 1000000
#define ANSWER_MAX (20 * 1024 * 1024)

enum verb { VERB_GET, VERB_LIST, VERB_CREATE, VERB_REPLACE, VERB_PATCH, VERB_APPLY, VERB_DELETE, VERB_STREAM };

struct kube_verb {
    const char *name; /* as in RBAC and in metrics */
    const char *method;
    bool mutates;
    bool repeatable; /* idempotent */
    const char *content_type;
};
extern const struct kube_verb kube_verbs[];

struct kube_client {
    struct event_loop *loop;
    struct http_client *http;
    struct kube_config config;
    const char **headers[2]; /* of every request, NULL-terminated; indexed by metadata_only */
    int64_t credentials_read_ns;
    int64_t plugin_run_ns;       /* when the credential plugin last ran */
    int64_t plugin_pause_ms;     /* shortest time until it runs again; 0: the default */
    int64_t expires_ms;          /* when its credentials expire, Unix time; INT64_MAX: unknown or never */
    struct error plugin_failure; /* why its last run failed; ERROR_NONE: it succeeded */
    struct kube_client_options options;
    struct kube_call *calls; /* all calls that have not ended */
    size_t held_bytes;
    size_t pending;
    struct call_queue queues[KUBE_PRIORITY_COUNT]; /* by priority; that of KUBE_URGENT stays empty */
    unsigned in_flight, in_flight_of[KUBE_PRIORITY_COUNT];
    kube_write_gate *gate;
    void *gate_context;
    struct request_metrics metrics;
};

struct kube_call {
    struct call_ticket ticket; /* first member, so that a ticket from the queue is the call */
    struct kube_client *client;
    struct kube_call *previous, *next;
    enum verb verb;
    const char *counted_verb;
    char *resource;
    char *url;
    char *flow;
    char *body;
    size_t body_length;
    enum kube_priority priority;
    bool metadata_only;
    bool counts; /* now counted in the client's in_flight */
    bool credentials_renewed;
    int tries, tries_max;
    int64_t timeout_ms;  /* sets deadline_ns when the call is first sent; 0: none */
    int64_t deadline_ns; /* INT64_MAX: none, or not sent yet */
    int64_t idle_timeout_ms;
    int64_t sent_ns;
    struct http_transfer *transfer;
    struct event_timer *timer; /* until the next try, or until a failure is reported */
    struct event_timer *deadline;
    struct error *failure; /* allocated on first failure, since it is a kilobyte; NULL: none */
    http_data *on_data;
    kube_answered *answered;
    void *context;
};

/* Allocates a call and links it to the client. The caller fills in the rest, then sends or queues it. */
struct kube_call *kube_call_new(struct kube_client *client, enum verb verb, const char *resource,
                                kube_answered *answered, void *context);
/* Returns the call's error, allocated on first use. A call that already failed is not sent. */
struct error *kube_call_failure(struct kube_call *call);
/* Sends the call now, without queueing. */
void kube_call_send(struct kube_call *call);
/* Queues the call; it is sent when its turn comes. */
void kube_call_queue(struct kube_call *call);
/* Ends the call with its failure from the loop's next turn, so that the callback never runs inside the function that
 * starts the call. */
void kube_call_fail_later(struct kube_call *call);

/* Runs the config's credential plugin, if it has one, and stores the credentials in the config. `timeout_ms` and
 * `cancel` as in exec_plugin_run. */
int kube_plugin_load(struct kube_config *config, int64_t timeout_ms, int cancel, int64_t *ret_expires_ms,
                     struct error *error);
/* Fails with ERROR_UNSUPPORTED when the config's user needs a credential plugin. */
int kube_plugin_reject(const struct kube_config *config, struct error *error);
/* Reads token and CA files again and runs the credential plugin, as far as the config has them. */
void kube_client_renew_credentials(struct kube_client *client);
/* Returns the bearer token to send, renewed first if it is due; NULL: none. */
const char *kube_client_token(struct kube_client *client);

#endif
