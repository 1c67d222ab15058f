/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to one API server, asynchronous, on an event loop. Each call ends in
 * exactly one callback, from the loop, never from within the function that
 * started it (except within kube_call_cancel and kube_client_free).
 *
 * What is done here so that callers need not:
 *  - an answer that is not 2xx becomes an `error` whose kind comes from metav1.Status
 *    (see status.h), with the server's own words;
 *  - 429, and 503 with Retry-After, are repeated after the time the server asks for; other
 *    5xx, time-outs of one try and broken connections are repeated for everything but create,
 *    with jittered exponential backoff, until `timeout_ms` has passed or KUBE_TRIES_MAX tries were made. A replace or
 *    patch with a resourceVersion whose answer was lost may therefore end in ERROR_CONFLICT although it was done:
 *    read again;
 *  - files with a token or with authorities are read again every minute, and once more on 401 or when the server's
 *    certificate is not trusted, after which the request is repeated once; likewise a credential plugin runs again when
 *    what it gave has expired, and on 401, at most every five seconds, after failures at longer intervals, up to five minutes.
 *    A signal that the loop waits for ends it; why it failed stands in the error of a 401;
 *  - at most `max_in_flight` requests are on the wire; the others wait, and flows (jobs, say) are
 *    served in turn, so that one with a thousand requests does not starve one with two. Those of KUBE_SOON go first, those
 *    of KUBE_LATE last; the others always keep an eighth of the wire, and have all that is left of it;
 *  - while the write gate is closed, mutating requests end with ERROR_CANCELLED and nothing is sent.
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
struct kube_call; /* one request under way; dead once its callback was called */

#define KUBE_TRIES_MAX 6
#define KUBE_TIMEOUT_MS 30000 /* a request's default, retries included */

struct kube_client_options {
    const char *user_agent;   /* NULL: "coxswain" */
    unsigned max_in_flight;   /* 0: 16; each connection keeps about 75 KB, and more are hardly faster */
    int64_t retry_base_ms;    /* first backoff, doubled at each try; 0: 200 */
    int64_t retry_ceiling_ms; /* longest backoff; 0: 10000 */
    int64_t token_refresh_ms; /* of the files that hold credentials; 0: 60000 */
    bool
        exec_plugins; /* run the kubeconfig's, which holds up the loop for a minute at most; else who has one is refused */
    bool http2;       /* one multiplexed connection instead of a pool of HTTP/1.1 ones */
};

/* `config` is copied, `options` may be NULL. */
int kube_client_new(struct event_loop *loop, const struct kube_config *config,
                    const struct kube_client_options *options, struct kube_client **ret_client, struct error *error);
/* Ends every call with ERROR_CANCELLED. */
void kube_client_free(struct kube_client *client);
struct event_loop *kube_client_loop(const struct kube_client *client);
/* How many requests wait for their turn. */
size_t kube_client_waiting(const struct kube_client *client);
/* The bytes that the bodies of all requests hold, those on the wire too. */
size_t kube_client_held_bytes(const struct kube_client *client);

/* Valid during the callback only. */
struct kube_answer {
    int status;                /* HTTP; 0 when no answer came */
    const char *reason;        /* metav1.Status.reason, "" when none */
    const struct json *object; /* the body of a 2xx answer, or the Status; NULL when there is none */
    int64_t retry_after_ms;    /* -1 when the server did not say */
    bool quota_exceeded;       /* refused because a ResourceQuota is used up (the error is ERROR_NO_SPACE) */
    const struct error *error; /* NULL: it was done */
};
typedef void kube_answered(void *context, const struct kube_answer *answer);

enum kube_priority {
    KUBE_NORMAL,
    KUBE_SOON,   /* others wait for this one, or it is one of few: ahead of the others, but for a share of the wire */
    KUBE_LATE,   /* nobody waits for it (events, numbers in a status): behind the others, but for a share of the wire */
    KUBE_URGENT, /* ahead of the queue and past the write gate: the lease itself, nothing else */
};
#define KUBE_PRIORITY_COUNT (KUBE_URGENT + 1)

