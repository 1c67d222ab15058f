/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a watch response as it arrives: a sequence of JSON objects `{"type":…,"object":…}`,
 * in practice one per line. The result does not depend on how the network splits the bytes. Each
 * event is parsed alone, so memory is bounded by the largest one. No object that a user can store
 * may end the watch: values nested deeper than the parser allows are emptied, and NUL characters
 * are replaced.
 */
#ifndef COXSWAIN_KUBE_WATCH_STREAM_H
#define COXSWAIN_KUBE_WATCH_STREAM_H

#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"
#include "operator/kube/json_slice.h"

/* Largest object as JSON. An API server accepts 3 MiB and writes some characters in six bytes (< as \u003c); every
 * object that can be stored must be readable, or the watch would end. */
#define KUBE_OBJECT_MAX (20 * 1024 * 1024)

enum watch_event_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_event_type type;
    const struct json *object; /* valid during the call; for WATCH_ERROR a metav1.Status */
};

/* Receives an event. Returns 0 to go on, -1 with `error` filled to end the stream. */
typedef int watch_event_taken(void *context, const struct watch_event *event, struct error *error);

struct watch_stream {
    struct json_slice slice;
    struct buffer text; /* the current event, as far as it has arrived */
    watch_event_taken *taken;
    void *context;
};

/* `object_max`: bytes of one event, 0 for KUBE_OBJECT_MAX. */
void watch_stream_init(struct watch_stream *stream, size_t object_max, watch_event_taken *taken, void *context);
void watch_stream_release(struct watch_stream *stream);

/* Takes the next bytes. ERROR_INVALID when they are not events, ERROR_TOO_LARGE when an event is too large, or the
 * callback's error; after an error the stream can only be released. Events of unknown type are ignored. */
int watch_stream_feed(struct watch_stream *stream, const char *bytes, size_t length, struct error *error);

#endif
