/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a list response as it arrives: a JSON object whose member `items` is an array. Each
 * item is parsed alone; the rest (kind, metadata with resourceVersion and continue) is kept and
 * parsed at the end. The result does not depend on how the network splits the bytes.
 */
#ifndef COXSWAIN_KUBE_LIST_STREAM_H
#define COXSWAIN_KUBE_LIST_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"
#include "operator/kube/json_slice.h"

/* Largest list without its items; a continue token has a few hundred bytes. */
#define LIST_ENVELOPE_MAX (64 * 1024)

/* Receives an item, which is valid during the call. Returns 0 to go on, -1 with `error` filled to end the stream. */
typedef int list_item_taken(void *context, const struct json *item, struct error *error);

struct list_stream {
    struct json_slice slice;
    struct buffer envelope; /* the list without its items */
    struct buffer item;     /* the current item, as far as it has arrived */
    size_t key_start;       /* in `envelope`: where the last string at depth 1 began */
    bool key_is_items;
    bool in_items;
    list_item_taken *taken;
    void *context;
};

/* `object_max`: bytes of one item, 0 for KUBE_OBJECT_MAX (watch_stream.h). */
void list_stream_init(struct list_stream *stream, size_t object_max, list_item_taken *taken, void *context);
void list_stream_release(struct list_stream *stream);

/* Takes the next bytes. ERROR_INVALID when they are not a list, ERROR_TOO_LARGE when an item or the rest is too large,
 * or the callback's error; after an error the stream can only be released. */
int list_stream_feed(struct list_stream *stream, const char *bytes, size_t length, struct error *error);

/* Ends the list and returns it without its items (`{"metadata":{…},"items":[]}`), owned by the caller. ERROR_INVALID
 * when the body is incomplete. */
int list_stream_finish(struct list_stream *stream, struct json **ret_envelope, struct error *error);

#endif
