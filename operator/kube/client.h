/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends requests to one Kubernetes API server, asynchronously, on an event loop. Each call
 * ends in exactly one callback. The loop calls it, never the function that started the call;
 * only kube_call_cancel and kube_client_free call it before they return.
 *
 * What the client does for its callers:
 *  - Errors: an answer that is not 2xx becomes an `error` with the server's message. Its kind
 *    comes from metav1.Status (see status.h).
 *  - Retries: 429, and 503 with Retry-After, are retried after the time that the server asks
 *    for. Other 5xx, timeouts of one try and broken connections are retried for every verb but
 *    create, with jittered exponential backoff. Retries end when `timeout_ms` has passed or
 *    KUBE_TRIES_MAX tries were made. If the answer to a replace or patch with a resourceVersion
 *    is lost, its retry may end in ERROR_CONFLICT although the write succeeded: read the object.
 *  - Credentials: token and CA files are read again every minute. They are also read again after
 *    a 401 or when the server's certificate is not trusted; the request is then repeated once. A
 *    credential plugin runs again when its credentials have expired and after a 401, at most
 *    every five seconds; while it fails, the interval doubles up to five minutes. A signal that
 *    the loop waits for interrupts the plugin. If the plugin failed, the error of a 401 says why.
 *  - Fairness: at most `max_in_flight` requests are on the wire. The others wait, and flows (jobs,
 *    for example) are served in turn. KUBE_HIGH goes first and KUBE_LOW last, but each priority
 *    may always use an eighth of `max_in_flight` while it has requests waiting.
 *  - Leadership: while the write gate is closed, mutating requests are not sent and end with
 *    ERROR_CANCELLED.
 */
#ifndef COXSWAIN_KUBE_CLIENT_H
#define COXSWAIN_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/event_loop.h"
#include "common/http_client.h"
#include "common/json.h"
#include "operator/kube/credentials.h"
#include "operator/kube/resource_path.h"

struct kube_client;
struct kube_call; /* a request in progress; freed after its callback has returned */

#define KUBE_TRIES_MAX 6
#define KUBE_TIMEOUT_MS 30000 /* default for one request, retries included */

struct kube_client_options {
    const char *user_agent;   /* NULL: "coxswain" */
    unsigned max_in_flight;   /* 0: 16; each connection takes about 75 KB, and more hardly help */
    int64_t retry_base_ms;    /* first backoff, doubled with each try; 0: 200 */
    int64_t retry_ceiling_ms; /* longest backoff; 0: 10000 */
    int64_t token_refresh_ms; /* how often credential files are read again; 0: 60000 */
    /* Run the kubeconfig's credential plugin, which blocks the loop for at most a minute. If false, kube_client_new
     * refuses a user who needs a plugin. */
    bool exec_plugins;
    /* A refused connection ends a call at once if the server has never answered, so that the user of a command is told soon. If false, the
     * call is retried, as after other broken connections. */
    bool fail_refused;
    bool http2; /* one multiplexed connection instead of a pool of HTTP/1.1 connections */
};

/* Creates a client. `config` is copied; `options` may be NULL. Runs the credential plugin if there is one, so it fails
 * when the plugin does. Sends nothing yet. */
int kube_client_new(struct event_loop *loop, const struct kube_config *config,
                    const struct kube_client_options *options, struct kube_client **ret_client, struct error *error);
/* Ends every call with ERROR_CANCELLED and frees the client. */
void kube_client_free(struct kube_client *client);
struct event_loop *kube_client_loop(const struct kube_client *client);
/* Returns whether the server has never answered, and has refused a connection. */
bool kube_client_is_refused(const struct kube_client *client);
/* Returns how many requests wait for their turn. */
size_t kube_client_waiting(const struct kube_client *client);
/* Returns the size in bytes of the bodies of all requests, waiting and on the wire. */
size_t kube_client_held_bytes(const struct kube_client *client);

/* The outcome of a call; valid during its callback only. */
struct kube_answer {
    int status;                /* HTTP status; 0 when no answer came */
    const char *reason;        /* metav1.Status.reason, "" when none */
    const struct json *object; /* the body of a 2xx answer, or the Status; NULL without a body */
    int64_t retry_after_ms;    /* -1 when the server did not say */
    const struct error *error; /* NULL: the request succeeded */
};
typedef void kube_answered(void *context, const struct kube_answer *answer);

enum kube_priority {
    KUBE_NORMAL,
    KUBE_HIGH,   /* requests that others depend on, or that are few: served before the rest */
    KUBE_LOW,    /* requests whose answer nothing waits for (events, numbers in a status): served after the rest */
    KUBE_URGENT, /* only for the lease: not queued, and not subject to the write gate */
};
#define KUBE_PRIORITY_COUNT (KUBE_URGENT + 1)

