/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/server_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/lookout.h"
#include "worker/parameter_server/waiting.h"

#define REDIAL_MS 100
#define COMFORT_MS 2000

/* Something that waits for the backup's word. */
struct pending {
    struct pending *next;
    int64_t sequence, since_ms;
    struct exchange *exchange; /* NULL: it is gone, or it is a step */
    int64_t ticket;
    uint32_t verdict;
    bool pull, is_step;
};

/* Bytes on their way; kept until the server goes, since gRPC may look at them after a stream has ended. */
struct carrier {
    struct carrier *next;
    float *bytes;
    int64_t sequence; /* in use until the backup has said this */
};

/* To the backup. */
struct mirror {
    struct ps_server *server;
    struct address_book *book;
    struct rpc_stream *stream;
    struct lookout lookout; /* for a successor of the backup */
    int64_t next_dial_ms, next_comfort_ms;
    bool copied;               /* the stream has begun with a copy */
    bool closing;              /* it does not begin with one any more */
    bool parted;               /* for good */
    int64_t sequence, settled; /* handed on last; the backup's last word */
    int64_t copy_sequence;     /* of the copy that began the stream */
    struct pending *first, **end;
    struct carrier *carriers;
    struct variables_copy copy; /* on its way */
    bool fetching, fetched;
    int64_t fetching_ms;     /* since when */
    struct ps_message fetch; /* the COPY that comes back */
    struct bulk_inbox inbox;
};

/* From the server before this one. */
struct guest_link {
    struct ps_server *server;
    struct rpc_stream *stream;
    struct ps_message message; /* whose bytes are coming */
    bool receiving;
    struct bulk_inbox inbox;
};

static unsigned backup_number(const struct ps_server *server)
{
    return (server->options.variables.server + 1) % server->options.variables.placement->server_count;
}

/* ---------------------------------------------------------------- the whole state as one run of bytes */

static int64_t state_elements(const struct variables *variables)
{
    return variables->elements * (int64_t)(1 + variables->slot_count + variables->options.shares);
}

static void read_state(struct variables *variables, const float *bytes)
{
    float *arrays[1 + OPTIMIZER_SLOTS_MAX + VARIABLES_SHARES_MAX];
    unsigned count = 0;
    arrays[count++] = variables->parameters;
    for (unsigned i = 0; i < variables->slot_count; i++)
        arrays[count++] = variables->slots[i];
    for (unsigned i = 0; i < variables->options.shares; i++)
        arrays[count++] = variables->shares[i];
    size_t size = (size_t)variables->elements * sizeof *bytes;
    for (unsigned i = 0; i < count; i++, bytes += variables->elements)
        memcpy(arrays[i], bytes, size);
}

static struct ps_message describe_state(const struct variables *variables, const struct data_base *base)
{
    return (struct ps_message){.type = PS_COPY,
                               .lineage = variables->lineage,
                               .clock = variables->clock,
                               .updates = variables->updates,
                               .empty = variables->empty,
                               .base_step = base->step,
                               .base_epoch = base->epoch,
                               .base_consumed = base->consumed,
                               .tickets = variables->applied};
}

static void take_state(struct variables *variables, struct data_base *base, const struct ps_message *message,
                       float *bytes)
{
    variables_keep(variables, 0, variables->elements);
    read_state(variables, bytes);
    variables->lineage = message->lineage;
    variables->clock = message->clock;
    variables->updates = message->updates;
    variables->empty = message->empty;
    ticket_set_copy(&variables->applied, &message->tickets);
    variables->holds_state = true;
    *base = data_base_of(message);
}

/* ---------------------------------------------------------------- handing on */

static void settle(struct mirror *mirror, int64_t sequence)
{
    if (sequence > mirror->settled)
        mirror->settled = sequence;
    while (mirror->first != NULL && mirror->first->sequence <= mirror->settled) {
        struct pending *pending = mirror->first;
        mirror->first = pending->next;
        if (mirror->first == NULL)
            mirror->end = &mirror->first;
        if (pending->is_step)
            server_control_say_stepped(mirror->server, pending->ticket);
        else if (pending->exchange != NULL)
            server_exchange_acknowledge(pending->exchange, pending->ticket, pending->verdict, pending->pull);
        free(pending);
    }
}

static void await_word(struct mirror *mirror, struct pending pending)
{
    struct pending *entry = memory_allocate(1, sizeof *entry);
    *entry = pending;
    entry->sequence = mirror->sequence;
    entry->since_ms = clock_monotonic_ms();
    *mirror->end = entry;
    mirror->end = &entry->next;
    settle(mirror, mirror->settled);
}

