/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/list_stream.h"

#include <string.h>

#include "operator/kube/object_text.h"
#include "operator/kube/watch_stream.h"

#define ITEMS_KEY "\"items\""
/* Depths: 1 inside the list, 2 inside its items, 3 and more inside one item. */
#define LIST_DEPTH 1
#define ITEMS_DEPTH 2

void list_stream_init(struct list_stream *stream, size_t object_max, list_item_taken *taken, void *context)
{
    *stream = (struct list_stream){.slice = JSON_SLICE_INIT, .taken = taken, .context = context};
    buffer_init(&stream->envelope, LIST_ENVELOPE_MAX);
    buffer_init(&stream->item, object_max ? object_max : KUBE_OBJECT_MAX);
}

void list_stream_release(struct list_stream *stream)
{
    buffer_release(&stream->envelope);
    buffer_release(&stream->item);
}

static int item_take(struct list_stream *stream, struct error *error)
{
    SCOPED_JSON *item = NULL;
    object_text_prepare(&stream->item);
    if (json_parse(buffer_text(&stream->item), stream->item.length, stream->item.ceiling, &item, error) < 0)
        return error_wrap(error, "list item");
    if (stream->taken(stream->context, item, error) < 0)
        return -1;
    buffer_clear(&stream->item);
    return 0;
}

/* One byte between `"items":[` and the closing bracket. */
static int step_in_items(struct list_stream *stream, char byte, struct error *error)
{
    bool between_items = stream->slice.depth == ITEMS_DEPTH;
    bool separates = between_items && (byte == ',' || json_slice_is_space(byte));
    if (separates)
        return 0;
    if (between_items && byte == ']') {
        stream->in_items = false;
        stream->slice.depth--;
        return buffer_append_byte(&stream->envelope, byte, error);
    }
    if (between_items && byte != '{')
        return error_set(error, ERROR_INVALID, "the API server's list has an item that is not a JSON object");
    unsigned before = stream->slice.depth;
    if (!json_slice_step(&stream->slice, byte))
        return error_set(error, ERROR_INVALID, "a list item has an unmatched closing bracket");
    if (!json_slice_is_too_deep(&stream->slice, before) && buffer_append_byte(&stream->item, byte, error) < 0)
        return error_wrap(error, "list item longer than %zu bytes", stream->item.ceiling);
    return stream->slice.depth == ITEMS_DEPTH ? item_take(stream, error) : 0;
}

/* Whether the string that ended just now, at depth 1, is the key "items". */
static bool ended_items_key(const struct list_stream *stream)
{
    size_t length = stream->envelope.length - stream->key_start;
    return length == strlen(ITEMS_KEY) && memcmp(stream->envelope.data + stream->key_start, ITEMS_KEY, length) == 0;
}

/* Remembers "items" until its value begins; any other byte but white space and the colon forgets it. */
static void follow_key(struct list_stream *stream, char byte, bool was_in_string)
{
    if (stream->slice.in_string && !was_in_string)
        stream->key_start = stream->envelope.length - 1;
    if (was_in_string && !stream->slice.in_string)
        stream->key_is_items = ended_items_key(stream);
    else if (byte != ':' && !json_slice_is_space(byte))
        stream->key_is_items = false;
}

static int step_in_envelope(struct list_stream *stream, char byte, struct error *error)
{
    if (stream->slice.depth == 0 && stream->envelope.length > 0 && !json_slice_is_space(byte))
        return error_set(error, ERROR_INVALID, "something follows the list");
    if (stream->slice.depth == 0 && json_slice_is_space(byte))
        return 0;
    if (stream->slice.depth == 0 && byte != '{')
        return error_set(error, ERROR_INVALID, "a list must be a JSON object");
    bool was_in_string = stream->slice.in_string;
    bool items_follow = stream->slice.depth == LIST_DEPTH && stream->key_is_items && byte == '[';
    if (!json_slice_step(&stream->slice, byte))
        return error_set(error, ERROR_INVALID, "a list has an unmatched closing bracket");
    if (buffer_append_byte(&stream->envelope, byte, error) < 0)
        return error_wrap(error, "a list with more than %d bytes besides its items", LIST_ENVELOPE_MAX);
    if (stream->slice.depth == LIST_DEPTH)
        follow_key(stream, byte, was_in_string);
    stream->in_items = items_follow;
    return 0;
}

int list_stream_feed(struct list_stream *stream, const char *bytes, size_t length, struct error *error)
{
    for (size_t i = 0; i < length; i++) {
        int result =
            stream->in_items ? step_in_items(stream, bytes[i], error) : step_in_envelope(stream, bytes[i], error);
        if (result < 0)
            return -1;
    }
    return 0;
}

int list_stream_finish(struct list_stream *stream, struct json **ret_envelope, struct error *error)
{
    if (stream->slice.depth > 0 || stream->envelope.length == 0)
        return error_set(error, ERROR_INVALID, "the list ended early");
    const struct buffer *envelope = &stream->envelope;
    if (json_parse(buffer_text(envelope), envelope->length, LIST_ENVELOPE_MAX, ret_envelope, error) < 0)
        return error_wrap(error, "list");
    return 0;
}
