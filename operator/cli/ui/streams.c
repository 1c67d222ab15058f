/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/streams.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"

#define EVENT_MAX (64 * 1024 * 1024)
#define MS_NS 1000000LL

struct stream {
    struct http_stream *http; /* NULL: a free place */
    uint64_t version;         /* of the list that the page has */
    int64_t sent_ns;          /* when the last event was sent; 0: none yet */
};

struct ui_streams {
    struct ui_stream_source source;
    struct stream places[STREAMS_MAX];
};

struct ui_streams *ui_streams_new(const struct ui_stream_source *source)
{
    struct ui_streams *streams = memory_allocate(1, sizeof *streams);
    streams->source = *source;
    return streams;
}

void ui_streams_free(struct ui_streams *streams)
{
    free(streams);
}

static struct stream *free_place(struct ui_streams *streams)
{
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (!streams->places[i].http)
            return &streams->places[i];
    return NULL;
}

unsigned ui_streams_count(const struct ui_streams *streams)
{
    unsigned count = 0;
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        count += streams->places[i].http != NULL;
    return count;
}

static void page_gone(void *context)
{
    ((struct stream *)context)->http = NULL;
}

void ui_streams_open(struct ui_streams *streams, struct http_exchange *exchange, uint64_t version)
{
    struct stream *stream = free_place(streams);
    *stream = (struct stream){.version = version};
    stream->http = http_exchange_stream(exchange, 200, "text/event-stream", EVENT_MAX, page_gone, stream);
}

static void send_event(const struct ui_stream_source *source, struct stream *stream, int64_t now_ns)
{
    SCOPED_BUFFER event;
    buffer_init(&event, EVENT_MAX);
    stream->sent_ns = now_ns;
    if (buffer_append_string(&event, "data: ", NULL) < 0 ||
        source->write(source->context, stream->version, &event, NULL) < 0 ||
        buffer_append_string(&event, "\n\n", NULL) < 0)
        return; /* too long; without events the page polls the list, and gets the error */
    stream->version = source->version(source->context);
    http_stream_write(stream->http, event.data, event.length);
}

void ui_streams_work(struct ui_streams *streams)
{
    const struct ui_stream_source *source = &streams->source;
    int64_t now_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        struct stream *stream = &streams->places[i];
        if (!stream->http)
            continue;
        bool changed = stream->version != source->version(source->context);
        int64_t pause_ns = (changed ? STREAM_PACE_MS : STREAM_BEAT_MS) * MS_NS;
        if (stream->sent_ns == 0 || now_ns - stream->sent_ns >= pause_ns)
            send_event(source, stream, now_ns);
    }
}