/* Options of every request. Zero is a good default for each field but `answered`. */
struct kube_call_options {
    const char *flow; /* the queue that the request waits in (a job's key); NULL: its namespace */
    int64_t
        timeout_ms; /* from the first send, retries included; time in the queue does not count; 0: KUBE_TIMEOUT_MS */
    int tries_max;  /* 0: KUBE_TRIES_MAX; 1: no retries */
    enum kube_priority priority;
    bool dry_run;       /* create only: the server validates the object and stores nothing */
    bool strict;        /* create and patch only: the server refuses unknown fields instead of dropping them */
    int64_t list_limit; /* get of a collection only: at most so many objects are asked for; 0: all */
    bool metadata_only; /* ask for the metadata of the answer's object only, which costs the server less */
    kube_answered *answered;
    void *context;
};

/* All strings and documents are copied. */
struct kube_call *kube_client_get(struct kube_client *client, const struct resource_path *path,
                                  const struct kube_call_options *options);
/* Creates `object`, which holds its own name; `path->name` is NULL. ERROR_ALREADY_EXISTS when the name is taken. */
struct kube_call *kube_client_create(struct kube_client *client, const struct resource_path *path,
                                     const struct json *object, const struct kube_call_options *options);
/* Replaces the object. If `object` has a metadata.resourceVersion and the stored one differs: ERROR_CONFLICT. */
struct kube_call *kube_client_replace(struct kube_client *client, const struct resource_path *path,
                                      const struct json *object, const struct kube_call_options *options);
/* Applies a JSON merge patch (RFC 7386). If `patch` has a metadata.resourceVersion and the stored one differs:
 * ERROR_CONFLICT. */
struct kube_call *kube_client_patch(struct kube_client *client, const struct resource_path *path,
                                    const struct json *patch, const struct kube_call_options *options);

/* Server-side apply: `config` holds every field that `manager` owns. Conflicting fields of other managers are taken
 * over (force). */
struct kube_call *kube_client_apply(struct kube_client *client, const struct resource_path *path,
                                    const struct json *config, const char *manager,
                                    const struct kube_call_options *options);

struct kube_delete_options {
    const char *uid;              /* NULL: no precondition */
    const char *resource_version; /* NULL: no precondition */
    const char *propagation;      /* "Background", "Foreground", "Orphan"; NULL: the resource's default */
    int64_t grace_seconds;        /* -1: the object's own */
    bool dry_run;                 /* the server checks the request and deletes nothing */
};
/* Deletes the object. ERROR_CONFLICT when a precondition does not hold, ERROR_NOT_FOUND when there is no such object. */
struct kube_call *kube_client_delete(struct kube_client *client, const struct resource_path *path,
                                     const struct kube_delete_options *what, const struct kube_call_options *options);

/* A GET whose body is passed on as it arrives: logs, lists, watches. It is not queued and does not count against
 * max_in_flight. It is never retried, except once with new credentials after a 401. `answered` is called once at the
 * end; on success its `object` is NULL. */
struct kube_stream_options {
    const char *path_and_query; /* as resource_path_append and resource_path_append_query write it */
    const char *verb;           /* metrics label: "watch", "list"; NULL: "get" */
    const char *resource;       /* metrics label; NULL: "" */
    int64_t timeout_ms;         /* of the whole stream; 0: none */
    int64_t idle_timeout_ms;    /* ends the stream (ERROR_TIMEOUT) when nothing arrives for this long; 0: never */
    http_data *on_data;         /* called with `context` */
    kube_answered *answered;
    void *context;
};
struct kube_call *kube_client_stream(struct kube_client *client, const struct kube_stream_options *options);

/* Cancels a call: its callback is called with ERROR_CANCELLED before this returns. The server may or may not have
 * carried out the request. */
void kube_call_cancel(struct kube_call *call);

/* Sets the write gate. The client calls `is_open` immediately before each try of a mutating request; if it returns
 * false, the request ends with ERROR_CANCELLED. NULL: always open. */
typedef bool kube_write_gate(void *context);
void kube_client_set_write_gate(struct kube_client *client, kube_write_gate *is_open, void *context);
/* Ends all mutating requests, waiting or on the wire, with ERROR_CANCELLED. KUBE_URGENT requests go on. */
void kube_client_abort_writes(struct kube_client *client);

/* Appends metrics in Prometheus' text format: coxswain_kube_requests_total{verb,resource,code},
 * coxswain_kube_request_duration_seconds{verb}, coxswain_kube_retries_total, coxswain_kube_requests_pending (streams not
 * counted). */
int kube_client_write_metrics(const struct kube_client *client, struct buffer *out, struct error *error);

#endif
