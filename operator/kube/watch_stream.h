/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts the body of a watch into its events while it comes: a sequence of JSON
 * objects `{"type":…,"object":…}`, in practice one a line. Where the network cuts the
 * bytes makes no difference to what comes out. Each event is parsed alone, so
 * memory is bounded by the largest one. What users store must not end a watch: of what
 * nests deeper than the parser goes the innermost is left out, and NUL characters are
 * replaced.
 */
#ifndef COXSWAIN_KUBE_WATCH_STREAM_H
#define COXSWAIN_KUBE_WATCH_STREAM_H

#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"
#include "operator/kube/json_slice.h"

/* An API server takes 3 MiB at a time and writes some characters in six bytes (< as \u003c): whatever anybody stores must be
 * readable, or nothing would be watched any more. */
#define KUBE_OBJECT_MAX (20 * 1024 * 1024)

enum watch_event_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_event_type type;
    const struct json *object; /* valid during the call; for WATCH_ERROR a metav1.Status */
};

/* Returns 0 to go on, -1 with `error` filled to end the stream. */
typedef int watch_event_taken(void *context, const struct watch_event *event, struct error *error);

struct watch_stream {
    struct json_slice slice;
    struct buffer text; /* the event under way */
    watch_event_taken *taken;
    void *context;
};

/* `object_max`: bytes of one event, 0 for KUBE_OBJECT_MAX. */
void watch_stream_init(struct watch_stream *stream, size_t object_max, watch_event_taken *taken, void *context);
void watch_stream_release(struct watch_stream *stream);

/* ERROR_INVALID for what is no event, ERROR_TOO_LARGE at the ceiling, or the callback's error; the stream is of no
 * further use then. Events of unknown type are passed over. */
int watch_stream_feed(struct watch_stream *stream, const char *bytes, size_t length, struct error *error);

#endif
