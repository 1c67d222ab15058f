/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends changes of the list of jobs and sweeps (list.h) to the open pages of `cox ui`, as server-sent events (HTML standard, 9.2). Each event
 * has the JSON of GET /api/list, with the changes since the last event. Events are at least STREAM_PACE_MS apart; without changes one is
 * sent every STREAM_BEAT_MS, so that a page notices when the server is gone. A page that gets no stream polls /api/list instead.
 */
#ifndef COXSWAIN_CLI_UI_STREAMS_H
#define COXSWAIN_CLI_UI_STREAMS_H

#include "common/http_server.h"
#include "operator/cli/ui/list.h"

#define STREAMS_MAX 4 /* browsers open six connections to a server: some must be left for requests */
#define STREAM_PACE_MS 200
#define STREAM_BEAT_MS 2000

struct ui_streams;

/* The list must outlive the streams. */
struct ui_streams *ui_streams_new(const struct ui_list *list);
/* Call it when the HTTP server has ended. */
void ui_streams_free(struct ui_streams *streams);

/* Returns whether STREAMS_MAX streams are open. */
bool ui_streams_are_full(struct ui_streams *streams);
/* Answers the exchange, whose headers are set, with a stream that begins with the changes since `version` of the list. Call it only
 * if ui_streams_are_full returned false. */
void ui_streams_open(struct ui_streams *streams, struct http_exchange *exchange, uint64_t version);
/* Sends the events that are due. Call it after each turn of the loop. */
void ui_streams_work(struct ui_streams *streams);

#endif
