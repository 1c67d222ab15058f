/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's inside, for the files that make it: client.c (what can be asked), client_call.c (what becomes of a call),
 * client_credentials.c. Only they include it.
 */
#ifndef COXSWAIN_KUBE_CLIENT_PARTS_H
#define COXSWAIN_KUBE_CLIENT_PARTS_H

#include "operator/kube/call_queue.h"
#include "operator/kube/client.h"
#include "operator/kube/kubeconfig.h"
#include "operator/kube/request_metrics.h"

#define NS_PER_MS 1000000
#define ANSWER_MAX (20 * 1024 * 1024)

enum verb { VERB_GET, VERB_LIST, VERB_CREATE, VERB_REPLACE, VERB_PATCH, VERB_APPLY, VERB_DELETE, VERB_STREAM };

struct kube_verb {
    const char *name; /* as RBAC and the counters call it */
    const char *method;
    bool mutates;
    bool repeatable; /* doing it twice leaves what doing it once leaves */
    const char *content_type;
};
extern const struct kube_verb kube_verbs[];

struct kube_client {
    struct event_loop *loop;
    struct http_client *http;
    struct kube_config config;
    const char **headers[2]; /* of every request, for whole objects and for metadata only; a NULL ends them */
    int64_t credentials_read_ns;
    int64_t plugin_run_ns;       /* when it was last tried */
    int64_t plugin_rest_ms;      /* how long it rests from then on, at least; 0: as ever */
    int64_t expires_ms;          /* what it gave, Unix time; INT64_MAX: never, as far as is known */
    struct error plugin_failure; /* why it gave nothing then; ERROR_NONE: it did */
    struct kube_client_options options;
    struct kube_call *calls; /* all that have not ended */
    size_t held_bytes;
    size_t pending;
    struct call_queue queues[KUBE_PRIORITY_COUNT]; /* by priority; urgent ones never wait */
    unsigned in_flight, in_flight_of[KUBE_PRIORITY_COUNT];
    kube_write_gate *gate;
    void *gate_context;
    struct request_metrics metrics;
};

struct kube_call {
    struct call_ticket ticket; /* first member: the queue hands it back */
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
    bool counts; /* against max_in_flight, now */
    bool credentials_renewed;
    int tries, tries_max;
    int64_t timeout_ms;  /* that its deadline will be set by when it first goes out; 0: none */
    int64_t deadline_ns; /* INT64_MAX: none yet */
    int64_t idle_timeout_ms;
    int64_t sent_ns;
    struct http_transfer *transfer;
    struct event_timer *timer; /* back-off, or a failure to be told */
    struct event_timer *deadline;
    struct error *failure; /* NULL: none so far; most calls never need its kilobyte */
    http_data *on_data;
    kube_answered *answered;
    void *context;
};

/* Begins a call; the rest of it is filled in before it is sent or queued. */
struct kube_call *kube_call_new(struct kube_client *client, enum verb verb, const char *resource,
                                kube_answered *answered, void *context);
/* Where what is wrong with it is kept: a call that has a failure before it is started ends with that. */
struct error *kube_call_failure(struct kube_call *call);
/* At once, past the queue. */
void kube_call_send(struct kube_call *call);
/* In its turn. */
void kube_call_queue(struct kube_call *call);
/* Ends it with its failure, but not before the caller has got it: callbacks never come from within what starts a call. */
void kube_call_fail_later(struct kube_call *call);

/* Puts into the config what its plugin gives, if it has one; `timeout_ms` and `cancel` as exec_plugin_run has them. */
int kube_plugin_ask(struct kube_config *config, int64_t timeout_ms, int cancel, int64_t *ret_expires_ms,
                    struct error *error);
/* ERROR_UNSUPPORTED where it has one. */
int kube_plugin_refuse(const struct kube_config *config, struct error *error);
/* Reads token and authority anew, where they lie in files; runs the plugin. */
void kube_client_renew_credentials(struct kube_client *client);
/* That to show now; NULL: none. */
const char *kube_client_token(struct kube_client *client);

#endif
