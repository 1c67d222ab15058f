/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/chief.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/coordination/address_book.h"

#define LINKS_MAX (4 * CREW_SIZE_MAX)
#define SUMMON_EVERY_MS 250
#define SUMMON_LIFETIME_MS 2000

struct chief_link {
    struct chief_link *next;
    struct chief *chief;
    coordinator_link id;
    struct rpc_stream *stream;
};

/* A call to the member of an empty seat. */
struct summon {
    struct chief *chief;
    unsigned rank;
    struct rpc_stream *stream; /* NULL: none under way */
    int64_t next_ms;
};

struct chief {
    struct chief_options options;
    struct crew_seat seats[CREW_SIZE_MAX];
    struct coordinator *coordinator;
    struct chief_link *links;
    unsigned link_count;
    coordinator_link next_id;
    struct summon summons[CREW_SIZE_MAX];
    int64_t next_beat_ms;
};

static void stream_say(struct rpc_stream *stream, const struct coordination_message *message)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    if (coordination_message_encode(message, &bytes, NULL) == 0)
        rpc_stream_send(stream, bytes.data, bytes.length);
}

/* ---------------------------------------------------------------- members' streams */

static void coordinator_says(void *context, coordinator_link id, const struct coordination_message *message, bool close)
{
    struct chief *chief = context;
    if (id == CHIEF_OWN_LINK) {
        chief->options.told(chief->options.context, message);
        return;
    }
    for (struct chief_link *link = chief->links; link != NULL; link = link->next) {
        if (link->id != id)
            continue;
        stream_say(link->stream, message);
        if (close)
            rpc_stream_close(link->stream);
        return;
    }
}

/* Every message carries the protocol's number, so a refusal also tells the other side which protocol this chief speaks. */
static void refuse_stranger(struct rpc_stream *stream, const char *why)
{
    struct coordination_message refusal = {.type = COORDINATION_REFUSED, .refusal = REFUSE_BAD_SEAT};
    snprintf(refusal.text, sizeof(refusal.text), "%.250s", why);
    stream_say(stream, &refusal);
}

/* A pod can join as itself only: what its connection has proven must be what its message claims. */
static int check_claim(const struct chief *chief, const struct rpc_stream *stream,
                       const struct coordination_message *join, struct error *error)
{
    const struct pod_identity *caller = rpc_stream_caller(stream);
    if (caller == NULL || join->rank >= chief->options.coordinator.size)
        return 0; /* without a key nothing is proven; the coordinator refuses the rank */
    const struct crew_seat *seat = &chief->seats[join->rank];
    if (strcmp(caller->role, seat->role) == 0 && caller->index == seat->index &&
        caller->attempt == join->generation.attempt && caller->incarnation == join->generation.incarnation)
        return 0;
    return error_set(error, ERROR_FORBIDDEN,
                     "a pod can join only as itself: this connection belongs to %s %u, attempt %u, incarnation %u, and "
                     "cannot join as %s %u, attempt %u, incarnation %u",
                     caller->role, caller->index, caller->attempt, caller->incarnation, seat->role, seat->index,
                     join->generation.attempt, join->generation.incarnation);
}

static void link_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct chief_link *link = context;
    struct coordination_message message;
    struct error error = ERROR_INIT;
    if (coordination_message_decode(bytes, length, &message, &error) == 0 &&
        (message.type != COORDINATION_JOIN || check_claim(link->chief, stream, &message, &error) == 0)) {
        coordinator_receive(link->chief->coordinator, link->id, &message, clock_monotonic_ms());
        return;
    }
    if (error.kind == ERROR_UNSUPPORTED || error.kind == ERROR_FORBIDDEN)
        refuse_stranger(stream, error.message);
    rpc_stream_close(stream);
}

static void link_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct chief_link *link = context;
    struct chief *chief = link->chief;
    for (struct chief_link **place = &chief->links; *place != NULL; place = &(*place)->next) {
        if (*place == link) {
            *place = link->next;
            break;
        }
    }
    chief->link_count--;
    coordinator_link_closed(chief->coordinator, link->id, "connection closed", clock_monotonic_ms());
    free(link);
}

void chief_accept(struct chief *chief, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                  void **ret_context)
{
    struct chief_link *link = memory_allocate(1, sizeof(*link));
    *link = (struct chief_link){.next = chief->links, .chief = chief, .id = chief->next_id++, .stream = stream};
    chief->links = link;
    chief->link_count++;
    *ret_events = (struct rpc_stream_events){.message = link_message, .closed = link_closed};
    *ret_context = link;
    if (chief->link_count > LINKS_MAX)
        rpc_stream_close(stream);
}