/* What all requests have in common; zero is a good default for every field but `answered`. */
struct kube_call_options {
    const char *flow; /* whose request it is, for fair turns (a job's key); NULL: the namespace */
    int64_t
        timeout_ms; /* from when it first goes out, retries included: a long queue is no fault; 0: KUBE_TIMEOUT_MS */
    int tries_max;  /* 0: KUBE_TRIES_MAX; 1: no retry here */
    enum kube_priority priority;
    bool dry_run; /* of a create: nothing is made; the answer is as if it had been */
    bool strict;  /* of a create or patch: fields that the server does not know are refused, where it would drop them */
    bool metadata_only; /* the answer's object need hold no more than its metadata, which costs the server less */
    kube_answered *answered;
    void *context;
};

/* All strings and documents are copied. */
struct kube_call *kube_client_get(struct kube_client *client, const struct resource_path *path,
                                  const struct kube_call_options *options);
/* `path->name` NULL; the object carries its name. Idempotent by deterministic names: ERROR_ALREADY_EXISTS tells. */
struct kube_call *kube_client_create(struct kube_client *client, const struct resource_path *path,
                                     const struct json *object, const struct kube_call_options *options);
/* With metadata.resourceVersion in `object`, ERROR_CONFLICT when it has changed meanwhile. */
struct kube_call *kube_client_replace(struct kube_client *client, const struct resource_path *path,
                                      const struct json *object, const struct kube_call_options *options);
/* JSON merge patch (RFC 7386); with metadata.resourceVersion in `patch`, ERROR_CONFLICT when it has changed. */
struct kube_call *kube_client_patch(struct kube_client *client, const struct resource_path *path,
                                    const struct json *patch, const struct kube_call_options *options);

/* Server-side apply: `config` is all that `manager` says of the object; what others say otherwise is taken over. */
struct kube_call *kube_client_apply(struct kube_client *client, const struct resource_path *path,
                                    const struct json *config, const char *manager,
                                    const struct kube_call_options *options);

struct kube_delete_options {
    const char *uid;              /* NULL: no precondition */
    const char *resource_version; /* NULL: no precondition */
    const char *propagation;      /* "Background", "Foreground", "Orphan"; NULL: the resource's default */
    int64_t grace_seconds;        /* -1: the object's own */
    bool dry_run;                 /* nothing is deleted; the answer is as if it had been */
};
/* ERROR_CONFLICT when a precondition does not hold, ERROR_NOT_FOUND when it is gone. */
struct kube_call *kube_client_delete(struct kube_client *client, const struct resource_path *path,
                                     const struct kube_delete_options *what, const struct kube_call_options *options);

/* A GET whose body is handed over as it comes: logs, lists, watches. Not queued, not counted against max_in_flight and
 * never repeated but with new credentials on 401, before anything has come. `answered` is called once at the end; its `object` is NULL on success. */
struct kube_stream_options {
    const char *path_and_query; /* as resource_path_append and _append_query make it */
    const char *verb;           /* for the counters: "watch", "list"; NULL: "get" */
    const char *resource;       /* for the counters; NULL: "" */
    int64_t timeout_ms;         /* of the whole stream; 0: none */
    int64_t idle_timeout_ms;    /* ended when nothing came for so long (ERROR_TIMEOUT); 0: never */
    http_data *on_data;         /* context as below */
    kube_answered *answered;
    void *context;
};
struct kube_call *kube_client_stream(struct kube_client *client, const struct kube_stream_options *options);

/* Its callback is called with ERROR_CANCELLED before this returns. Whether the server did it remains unknown. */
void kube_call_cancel(struct kube_call *call);

/* The write gate. `is_open` is asked the instant before a mutating request goes out, at every try; while it says no the
 * request ends with ERROR_CANCELLED. NULL: always open. */
typedef bool kube_write_gate(void *context);
void kube_client_set_write_gate(struct kube_client *client, kube_write_gate *is_open, void *context);
/* Ends all mutating requests that wait or are on the wire (but those of KUBE_URGENT), with ERROR_CANCELLED. */
void kube_client_abort_writes(struct kube_client *client);

/* Appends Prometheus text: coxswain_kube_requests_total{verb,resource,code},
 * coxswain_kube_request_duration_seconds{verb}, coxswain_kube_retries_total, coxswain_kube_requests_pending (streams not
 * counted). */
int kube_client_write_metrics(const struct kube_client *client, struct buffer *out, struct error *error);

#endif
