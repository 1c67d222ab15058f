/* SPDX-License-Identifier: Apache-2.0
 *
 * Kubernetes Events (events.k8s.io/v1) about an object, for `kubectl describe`.
 * They are best effort: nothing waits for them and a failure is only counted.
 * Writes are few: the same subject, type, reason and message within ten minutes becomes a series
 * of the first event (count and last time patched), and a burst of repetitions is
 * written once at its end. At most EVENT_RECORDER_QUEUE are under way; beyond that new ones are dropped.
 */
#ifndef COXSWAIN_KUBE_EVENT_RECORDER_H
#define COXSWAIN_KUBE_EVENT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "operator/kube/client.h"

struct event_recorder;

#define EVENT_RECORDER_QUEUE 256
#define EVENT_RECORDER_SERIES 1024 /* subjects and reasons remembered; beyond that a repetition becomes a new event */
#define EVENT_NOTE_MAX 1024        /* the API's limit; longer notes are cut */

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* What an event is about (`regarding`); strings are copied. */
struct event_subject {
    const char *api_version;
    const char *kind;
    const char *name_space;
    const char *name;
    const char *uid;
    const char *resource_version; /* or NULL */
};

struct event_recorder_options {
    const char *controller;  /* reportingController: "coxswain.dev/operator" */
    const char *instance;    /* reportingInstance: the pod's or host's name */
    int64_t window_ms;       /* 0: 600000 */
    int64_t series_delay_ms; /* a series is written at most this often; 0: 10000 */
};

struct event_recorder *event_recorder_new(struct kube_client *client, const struct event_recorder_options *options);
/* Drops what has not been written, and what is recorded from here on. Before the client is freed. */
void event_recorder_stop(struct event_recorder *recorder);
/* Stops as well. After a stop it may come after the client's end: calls that are ended with it may still want to record. */
void event_recorder_free(struct event_recorder *recorder);

/* `reason` and `action` in CamelCase ("PodReplaced", "Replace"), `note` a sentence for a person. */
void event_recorder_record(struct event_recorder *recorder, const struct event_subject *subject, enum event_type type,
                           const char *reason, const char *action, const char *note);

struct event_recorder_counts {
    uint64_t recorded, written, failed, dropped;
};
struct event_recorder_counts event_recorder_counts(const struct event_recorder *recorder);

#endif
