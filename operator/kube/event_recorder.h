/* SPDX-License-Identifier: Apache-2.0
 *
 * Records Kubernetes Events (events.k8s.io/v1) about an object, as `kubectl describe` shows them.
 * Events are best effort: nothing waits for them, and a failed write is only counted.
 * Repetitions cost few writes: an event with the same subject, type, reason and note within ten
 * minutes after the last one extends the series of the first one (its count and last time are patched), and a burst
 * of repetitions is written once. At most EVENT_RECORDER_QUEUE writes are in progress; further
 * events are dropped.
 */
#ifndef COXSWAIN_KUBE_EVENT_RECORDER_H
#define COXSWAIN_KUBE_EVENT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "operator/kube/client.h"

struct event_recorder;

#define EVENT_RECORDER_QUEUE 256
#define EVENT_RECORDER_SERIES 1024 /* series remembered; past that, a repetition becomes a new event */
#define EVENT_NOTE_MAX 1024        /* bytes, the API's limit; longer notes are cut */

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* The object that an event is about (`regarding`); strings are copied. */
struct event_subject {
    const char *api_version;
    const char *kind;
    const char *name_space; /* NULL or "": cluster-scoped; the event is then in the namespace default */
    const char *name;
    const char *uid;
    const char *resource_version; /* or NULL */
};

struct event_recorder_options {
    const char *controller;  /* reportingController: "coxswain.dev/operator" */
    const char *instance;    /* reportingInstance: the pod's or host's name */
    int64_t window_ms;       /* 0: 600000 */
    int64_t series_delay_ms; /* shortest time between two writes of a series; 0: 10000 */
};

struct event_recorder *event_recorder_new(struct kube_client *client, const struct event_recorder_options *options);
/* Drops events not written yet and all later ones. Call it before the client is freed. */
void event_recorder_stop(struct event_recorder *recorder);
/* Stops and frees the recorder. A recorder that is stopped may outlive the client, so that callbacks of calls which end
 * with the client may still record events. */
void event_recorder_free(struct event_recorder *recorder);

/* Records an event. `reason` and `action` are CamelCase words ("PodReplaced", "Replace"), `note` is a sentence. */
void event_recorder_record(struct event_recorder *recorder, const struct event_subject *subject, enum event_type type,
                           const char *reason, const char *action, const char *note);

struct event_recorder_counts {
    uint64_t recorded, written, failed, dropped;
};
struct event_recorder_counts event_recorder_counts(const struct event_recorder *recorder);

#endif