static float *find_carrier(struct mirror *mirror)
{
    struct carrier *carrier = mirror->carriers;
    while (carrier != NULL && carrier->sequence > mirror->settled)
        carrier = carrier->next;
    if (carrier == NULL) {
        carrier = memory_allocate(1, sizeof *carrier);
        carrier->bytes = malloc((size_t)mirror->server->variables.elements * sizeof(float) + 1);
        carrier->next = mirror->carriers;
        mirror->carriers = carrier;
    }
    carrier->sequence = mirror->sequence;
    return carrier->bytes;
}

static void hand_update(struct mirror *mirror, const struct update *update)
{
    struct variables *variables = &mirror->server->variables;
    const struct variables_options *options = &variables->options;
    size_t bytes = (size_t)placement_elements_of(options->placement, options->server, update->rows) * sizeof(float);
    mirror->sequence++;
    if (!mirror->copied)
        return; /* the copy that begins the stream will have it */
    float *packed = find_carrier(mirror);
    if (packed == NULL) {
        rpc_stream_close(mirror->stream); /* begins again with a copy */
        return;
    }
    placement_carry(options->placement, options->server, update->rows, update->gradients,
                    update->flat ? ORDER_LAYOUT : ORDER_CARRIED, packed, ORDER_CARRIED);
    ps_message_send(mirror->stream, &(struct ps_message){.type = PS_FORWARD,
                                                         .step = mirror->sequence,
                                                         .ticket = update->ticket,
                                                         .clock = update->clock,
                                                         .lineage = update->lineage,
                                                         .rate = update->learning_rate,
                                                         .scale = update->gradient_scale,
                                                         .rows = update->rows ? *update->rows : (struct row_set){0}});
    bulk_send(mirror->stream, packed, bytes);
}

bool mirror_update(struct ps_server *server, struct exchange *exchange, const struct update *update,
                   enum update_verdict verdict, bool pull)
{
    struct mirror *mirror = server->mirror;
    if (mirror == NULL || verdict == UPDATE_OUTDATED || verdict == UPDATE_LATE)
        return false;
    if (verdict == UPDATE_APPLIED)
        hand_update(mirror, update);
    await_word(mirror,
               (struct pending){.exchange = exchange, .ticket = update->ticket, .verdict = verdict, .pull = pull});
    return true;
}

bool mirror_step(struct ps_server *server, const struct ps_message *order)
{
    struct mirror *mirror = server->mirror;
    if (mirror == NULL)
        return false;
    mirror->sequence++;
    if (mirror->copied)
        ps_message_send(mirror->stream, &(struct ps_message){.type = PS_APPLY,
                                                             .ticket = mirror->sequence,
                                                             .step = order->step,
                                                             .rate = order->rate,
                                                             .scale = order->scale});
    await_word(mirror, (struct pending){.is_step = true, .ticket = order->step});
    return true;
}

void mirror_copy(struct ps_server *server)
{
    struct mirror *mirror = server->mirror;
    if (mirror == NULL || mirror->stream == NULL || mirror->closing || !server->variables.holds_state ||
        mirror->fetching)
        return;
    if (mirror->copied) { /* the bytes of an earlier copy may be on their way still: begin anew */
        rpc_stream_close(mirror->stream);
        return;
    }
    variables_copy_end(&mirror->copy, &server->variables);
    if (variables_copy_begin(&mirror->copy, &server->variables, VARIABLES_WHOLE, NULL) < 0)
        return;
    struct ps_message message = describe_state(&server->variables, &server->base);
    message.step = mirror->copy_sequence = ++mirror->sequence;
    ps_server_record(server, SERVER_COPIED, &server->variables, message.step, NULL);
    ps_message_send(mirror->stream, &message);
    bulk_send_later(mirror->stream, variables_copy_place, &mirror->copy, variables_copy_bytes(&mirror->copy));
    mirror->copied = true;
}

/* What is handed on and not settled is not acknowledged either. The copy that begins a stream must have arrived. */
bool mirror_is_whole(const struct ps_server *server)
{
    const struct mirror *mirror = server->mirror;
    return mirror != NULL && mirror->copied && mirror->settled >= mirror->copy_sequence;
}

