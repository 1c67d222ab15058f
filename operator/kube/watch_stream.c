/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/watch_stream.h"

#include <string.h>

#include "operator/kube/managed_fields.h"

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
    managed_fields_cut(&stream->text);
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

/* How many of the bytes, which begin inside an object, belong to it; 0 on an error. */
static size_t object_length(struct json_slice *slice, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!json_slice_step(slice, bytes[i]))
            return 0;
        if (slice->depth == 0)
            return i + 1;
    }
    return length;
}

int watch_stream_feed(struct watch_stream *stream, const char *bytes, size_t length, struct error *error)
{
    while (length > 0) {
        if (stream->slice.depth == 0 && json_slice_is_space(*bytes)) {
            bytes++, length--;
            continue;
        }
        if (stream->slice.depth == 0 && *bytes != '{')
            return error_set(error, ERROR_INVALID, "a watch holds what is no JSON object");
        size_t taken = object_length(&stream->slice, bytes, length);
        if (taken == 0)
            return error_set(error, ERROR_INVALID, "a watch event nests deeper than %d levels", JSON_DEPTH_MAX);
        if (buffer_append(&stream->text, bytes, taken, error) < 0)
            return error_wrap(error, "watch event longer than %zu bytes", stream->text.ceiling);
        bytes += taken, length -= taken;
        if (stream->slice.depth > 0)
            continue;
        if (event_take(stream, error) < 0)
            return -1;
        buffer_clear(&stream->text);
    }
    return 0;
}
