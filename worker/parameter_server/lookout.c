/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/lookout.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "worker/parameter_server/bulk.h"

#define EVERY_MS_DEFAULT 5000
#define ANSWER_MS 5000

static void look_again_later(struct lookout *lookout)
{
    int64_t every_ms = lookout->options.every_ms > 0 ? lookout->options.every_ms : EVERY_MS_DEFAULT;
    lookout->next_ms = clock_monotonic_ms() + every_ms;
}

void lookout_init(struct lookout *lookout, const struct lookout_options *options)
{
    *lookout = (struct lookout){.options = *options};
}

void lookout_begin(struct lookout *lookout, const char *address)
{
    snprintf(lookout->address, sizeof lookout->address, "%s", address);
    lookout->is_met = lookout->is_told = false;
    look_again_later(lookout);
}

void lookout_meet(struct lookout *lookout, struct generation generation)
{
    lookout->is_met = true;
    if (generation_compare_chiefs(generation, lookout->met) > 0)
        lookout->met = generation;
}

/* ---------------------------------------------------------------- asking who is there */

static void hear(struct lookout *lookout, struct generation seen);

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct lookout *lookout = context;
    struct ps_message message;
    if (ps_message_decode(bytes, length, &message, NULL) == 0) {
        if (message.type == PS_SEEN && stream == lookout->probe)
            hear(lookout, message.generation);
        ps_message_release(&message);
    }
    rpc_stream_close(stream);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)error;
    struct lookout *lookout = context;
    if (stream == lookout->probe)
        lookout->probe = NULL;
}

/* Asks a server for its generation. The message also contains the newest generation met, so that an
 * older server learns that it is superseded. */
static void ask(struct lookout *lookout, const char *address, struct rpc_stream **ret_stream)
{
    static const struct rpc_stream_events events = {.message = on_message, .closed = on_closed};
    const struct lookout_options *options = &lookout->options;
    if (rpc_stream_open(options->rpc, address, options->seat->port, PS_METHOD_CONTROL, ANSWER_MS, &events, lookout,
                        ret_stream, NULL) < 0)
        return;
    struct ps_message message = {.type = PS_LOOK, .server = options->number, .newest = lookout->met};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", options->job_uid);
    ps_message_send(*ret_stream, &message);
}

static void hear(struct lookout *lookout, struct generation seen)
{
    struct rpc_stream *farewell;
    if (!lookout->is_met || lookout->is_told || generation_compare_chiefs(seen, lookout->met) <= 0)
        return;
    lookout->is_told = true;
    lookout->met = seen;
    ask(lookout, lookout->address, &farewell);
    lookout->options.found(lookout->options.context);
}

void lookout_tick(struct lookout *lookout)
{
    char address[RESOLVE_ADDRESS_MAX];
    if (!lookout->is_met || lookout->is_told || lookout->probe != NULL || clock_monotonic_ms() < lookout->next_ms ||
        !address_book_ask(lookout->options.book, lookout->options.number, address))
        return;
    look_again_later(lookout);
    if (strcmp(address, lookout->address) != 0)
        ask(lookout, address, &lookout->probe);
}