void mirror_forget(struct ps_server *server, const struct exchange *exchange)
{
    for (struct pending *pending = server->mirror ? server->mirror->first : NULL; pending; pending = pending->next)
        if (pending->exchange == exchange)
            pending->exchange = NULL;
}

/* ---------------------------------------------------------------- fetching */

static void end_fetch(struct mirror *mirror)
{
    struct ps_server *server = mirror->server;
    mirror->fetching = false;
    ps_message_release(&mirror->fetch);
    mirror->fetch = (struct ps_message){0};
    server_control_say_standing(server, true);
    mirror_copy(server);
}

void mirror_fetch(struct ps_server *server)
{
    struct mirror *mirror = server->mirror;
    if (mirror == NULL) {
        server_control_say_standing(server, true);
        return;
    }
    mirror->fetching = true;
    mirror->fetching_ms = clock_monotonic_ms();
    if (mirror->stream != NULL)
        ps_message_send(mirror->stream, &(struct ps_message){.type = PS_FETCH});
}

void mirror_abandon_fetch(struct ps_server *server)
{
    struct mirror *mirror = server->mirror;
    if (mirror == NULL || !mirror->fetching)
        return;
    mirror->fetching = false;
    bulk_inbox_clear(&mirror->inbox);
    if (mirror->stream != NULL)
        rpc_stream_close(mirror->stream); /* begins again with a copy */
    mirror->closing = mirror->stream != NULL;
}

static void take_fetched(struct mirror *mirror)
{
    take_state(&mirror->server->variables, &mirror->server->base, &mirror->fetch, (float *)mirror->inbox.bytes);
    bulk_inbox_clear(&mirror->inbox);
    ps_server_record(mirror->server, SERVER_FETCHED, &mirror->server->variables, mirror->server->variables.updates,
                     NULL);
    ps_server_say(mirror->server, "took the state after %lld updates from ps %u, its backup",
                  (long long)mirror->server->variables.updates, backup_number(mirror->server));
    end_fetch(mirror);
}

/* ---------------------------------------------------------------- the stream to the backup */

static void hear_backup(struct mirror *mirror, struct ps_message *message)
{
    size_t bytes = (size_t)state_elements(&mirror->server->variables) * sizeof(float);
    if (message->type == PS_MIRRORED) {
        settle(mirror, message->step);
        if (mirror->settled >= mirror->copy_sequence)
            variables_copy_end(&mirror->copy, &mirror->server->variables);
    } else if (message->type == PS_SEEN) {
        lookout_meet(&mirror->lookout, message->generation);
    } else if (message->type == PS_SUPERSEDED) {
        (void)server_is_superseded(mirror->server, message->newest);
    } else if (message->type == PS_REFUSED && mirror->fetching) {
        end_fetch(mirror);
    } else if (message->type == PS_COPY && mirror->fetching) {
        ps_message_release(&mirror->fetch);
        mirror->fetch = *message;
        message->tickets = (struct ticket_set){0};
        message->rows = (struct row_set){0};
        if (bytes == 0)
            take_fetched(mirror);
        else if (bulk_inbox_expect(&mirror->inbox, bytes, NULL, NULL) < 0)
            end_fetch(mirror);
    }
}

/* No backup of another protocol is one. */
static void fail_stranger(struct mirror *mirror, const struct error *cause)
{
    struct ps_server *server = mirror->server;
    struct error error = ERROR_INIT;
    char name[WAITING_NAME_MAX];
    waiting_name("ps", backup_number(server), &server->options.servers[backup_number(server)], name);
    error_set(&error, ERROR_FORBIDDEN, "%s: %s", name, cause->message);
    ps_server_fail(server, &error);
}

static void on_backup_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct mirror *mirror = context;
    struct ps_message message = {0};
    struct error error = ERROR_INIT;
    enum bulk_heard heard = bulk_hear(pieces, count, &mirror->inbox, &message, &error);
    if (heard == BULK_HEARD_MESSAGE)
        hear_backup(mirror, &message);
    else if (heard == BULK_HEARD_ALL)
        take_fetched(mirror);
    else if (heard == BULK_HEARD_NOTHING) {
        if (error.kind == ERROR_UNSUPPORTED)
            fail_stranger(mirror, &error);
        rpc_stream_close(stream);
    }
    ps_message_release(&message);
}

static void on_backup_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct mirror *mirror = context;
    mirror->stream = NULL;
    mirror->copied = mirror->closing = false;
    variables_copy_end(&mirror->copy, &mirror->server->variables);
    bulk_inbox_clear(&mirror->inbox);
}

