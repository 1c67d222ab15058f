/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/watch_stream.h"

#include <string.h>

#include "operator/kube/object_text.h"

static const char *const type_names[] = {
    [WATCH_ADDED] = "ADDED",       [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED",
    [WATCH_BOOKMARK] = "BOOKMARK", [WATCH_ERROR] = "ERROR",
};
#define TYPES (sizeof type_names / sizeof type_names[0])

void watch_stream_init(struct watch_stream *stream, size_t object_max, watch_event_taken *taken, void *context)
{
    *stream = (struct watch_stream){.slice = JSON_SLICE_INIT, .taken = taken, .context = context};
    buffer_init(&stream->text, object_max ? object_max : KUBE_OBJECT_MAX);
}

void watch_stream_release(struct watch_stream *stream)
{
    buffer_release(&stream->text);
}

static int event_take(struct watch_stream *stream, struct error *error)
{
    SCOPED_JSON *document = NULL;
    object_text_prepare(&stream->text);
    if (json_parse(buffer_text(&stream->text), stream->text.length, stream->text.ceiling, &document, error) < 0)
        return error_wrap(error, "watch event");
    const struct json *object = json_member(document, "object");
    const char *name = json_string_at(document, "type", NULL);
    if (name == NULL || json_type(object) != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "watch event without type and object");
    for (size_t type = 0; type < TYPES; type++) {
        if (strcmp(name, type_names[type]) == 0)
            return stream->taken(stream->context, &(struct watch_event){(enum watch_event_type)type, object}, error);
    }
    return 0;
}

static int append(struct watch_stream *stream, const char *bytes, size_t length, struct error *error)
{
    if (buffer_append(&stream->text, bytes, length, error) < 0)
        return error_wrap(error, "watch event longer than %zu bytes", stream->text.ceiling);
    return 0;
}

/* Takes bytes that begin inside an object, up to its end. */
static int object_take(struct watch_stream *stream, const char *bytes, size_t length, size_t *ret_taken,
                       struct error *error)
{
    struct json_slice *slice = &stream->slice;
    size_t kept = 0, taken = 0; /* the bytes between wait to be appended */
    do {
        unsigned before = slice->depth;
        if (!json_slice_step(slice, bytes[taken]))
            return error_set(error, ERROR_INVALID, "a watch event has an unmatched closing bracket");
        taken++;
        if (!json_slice_is_too_deep(slice, before))
            continue;
        if (append(stream, bytes + kept, taken - 1 - kept, error) < 0)
            return -1;
        kept = taken;
    } while (slice->depth > 0 && taken < length);
    *ret_taken = taken;
    return append(stream, bytes + kept, taken - kept, error);
}

int watch_stream_feed(struct watch_stream *stream, const char *bytes, size_t length, struct error *error)
{
    while (length > 0) {
        if (stream->slice.depth == 0 && json_slice_is_space(*bytes)) {
            bytes++, length--;
            continue;
        }
        if (stream->slice.depth == 0 && *bytes != '{')
            return error_set(error, ERROR_INVALID, "a watch response has something other than JSON objects");
        size_t taken;
        if (object_take(stream, bytes, length, &taken, error) < 0)
            return -1;
        bytes += taken, length -= taken;
        if (stream->slice.depth > 0)
            continue;
        if (event_take(stream, error) < 0)
            return -1;
        buffer_clear(&stream->text);
    }
    return 0;
}
