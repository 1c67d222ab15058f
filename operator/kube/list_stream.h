/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts the body of a list into its items while it comes: a JSON object whose member
 * `items` is an array. Each item is parsed alone; all that is not an item (kind,
 * metadata with resourceVersion and continue) is kept and read at the end. Where the
 * network cuts the bytes makes no difference to what comes out.
 */
#ifndef COXSWAIN_KUBE_LIST_STREAM_H
#define COXSWAIN_KUBE_LIST_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"
#include "operator/kube/json_slice.h"

/* Everything of a list but its items; a continue token is a few hundred bytes. */
#define LIST_ENVELOPE_MAX (64 * 1024)

/* `item` is valid during the call. Returns 0 to go on, -1 with `error` filled to end the stream. */
typedef int list_item_taken(void *context, const struct json *item, struct error *error);

struct list_stream {
    struct json_slice slice;
    struct buffer envelope; /* the list without its items */
    struct buffer item;     /* the item under way */
    size_t key_start;       /* in `envelope`: where the last string at depth 1 began */
    bool key_is_items;
    bool in_items;
    list_item_taken *taken;
    void *context;
};

/* `object_max`: bytes of one item, 0 for KUBE_OBJECT_MAX (watch_stream.h). */
void list_stream_init(struct list_stream *stream, size_t object_max, list_item_taken *taken, void *context);
void list_stream_release(struct list_stream *stream);

/* ERROR_INVALID for what is no list, ERROR_TOO_LARGE at a ceiling, or the callback's error; the stream is of no further
 * use then. */
int list_stream_feed(struct list_stream *stream, const char *bytes, size_t length, struct error *error);

/* At the end of the body: the list without its items (`{"metadata":{…},"items":[]}`), owned by the caller.
 * ERROR_INVALID when the body ended early. */
int list_stream_finish(struct list_stream *stream, struct json **ret_envelope, struct error *error);

#endif