static void dial(struct mirror *mirror)
{
    static const struct rpc_stream_events events = {.pieces = on_backup_pieces, .closed = on_backup_closed};
    struct ps_server *server = mirror->server;
    unsigned number = backup_number(server);
    char address[RESOLVE_ADDRESS_MAX];
    if (clock_monotonic_ms() < mirror->next_dial_ms || !address_book_ask(mirror->book, number, address))
        return;
    mirror->next_dial_ms = clock_monotonic_ms() + REDIAL_MS;
    if (rpc_stream_open(server->rpc, address, server->options.servers[number].port, PS_METHOD_MIRROR, 0, &events,
                        mirror, &mirror->stream, NULL) < 0)
        return;
    lookout_begin(&mirror->lookout, address);
    struct ps_message message = {.type = PS_MIRROR,
                                 .generation = server->options.generation,
                                 .newest = mirror->lookout.met,
                                 .index = server->options.variables.server,
                                 .digest = server->options.digest};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", server->job_uid);
    ps_message_send(mirror->stream, &message);
    if (mirror->fetching)
        ps_message_send(mirror->stream, &(struct ps_message){.type = PS_FETCH});
    else
        mirror_copy(server);
}

/* Workers whose updates wait for the backup: we are there, and it may take long until a backup is. */
static void comfort(struct mirror *mirror)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms < mirror->next_comfort_ms)
        return;
    mirror->next_comfort_ms = now_ms + COMFORT_MS;
    for (struct pending *pending = mirror->first; pending != NULL; pending = pending->next)
        if (pending->exchange != NULL)
            ps_message_send(pending->exchange->stream, &(struct ps_message){.type = PS_BEAT});
}

void mirror_tick(struct ps_server *server)
{
    if (server->mirror == NULL)
        return;
    if (server->mirror->stream == NULL && !server->mirror->parted)
        dial(server->mirror);
    else if (server->mirror->stream != NULL)
        lookout_tick(&server->mirror->lookout);
    comfort(server->mirror);
}

/* The backup stood still, and another has its place. */
static void leave_backup(void *context)
{
    struct mirror *mirror = context;
    if (mirror->stream == NULL)
        return;
    ps_server_say(mirror->server, "ps %u, the backup, is superseded: its successor is handed everything",
                  backup_number(mirror->server));
    rpc_stream_close(mirror->stream);
}

void mirror_part(struct ps_server *server)
{
    if (server->guest_link != NULL)
        rpc_stream_close(server->guest_link->stream);
    if (server->mirror == NULL)
        return;
    server->mirror->parted = true;
    if (server->mirror->stream != NULL)
        rpc_stream_close(server->mirror->stream);
}

/* Acknowledgements wait for its word, and so do the workers. */
void mirror_describe(const struct ps_server *server, char text[PS_TEXT_MAX])
{
    const struct mirror *mirror = server->mirror;
    char name[WAITING_NAME_MAX];
    if (mirror == NULL)
        return;
    bool waits = mirror->first != NULL && ps_server_is_long(server, mirror->first->since_ms, mirror->copied);
    bool fetches = mirror->fetching && ps_server_is_long(server, mirror->fetching_ms, mirror->stream != NULL);
    if (!waits && !fetches)
        return;
    waiting_name("ps", backup_number(server), &server->options.servers[backup_number(server)], name);
    waiting_add(text, name, fetches ? ", the backup, to give the state back" : ", the backup, to take updates");
}

/* ---------------------------------------------------------------- the guest */

bool mirror_holds_guest(const struct ps_server *server)
{
    const struct variables *guest = &server->guest, *own = &server->variables;
    return guest->holds_state && (!own->holds_state || guest->lineage >= own->lineage);
}

static void say(struct guest_link *link, enum ps_message_type type, int64_t sequence)
{
    ps_message_send(link->stream, &(struct ps_message){.type = type, .step = sequence});
}

/* Of what is kept for the server before this one. */
static void record_guest(struct ps_server *server, enum server_fate fate, int64_t number)
{
    char whose[64];
    snprintf(whose, sizeof whose, "ps-%u-%u", server->guest.options.server, server->guest_generation.epoch);
    ps_server_record(server, fate, &server->guest, number, whose);
}

static int prepare_guest(struct ps_server *server, struct error *error)
{
    if (server->guest.options.device != NULL)
        return 0;
    struct variables_options options = server->options.variables;
    unsigned count = options.placement->server_count;
    options.server = (options.server + count - 1) % count;
    return variables_init(&server->guest, &options, error);
}