/* ---------------------------------------------------------------- calling members */

static void summon_answered(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)stream;
    struct summon *summon = context;
    struct coordination_message answer;
    if (coordination_message_decode(bytes, length, &answer, NULL) == 0 && answer.type == COORDINATION_SUMMONED &&
        answer.refusal == REFUSE_STALE)
        summon->chief->options.superseded(summon->chief->options.context, answer.text);
}

static void summon_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream;
    struct summon *summon = context;
    summon->stream = NULL;
    if (error != NULL && error->kind == ERROR_NOT_FOUND)
        coordinator_seat_absent(summon->chief->coordinator, summon->rank, clock_monotonic_ms());
}

static void summon_start(struct chief *chief, unsigned rank, const char *address)
{
    static const struct rpc_stream_events events = {.message = summon_answered, .closed = summon_closed};
    struct summon *summon = &chief->summons[rank];
    if (rpc_stream_open(chief->options.rpc, address, chief->seats[rank].port, CREW_METHOD_SUMMON, SUMMON_LIFETIME_MS,
                        &events, summon, &summon->stream, NULL) < 0)
        return;
    struct coordination_message message = {
        .type = COORDINATION_SUMMON, .generation = chief->options.coordinator.generation, .peer = chief->options.where};
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", chief->options.coordinator.job_uid);
    stream_say(summon->stream, &message);
}

static void summon_the_missing(struct chief *chief, int64_t now)
{
    for (unsigned rank = 1; rank < chief->options.coordinator.size; rank++) {
        struct summon *summon = &chief->summons[rank];
        char address[RESOLVE_ADDRESS_MAX];
        if (!coordinator_seat_missing(chief->coordinator, rank) || summon->stream != NULL || now < summon->next_ms)
            continue;
        if (!address_book_ask(chief->options.book, rank, address)) {
            if (address_book_lacks(chief->options.book, rank))
                coordinator_seat_absent(chief->coordinator, rank, now);
            continue;
        }
        summon->next_ms = now + SUMMON_EVERY_MS;
        summon_start(chief, rank, address);
    }
}

/* ---------------------------------------------------------------- the rest */

void chief_hear(struct chief *chief, const struct coordination_message *message)
{
    coordinator_receive(chief->coordinator, CHIEF_OWN_LINK, message, clock_monotonic_ms());
}

static void beat(struct chief *chief, int64_t now)
{
    if (now < chief->next_beat_ms)
        return;
    chief->next_beat_ms = now + chief->options.beat_ms;
    struct coordination_message message = {.type = COORDINATION_BEAT,
                                           .generation = chief->options.coordinator.generation};
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", chief->options.coordinator.job_uid);
    for (struct chief_link *link = chief->links; link != NULL; link = link->next)
        stream_say(link->stream, &message);
    chief_hear(chief, &message);
}

void chief_tick(struct chief *chief)
{
    int64_t now = clock_monotonic_ms();
    beat(chief, now);
    coordinator_tick(chief->coordinator, rpc_read_until_ms(chief->options.rpc), now);
    summon_the_missing(chief, now);
}

unsigned chief_newcomers(const struct chief *chief)
{
    return coordinator_newcomers(chief->coordinator);
}

bool chief_seats(const struct chief *chief, unsigned seat, uint32_t *ret_incarnation)
{
    *ret_incarnation = coordinator_seat_incarnation(chief->coordinator, seat);
    return !coordinator_seat_empty(chief->coordinator, seat);
}

bool chief_is_alone(const struct chief *chief)
{
    for (unsigned rank = 1; rank < chief->options.coordinator.size; rank++)
        if (!coordinator_seat_empty(chief->coordinator, rank))
            return false;
    return true;
}

struct chief *chief_new(const struct chief_options *options)
{
    struct chief *chief = memory_allocate(1, sizeof(*chief));
    chief->options = *options;
    for (unsigned rank = 0; rank < options->coordinator.size; rank++) {
        chief->seats[rank] = options->coordinator.seats[rank];
        chief->summons[rank] = (struct summon){.chief = chief, .rank = rank};
    }
    chief->next_id = CHIEF_OWN_LINK + 1;
    struct coordinator_options mind = options->coordinator;
    mind.send = coordinator_says;
    mind.context = chief;
    chief->coordinator = coordinator_new(&mind);
    return chief;
}

void chief_free(struct chief *chief)
{
    if (chief == NULL)
        return;
    coordinator_free(chief->coordinator);
    free(chief);
}
