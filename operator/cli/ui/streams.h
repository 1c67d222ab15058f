/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends changes of the list, of jobs and sweeps (list.h) or of runs (runs.h), to the open pages of `cox ui`, as server-sent events (HTML
 * standard, 9.2). Each event has the JSON of GET /api/list, with the changes since the last event. Events are at least STREAM_PACE_MS
 * apart; without changes one is sent every STREAM_BEAT_MS, so that a page notices when the server is gone. A page that gets no stream polls
 * /api/list instead.
 */
#ifndef COXSWAIN_CLI_UI_STREAMS_H
#define COXSWAIN_CLI_UI_STREAMS_H

#include <stdint.h>

#include "common/buffer.h"
#include "common/http_server.h"

#define STREAMS_MAX 4 /* browsers open six connections to a server: some must be left for requests */
#define STREAM_PACE_MS 200
#define STREAM_BEAT_MS 2000

struct ui_streams;

/* What the events are made of. */
struct ui_stream_source {
    uint64_t (*version)(void *context);
    int (*write)(void *context, uint64_t version, struct buffer *out, struct error *error); /* as ui_list_write */
    void *context;
};

/* The source's context must outlive the streams. */
struct ui_streams *ui_streams_new(const struct ui_stream_source *source);
/* Call it when the HTTP server has ended. */
void ui_streams_free(struct ui_streams *streams);

/* Returns how many streams are open: at most STREAMS_MAX. */
unsigned ui_streams_count(const struct ui_streams *streams);
/* Answers the exchange, whose headers are set, with a stream that begins with the changes since `version` of the list. Call it only
 * if fewer than STREAMS_MAX are open. */
void ui_streams_open(struct ui_streams *streams, struct http_exchange *exchange, uint64_t version);
/* Sends the events that are due. Call it after each turn of the loop. */
void ui_streams_work(struct ui_streams *streams);

#endif