/* A successor of it has been here: it may not know, having stood still. */
static void send_away(struct guest_link *link)
{
    ps_message_send(link->stream,
                    &(struct ps_message){.type = PS_SUPERSEDED, .newest = link->server->guest_generation});
    rpc_stream_close(link->stream);
}

static void on_greeting(struct guest_link *link, const struct ps_message *message)
{
    struct ps_server *server = link->server;
    unsigned count = server->options.variables.placement->server_count;
    unsigned before = (server->options.variables.server + count - 1) % count;
    struct error error = ERROR_INIT;
    if (strcmp(message->job_uid, server->job_uid) != 0 || message->digest != server->options.digest ||
        message->index != before) {
        rpc_stream_close(link->stream);
        return;
    }
    if (generation_compare_chiefs(message->generation, server->guest_generation) < 0) {
        send_away(link);
        return;
    }
    if (server_is_superseded(server, message->newest) || server_is_of_a_past_attempt(server, message->generation))
        return;
    if (prepare_guest(server, &error) < 0) {
        ps_server_fail(server, &error);
        return;
    }
    bool replaces = generation_compare_chiefs(message->generation, server->guest_generation) > 0;
    server->guest_generation = message->generation;
    if (server->guest_link != NULL && server->guest_link != link && replaces)
        send_away(server->guest_link);
    else if (server->guest_link != NULL && server->guest_link != link)
        rpc_stream_close(server->guest_link->stream);
    server->guest_link = link;
    ps_message_send(link->stream, &(struct ps_message){.type = PS_SEEN, .generation = server->options.generation});
}

static void give_back(struct guest_link *link)
{
    struct ps_server *server = link->server;
    struct variables *guest = &server->guest;
    variables_copy_end(&server->guest_copy, guest);
    if (!guest->holds_state || variables_copy_begin(&server->guest_copy, guest, VARIABLES_WHOLE, NULL) < 0) {
        say(link, PS_REFUSED, 0);
        return;
    }
    struct ps_message message = describe_state(guest, &server->guest_base);
    record_guest(server, SERVER_GAVE, guest->updates);
    ps_message_send(link->stream, &message);
    bulk_send_later(link->stream, variables_copy_place, &server->guest_copy, variables_copy_bytes(&server->guest_copy));
}

/* All of what was announced is there. */
static void take_guest(struct guest_link *link)
{
    struct ps_server *server = link->server;
    struct variables *guest = &server->guest;
    const struct ps_message *message = &link->message;
    struct error error = ERROR_INIT;
    enum update_verdict verdict;
    link->receiving = false;
    if (message->type == PS_COPY) {
        bool is_first = !guest->holds_state;
        take_state(guest, &server->guest_base, message, (float *)link->inbox.bytes);
        record_guest(server, SERVER_KEPT, message->step);
        if (is_first)
            server_control_say_standing(server, false); /* the chief should know */
    } else {
        const struct update update = {.ticket = message->ticket,
                                      .clock = message->clock,
                                      .lineage = message->lineage,
                                      .learning_rate = message->rate,
                                      .gradient_scale = message->scale,
                                      .gradients = (const float *)link->inbox.bytes,
                                      .rows = &message->rows};
        int result = guest->options.shares > 0 ? variables_stage(guest, &update, &verdict, &error)
                                               : variables_apply(guest, &update, &verdict, &error);
        if (result < 0) {
            ps_server_fail(server, &error);
            return;
        }
        if (verdict == UPDATE_APPLIED && guest->options.shares == 0)
            record_guest(server, SERVER_MIRRORED, message->ticket);
    }
    bulk_inbox_clear(&link->inbox);
    say(link, PS_MIRRORED, message->step);
}

static void expect_guest(struct guest_link *link, struct ps_message *message)
{
    struct variables *guest = &link->server->guest;
    const struct variables_options *options = &guest->options;
    if (!placement_knows_rows(options->placement, options->server, &message->rows)) {
        rpc_stream_close(link->stream);
        return;
    }
    int64_t elements = message->type == PS_COPY
                           ? state_elements(guest)
                           : placement_elements_of(options->placement, options->server, &message->rows);
    ps_message_release(&link->message);
    link->message = *message;
    message->tickets = (struct ticket_set){0};
    message->rows = (struct row_set){0};
    link->receiving = true;
    if (elements == 0)
        take_guest(link);
    else if (bulk_inbox_expect(&link->inbox, (size_t)elements * sizeof(float), NULL, NULL) < 0)
        rpc_stream_close(link->stream);
}

