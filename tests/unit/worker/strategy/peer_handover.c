/* SPDX-License-Identifier: Apache-2.0
 *
 * A state on its way from one peer to another: however large it is and however slowly it is taken, it arrives, and the
 * giver holds no copy of it.
 */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "tests/unit/worker/strategy/peer_counts.h"
#include "worker/comm/rpc.h"
#include "worker/strategy/peer_hub.h"
#include "worker/strategy/peer_message.h"

#define HOST "127.0.0.1"
#define VECTORS 2
#define ELEMENTS (12u << 20)
#define QUESTIONS 4
#define COUNTED 77
#define REFUSED_PORT 1

static struct world world_of(unsigned rank, uint16_t port)
{
    struct world world = {.generation = {1, 1, 1}, .rank = rank, .size = 2};
    for (unsigned i = 0; i < world.size; i++) {
        world.members[i] = i;
        world.incarnations[i] = 1;
        world.peers[i].port = port;
        snprintf(world.peers[i].address, sizeof world.peers[i].address, HOST);
    }
    return world;
}

/* ---- a hub */

struct place {
    float *vectors[VECTORS];
    struct training_state state;
    struct peer_replica *replica;
    struct peer_hub *hub;
};

static float value_of(unsigned vector, uint64_t place)
{
    return (float)(vector * 1000 + place % 997);
}

static void open_place(struct place *place, unsigned elements, uint16_t port)
{
    const struct peer_hub_options options = {
        .job_uid = "uid", .attempt = 1, .incarnation = 1, .seat = 0, .listen_address = HOST};
    struct error error = ERROR_INIT;
    *place = (struct place){.state = {.layout = {.elements = elements}, .optimizer_slots = VECTORS - 1}};
    for (unsigned v = 0; v < VECTORS; v++) {
        place->vectors[v] = memory_allocate(elements, sizeof(float));
        for (uint64_t i = 0; i < elements; i++)
            place->vectors[v][i] = value_of(v, i);
    }
    place->state.parameters = place->vectors[0];
    place->state.slots[0] = place->vectors[1];
    cr_assert_eq(peer_replica_new(&place->state, &place->replica, &error), 0, "%s", error.message);
    peer_replica_set_whole(place->replica, true);
    cr_assert_eq(peer_hub_open(&options, &place->hub, &error), 0, "%s", error.message);
    peer_hub_serve(place->hub, place->replica);
    const struct world world = world_of(0, port);
    peer_hub_set_world(place->hub, &world);
}

static void close_place(struct place *place)
{
    peer_hub_stop(place->hub);
    peer_hub_free(place->hub);
    peer_replica_free(place->replica);
    for (unsigned v = 0; v < VECTORS; v++)
        free(place->vectors[v]);
}

static void say(struct rpc_stream *stream, const struct peer_message *message)
{
    unsigned char bytes[2 * PEER_HEAD_MAX];
    size_t length = peer_message_encode(message, bytes, sizeof bytes);
    cr_assert_gt(length, 0);
    rpc_stream_send(stream, bytes, length);
}

/* ---- a peer that asks and asks again, and takes nothing until it is let */

struct asker {
    struct peer_hub *giver;
    struct rpc *rpc;
    struct rpc_stream *stream;
    uint16_t port;
    bool is_known, stood;
    sem_t stands, go, whole;
    uint64_t right[VECTORS], wrong;
};

/* On the thread that would send: what is behind the questions tells that these are out. */
static void stand(struct asker *asker, bool last)
{
    if (asker->stood || (!last && count_of(asker->giver, 1) != COUNTED))
        return;
    asker->stood = true;
    sem_post(&asker->stands);
    sem_wait(&asker->go);
}

static void take_part(struct asker *asker, const struct peer_message *part)
{
    const unsigned char *bytes = (const unsigned char *)part->floats;
    float value;
    stand(asker, part->last);
    if (part->serial != QUESTIONS)
        return;
    for (uint64_t i = 0; i < part->count; i++) {
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        bool is_right = value == value_of(part->vector, part->offset + i);
        asker->right[part->vector] += is_right;
        asker->wrong += !is_right;
    }
    if (part->last)
        sem_post(&asker->whole);
}

static void asker_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct asker *asker = context;
    struct peer_message message;
    cr_assert_eq(peer_message_decode(bytes, length, &message, NULL), 0);
    if (message.type == PEER_STATE)
        take_part(asker, &message);
    if (message.type != PEER_COUNTS || asker->is_known)
        return;
    asker->is_known = true;
    for (uint64_t serial = 1; serial <= QUESTIONS; serial++)
        say(stream, &(struct peer_message){.type = PEER_FETCH, .serial = serial});
    say(stream, &(struct peer_message){.type = PEER_COUNTS, .seats = 2, .counts = {0, COUNTED}});
}

static void asker_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    ((struct asker *)context)->stream = NULL;
}

