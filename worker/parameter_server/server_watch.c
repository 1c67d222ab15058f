/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/server_watch.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "worker/parameter_server/bulk.h"

#define EVERY_MS_DEFAULT 5000
#define ANSWER_MS 5000

static void look_again_later(struct server_watch *watch)
{
    int64_t every_ms = watch->options.every_ms > 0 ? watch->options.every_ms : EVERY_MS_DEFAULT;
    watch->next_ms = clock_monotonic_ms() + every_ms;
}

void server_watch_init(struct server_watch *watch, const struct server_watch_options *options)
{
    *watch = (struct server_watch){.options = *options};
}

void server_watch_begin(struct server_watch *watch, const char *address)
{
    snprintf(watch->address, sizeof watch->address, "%s", address);
    watch->is_met = watch->is_told = false;
    look_again_later(watch);
}

void server_watch_meet(struct server_watch *watch, struct generation generation)
{
    watch->is_met = true;
    if (generation_compare_chiefs(generation, watch->met) > 0)
        watch->met = generation;
}

/* ---------------------------------------------------------------- asking who is there */

static void hear(struct server_watch *watch, struct generation seen);

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct server_watch *watch = context;
    struct ps_message message;
    if (ps_message_decode(bytes, length, &message, NULL) == 0) {
        if (message.type == PS_SEEN && stream == watch->probe)
            hear(watch, message.generation);
        ps_message_release(&message);
    }
    rpc_stream_close(stream);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)error;
    struct server_watch *watch = context;
    if (stream == watch->probe)
        watch->probe = NULL;
}

/* Asks a server for its generation. The message also contains the newest generation met, so that an
 * older server learns that it is superseded. */
static void ask(struct server_watch *watch, const char *address, struct rpc_stream **ret_stream)
{
    static const struct rpc_stream_events events = {.message = on_message, .closed = on_closed};
    const struct server_watch_options *options = &watch->options;
    if (rpc_stream_open(options->rpc, address, options->seat->port, PS_METHOD_CONTROL, ANSWER_MS, &events, watch,
                        ret_stream, NULL) < 0)
        return;
    struct ps_message message = {.type = PS_LOOK, .server = options->number, .newest = watch->met};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", options->job_uid);
    ps_message_send(*ret_stream, &message);
}

static void hear(struct server_watch *watch, struct generation seen)
{
    struct rpc_stream *farewell;
    if (!watch->is_met || watch->is_told || generation_compare_chiefs(seen, watch->met) <= 0)
        return;
    watch->is_told = true;
    watch->met = seen;
    ask(watch, watch->address, &farewell);
    watch->options.found(watch->options.context);
}

void server_watch_tick(struct server_watch *watch)
{
    char address[RESOLVE_ADDRESS_MAX];
    if (!watch->is_met || watch->is_told || watch->probe != NULL || clock_monotonic_ms() < watch->next_ms ||
        !address_book_ask(watch->options.book, watch->options.number, address))
        return;
    look_again_later(watch);
    if (strcmp(address, watch->address) != 0)
        ask(watch, address, &watch->probe);
}