static void apply_guest_step(struct guest_link *link, const struct ps_message *message)
{
    struct variables *guest = &link->server->guest;
    struct error error = ERROR_INIT;
    double squares;
    int64_t before = guest->updates;
    if (guest->updates == message->step &&
        (variables_reduce(guest, &squares, &error) < 0 ||
         variables_apply_step(guest, message->step, message->rate, message->scale, &error) < 0)) {
        ps_server_fail(link->server, &error);
        return;
    }
    if (guest->updates != before)
        record_guest(link->server, SERVER_MIRRORED, message->step);
    say(link, PS_MIRRORED, message->ticket);
}

static void hear_guest(struct guest_link *link, struct ps_message *message)
{
    struct ps_server *server = link->server;
    if (message->type == PS_MIRROR)
        on_greeting(link, message);
    else if (server->guest_link != link)
        return;
    else if (message->type == PS_COPY || (message->type == PS_FORWARD && server->guest.holds_state))
        expect_guest(link, message);
    else if (message->type == PS_APPLY && server->guest.holds_state)
        apply_guest_step(link, message);
    else if (message->type == PS_FETCH)
        give_back(link);
}

static void on_guest_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct guest_link *link = context;
    struct ps_message message = {0};
    struct error error = ERROR_INIT;
    bool awaits = link->server->guest_link == link && link->receiving;
    enum bulk_heard heard = bulk_hear(pieces, count, awaits ? &link->inbox : NULL, &message, &error);
    if (heard == BULK_HEARD_NOTHING)
        ps_message_answer_unread(stream, &error);
    else if (heard == BULK_HEARD_MESSAGE)
        hear_guest(link, &message);
    else if (heard == BULK_HEARD_ALL)
        take_guest(link);
    ps_message_release(&message);
}

static void on_guest_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct guest_link *link = context;
    if (link->server->guest_link == link) {
        link->server->guest_link = NULL;
        variables_copy_end(&link->server->guest_copy, &link->server->guest);
    }
    ps_message_release(&link->message);
    bulk_inbox_release(&link->inbox);
    free(link);
}

void mirror_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    struct guest_link *link = memory_allocate(1, sizeof *link);
    *link = (struct guest_link){.server = context, .stream = stream};
    *ret_events = (struct rpc_stream_events){.pieces = on_guest_pieces, .closed = on_guest_closed};
    *ret_context = link;
}

/* ---------------------------------------------------------------- life cycle */

static void wake(void *context)
{
    rpc_wake(((struct ps_server *)context)->rpc);
}

int mirror_start(struct ps_server *server, struct error *error)
{
    unsigned count = server->options.variables.placement->server_count;
    if (!server->options.backup || count < 2)
        return 0;
    struct mirror *mirror = memory_allocate(1, sizeof *mirror);
    mirror->server = server;
    mirror->end = &mirror->first;
    if (address_book_new(server->options.servers, count, wake, server, &mirror->book, error) < 0) {
        free(mirror);
        return -1;
    }
    const unsigned backup = backup_number(server);
    lookout_init(&mirror->lookout, &(struct lookout_options){.rpc = server->rpc,
                                                             .book = mirror->book,
                                                             .number = backup,
                                                             .seat = &server->options.servers[backup],
                                                             .job_uid = server->job_uid,
                                                             .every_ms = server->options.look_ms,
                                                             .found = leave_backup,
                                                             .context = mirror});
    server->mirror = mirror;
    return 0;
}

void mirror_stop(struct ps_server *server)
{
    if (server->mirror == NULL)
        return;
    address_book_free(server->mirror->book);
    server->mirror->book = NULL;
}

void mirror_free(struct ps_server *server)
{
    struct mirror *mirror = server->mirror;
    variables_release(&server->guest);
    variables_copy_release(&server->guest_copy);
    if (mirror == NULL)
        return;
    while (mirror->first != NULL) {
        struct pending *pending = mirror->first;
        mirror->first = pending->next;
        free(pending);
    }
    while (mirror->carriers != NULL) {
        struct carrier *carrier = mirror->carriers;
        mirror->carriers = carrier->next;
        free(carrier->bytes);
        free(carrier);
    }
    ps_message_release(&mirror->fetch);
    bulk_inbox_release(&mirror->inbox);
    variables_copy_release(&mirror->copy);
    free(mirror);
}