/* Until the other side has heard of its world it closes the stream. */
static void asker_tick(void *context)
{
    static const struct rpc_stream_events events = {.message = asker_message, .closed = asker_closed};
    struct asker *asker = context;
    if (asker->stream != NULL)
        return;
    cr_assert_eq(
        rpc_stream_open(asker->rpc, HOST, asker->port, PEER_METHOD_EXCHANGE, 0, &events, asker, &asker->stream, NULL),
        0);
    say(asker->stream,
        &(struct peer_message){.type = PEER_HELLO, .job_uid = "uid", .attempt = 1, .incarnation = 1, .seat = 1});
}

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file != NULL && fscanf(file, "%*u %llu", &pages) == 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

Test(peer_handover, a_state_that_is_not_taken_is_not_queued_and_then_arrives, .timeout = 300)
{
    static struct asker asker;
    struct place giver;
    open_place(&giver, ELEMENTS, REFUSED_PORT);
    asker = (struct asker){.giver = giver.hub, .port = peer_hub_port(giver.hub)};
    sem_init(&asker.stands, 0, 0);
    sem_init(&asker.go, 0, 0);
    sem_init(&asker.whole, 0, 0);
    uint64_t before = resident_bytes();
    cr_assert_eq(rpc_new(asker_tick, &asker, 50, &asker.rpc, NULL), 0);
    rpc_start_ticks(asker.rpc);
    sem_wait(&asker.stands);
    uint64_t after = resident_bytes(), bytes = (uint64_t)VECTORS * ELEMENTS * sizeof(float);
    cr_expect_lt(after, before + bytes / 2, "%u questions for %llu MiB took %llu", QUESTIONS,
                 (unsigned long long)bytes >> 20, (unsigned long long)(after - before) >> 20);
    sem_post(&asker.go);
    sem_wait(&asker.whole);
    rpc_free(asker.rpc);
    for (unsigned v = 0; v < VECTORS; v++)
        cr_expect_eq(asker.right[v], ELEMENTS, "%llu of vector %u", (unsigned long long)asker.right[v], v);
    cr_expect_eq(asker.wrong, 0);
    close_place(&giver);
}

/* ---- a peer that gives one vector at a time, when it is told to */

struct giver {
    struct rpc *rpc;
    struct rpc_stream *stream;
    uint64_t serial;
    unsigned given;
    atomic_uint due;
};

static void giver_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct giver *giver = context;
    struct peer_message message;
    cr_assert_eq(peer_message_decode(bytes, length, &message, NULL), 0);
    if (message.type == PEER_HELLO)
        say(stream, &(struct peer_message){.type = PEER_COUNTS, .seats = 2, .counts = {0, COUNTED}});
    if (message.type != PEER_FETCH)
        return;
    giver->stream = stream;
    giver->serial = message.serial;
}

static void giver_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    ((struct giver *)context)->stream = NULL;
}

static void giver_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                         void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = giver_message, .closed = giver_closed};
    *ret_context = context;
}

static void giver_tick(void *context)
{
    static const float values[] = {5, 6, 7, 8};
    struct giver *giver = context;
    if (giver->stream == NULL || giver->given >= atomic_load(&giver->due))
        return;
    say(giver->stream, &(struct peer_message){.type = PEER_STATE,
                                              .serial = giver->serial,
                                              .vector = giver->given,
                                              .last = giver->given == VECTORS - 1,
                                              .count = 4,
                                              .floats = values});
    giver->given++;
}

Test(peer_handover, a_peer_that_has_said_a_part_is_not_silent, .timeout = 300)
{
    static const struct rpc_method method = {PEER_METHOD_EXCHANGE, giver_opened};
    static struct giver giver;
    static float fetched[VECTORS][4];
    static float *const vectors[] = {fetched[0], fetched[1]};
    struct rpc_server *listener;
    struct place own;
    cr_assert_eq(rpc_new(giver_tick, &giver, 10, &giver.rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(giver.rpc, HOST, 0, &method, 1, &giver, &listener, NULL), 0);
    rpc_start_ticks(giver.rpc);
    open_place(&own, 4, rpc_server_port(listener));
    while (count_of(own.hub, 1) != COUNTED) /* they know each other */
        usleep(10000);
    peer_hub_ask(own.hub, 1, vectors);
    while (peer_hub_silence_ms(own.hub) < 500)
        cr_assert_eq(peer_hub_answer(own.hub, 10), PEER_ANSWER_PENDING);
    int64_t told_ms = clock_monotonic_ms();
    atomic_store(&giver.due, 1);
    while (peer_hub_silence_ms(own.hub) > clock_monotonic_ms() - told_ms)
        cr_assert_eq(peer_hub_answer(own.hub, 10), PEER_ANSWER_PENDING);
    atomic_store(&giver.due, 2);
    enum peer_answer answer;
    while ((answer = peer_hub_answer(own.hub, 1000)) == PEER_ANSWER_PENDING)
        ;
    cr_assert_eq(answer, PEER_ANSWER_STATE);
    for (unsigned v = 0; v < VECTORS; v++)
        cr_expect(fetched[v][0] == 5 && fetched[v][3] == 8);
    close_place(&own);
    rpc_free(giver.rpc);
}
