/* SPDX-License-Identifier: Apache-2.0
 *
 * Two hubs in one process. Nobody waits for a peer that does not answer, but it is named.
 */
#include "worker/strategy/peer_hub.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buffer.h"
#include "tests/unit/worker/comm/foreign.h"
#include "tests/unit/worker/strategy/peer_counts.h"
#include "worker/strategy/peer_message.h"

#define COUNT 4
#define SEATS 2
#define HOST "127.0.0.1"
#define SUSPICION_MS 1 /* nobody is that fast */

struct place {
    float parameters[COUNT], slot[COUNT];
    struct training_state state;
    struct peer_replica *replica;
    struct peer_hub *hub;
};

static void open_place(struct place *place, unsigned seat)
{
    const struct peer_hub_options options = {.job_uid = "uid",
                                             .attempt = 1,
                                             .incarnation = 1,
                                             .seat = seat,
                                             .listen_address = HOST,
                                             .suspicion_ms = SUSPICION_MS};
    struct error error = ERROR_INIT;
    *place = (struct place){.state = {.layout = {.elements = COUNT}, .optimizer_slots = 1}};
    place->state.parameters = place->parameters;
    place->state.slots[0] = place->slot;
    cr_assert_eq(peer_replica_new(&place->state, &place->replica, &error), 0, "%s", error.message);
    peer_replica_set_whole(place->replica, true);
    cr_assert_eq(peer_hub_open(&options, &place->hub, &error), 0, "%s", error.message);
    peer_hub_serve(place->hub, place->replica);
}

static void close_place(struct place *place)
{
    peer_hub_stop(place->hub);
    peer_hub_free(place->hub);
    peer_replica_free(place->replica);
}

static struct world world_of(unsigned rank, const uint16_t ports[SEATS])
{
    struct world world = {.generation = {1, 1, 1}, .rank = rank, .size = SEATS};
    for (unsigned i = 0; i < SEATS; i++) {
        world.members[i] = i;
        world.incarnations[i] = 1;
        world.peers[i].port = ports[i];
        snprintf(world.peers[i].address, sizeof world.peers[i].address, HOST);
        snprintf(world.peers[i].name, sizeof world.peers[i].name, "worker %u", i);
    }
    return world;
}

static void expect_words(struct peer_hub *hub, uint16_t port, const char *what)
{
    char words[PEER_STALL_MAX], text[PEER_STALL_MAX] = "";
    snprintf(words, sizeof words, "rank 1 (worker 1, " HOST ":%u) %s", port, what);
    for (int look = 0; look < 600; look++) {
        if (peer_hub_take_stall(hub, text) && strstr(text, words))
            return;
        usleep(100000);
    }
    cr_expect_fail("not \"%s\": %s", words, text);
}

static void expect_stall(struct peer_hub *hub, uint16_t port, const char *what)
{
    char words[64];
    snprintf(words, sizeof words, "has not %s", what);
    expect_words(hub, port, words);
}

static void expect_count(struct peer_hub *hub, unsigned seat, int64_t examples)
{
    for (int look = 0; look < 6000 && count_of(hub, seat) != examples; look++)
        usleep(10000);
    cr_assert_eq(count_of(hub, seat), examples);
}

/* A kernel takes connections for a process that is frozen. */
static int listen_and_say_nothing(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 8) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    *ret_port = ntohs(address.sin_port);
    return listener;
}

Test(peer_hub, a_peer_that_is_frozen_before_it_answers_is_named, .timeout = 120)
{
    struct place own;
    uint16_t ports[SEATS];
    int listener = listen_and_say_nothing(&ports[1]);
    open_place(&own, 0);
    ports[0] = peer_hub_port(own.hub);
    struct world world = world_of(0, ports);
    peer_hub_set_world(own.hub, &world);
    expect_stall(own.hub, ports[1], "answered");
    close_place(&own);
    close(listener);
}

static void introduce(struct place *own, struct place *other)
{
    const uint16_t ports[SEATS] = {peer_hub_port(own->hub), peer_hub_port(other->hub)};
    const struct world here = world_of(0, ports), there = world_of(1, ports);
    peer_hub_set_world(other->hub, &there);
    peer_hub_set_world(own->hub, &here);
}

static void open_pair(struct place *own, struct place *other)
{
    open_place(own, 0);
    open_place(other, 1);
    introduce(own, other);
    peer_hub_count(other->hub, 3, 7);
    expect_count(own->hub, 3, 7); /* they know each other */
}

/* Its hub stands still where it would touch the replica. */
static void expect_stall_in(void (*ask)(struct peer_hub *hub), const char *what)
{
    struct place own, other;
    open_pair(&own, &other);
    peer_replica_lock(other.replica);
    ask(own.hub);
    expect_stall(own.hub, peer_hub_port(other.hub), what);
    peer_replica_unlock(other.replica);
    close_place(&own);
    close_place(&other);
}

static void send_change(struct peer_hub *hub)
{
    static const float change[COUNT] = {1, 2, 3, 4};
    peer_hub_publish(hub, change, 24);
}

static void meet(struct peer_hub *hub)
{
    peer_hub_meet(hub, 1);
}

static float fetched[2][COUNT];
static float *const vectors[] = {fetched[0], fetched[1]};

static void fetch(struct peer_hub *hub)
{
    peer_hub_ask(hub, 1, vectors);
}

Test(peer_hub, a_peer_that_is_frozen_when_it_is_sent_a_change_is_named, .timeout = 120)
{
    expect_stall_in(send_change, "taken a change");
}

Test(peer_hub, a_peer_that_is_frozen_in_a_meeting_is_named, .timeout = 120)
{
    expect_stall_in(meet, "answered a meeting");
}

Test(peer_hub, a_peer_that_is_frozen_when_it_is_asked_for_its_state_is_named, .timeout = 120)
{
    expect_stall_in(fetch, "given its state");
}

/* ---- counts */

static float value_of(struct place *place, unsigned i)
{
    float values[COUNT];
    peer_replica_lock(place->replica);
    peer_replica_read(place->replica, 0, 0, COUNT, values);
    peer_replica_unlock(place->replica);
    return values[i];
}

static void await_value(struct place *place, unsigned i, float value)
{
    for (int look = 0; look < 6000 && value_of(place, i) != value; look++)
        usleep(10000);
    cr_assert_eq(value_of(place, i), value);
}

/* The other has the change and the count at the same time. So a peer that is told of the count has it from a member that could go on
 * without this one. */
Test(peer_hub, examples_are_told_when_another_replica_has_them, .timeout = 120)
{
    struct place own, other;
    open_pair(&own, &other);
    peer_replica_lock(other.replica);
    send_change(own.hub);
    expect_stall(own.hub, peer_hub_port(other.hub), "taken a change");
    cr_expect_eq(count_of(own.hub, 0), 24);
    cr_expect_eq(count_of(other.hub, 0), 0, "nobody has it yet");
    peer_replica_unlock(other.replica);
    expect_count(other.hub, 0, 24);
    cr_expect_eq(value_of(&other, 3), 4);
    close_place(&own);
    close_place(&other);
}

Test(peer_hub, a_meeting_tells_both_what_they_have, .timeout = 120)
{
    struct place own, other;
    open_pair(&own, &other);
    peer_hub_count(own.hub, 0, 24);
    peer_hub_count(other.hub, 1, 48);
    meet(own.hub);
    expect_count(other.hub, 0, 24);
    expect_count(own.hub, 1, 48);
    close_place(&own);
    close_place(&other);
}

/* The other has dealt with what was sent it: a count may overtake a change, but not one that was sent with the count before. */
static void await_sent(struct place *own, struct place *other)
{
    for (int i = 0; i < 2; i++) {
        int64_t examples = count_of(own->hub, 2) + 1;
        peer_hub_count(own->hub, 2, examples);
        expect_count(other->hub, 2, examples);
    }
}

static void await_state(struct peer_hub *hub)
{
    enum peer_answer answer;
    fetch(hub);
    while ((answer = peer_hub_answer(hub, 1000)) == PEER_ANSWER_PENDING)
        ;
    cr_assert_eq(answer, PEER_ANSWER_STATE);
}

/* The members that announced it may all be gone, and the state with them. */
Test(peer_hub, what_a_newcomer_has_heard_before_its_state_is_void, .timeout = 120)
{
    struct place own, other;
    open_pair(&own, &other);
    peer_replica_set_whole(own.replica, false);
    peer_hub_count(own.hub, 5, 50);
    await_state(own.hub);
    peer_hub_adopt(own.hub);
    cr_expect_eq(count_of(own.hub, 3), 7, "what the giver knows");
    cr_expect_eq(count_of(own.hub, 5), 0);
    peer_replica_set_whole(own.replica, true);
    await_sent(&own, &other);
    cr_expect_eq(count_of(other.hub, 5), 0, "it has told nothing of it");
    close_place(&own);
    close_place(&other);
}

Test(peer_hub, what_was_heard_before_a_checkpoint_is_restored_is_void, .timeout = 120)
{
    struct place own;
    open_place(&own, 0);
    peer_replica_set_whole(own.replica, false);
    peer_hub_count(own.hub, 5, 50);
    peer_hub_count(own.hub, 0, 90);
    cr_expect_eq(peer_hub_restore(own.hub, (const int64_t[CREW_SIZE_MAX]){24, 8}), 50 + 90 - 24,
                 "what is told as lost");
    cr_expect_eq(count_of(own.hub, 0), 24);
    cr_expect_eq(peer_hub_total(own.hub), 24 + 8);
    cr_expect_eq(peer_hub_place(own.hub), 24);
    cr_expect_eq(peer_hub_lacking(own.hub), 0);
    close_place(&own);
}

/* A chief's successor that has not found them goes on from the checkpoint; they have trained on from there. */
static void open_restored(struct place *own, struct place *other, const int64_t others[CREW_SIZE_MAX])
{
    static const int64_t restored[CREW_SIZE_MAX] = {24, 32, 40};
    open_place(own, 0);
    open_place(other, 1);
    cr_expect_eq(peer_hub_restore(own->hub, restored), 0);
    (void)peer_hub_restore(other->hub, others);
    peer_hub_count(other->hub, 2, 64); /* it knows a replica with them */
    introduce(own, other);
    expect_count(own->hub, 2, 64); /* they know each other */
}

static const int64_t of_survivor[CREW_SIZE_MAX] = {48, 56, 40};

Test(peer_hub, a_successor_that_restores_counts_no_example_of_survivors_twice, .timeout = 120)
{
    struct place own, other;
    open_restored(&own, &other, of_survivor);
    cr_expect_eq(peer_hub_total(own.hub), 48 + 56 + 64);
    cr_expect_eq(peer_hub_place(own.hub), 24, "our replica has no more");
    peer_hub_count(own.hub, 0, 30);
    cr_expect_eq(count_of(own.hub, 0), 48, "they count since the forerunner took them");
    cr_expect_eq(peer_hub_place(own.hub), 30);
    meet(own.hub);
    for (int look = 0; look < 6000 && peer_hub_place(own.hub) == 30; look++)
        usleep(10000);
    cr_expect_eq(peer_hub_place(own.hub), 48, "our replica has now what the forerunner did");
    cr_expect_eq(peer_hub_lacking(own.hub), 64 - 40, "what a third has");
    peer_hub_count(own.hub, 0, 54);
    cr_expect_eq(peer_hub_total(own.hub), 54 + 56 + 64);
    close_place(&own);
    close_place(&other);
}

/* The change does not contain what the predecessor did in between. */
Test(peer_hub, a_change_from_before_a_leap_does_not_count_for_the_examples_between, .timeout = 120)
{
    static const float change[COUNT] = {1, 2, 3, 4};
    struct place own, other;
    open_restored(&own, &other, (int64_t[CREW_SIZE_MAX]){24, 56, 40});
    peer_replica_lock(other.replica);
    (void)peer_hub_place(own.hub);
    peer_hub_publish(own.hub, change, 30); /* on its way */
    expect_stall(own.hub, peer_hub_port(other.hub), "taken a change");
    (void)peer_hub_place(own.hub);
    peer_hub_publish(own.hub, change, 36); /* waits */
    (void)peer_hub_restore(own.hub, (int64_t[CREW_SIZE_MAX]){48, 56, 64});
    (void)peer_hub_place(own.hub);
    peer_hub_publish(own.hub, change, 54); /* waits with it */
    peer_replica_unlock(other.replica);
    await_value(&other, 0, 3);
    await_sent(&own, &other);
    cr_expect_lt(count_of(other.hub, 0), 54);
    close_place(&own);
    close_place(&other);
}

Test(peer_hub, a_state_that_is_adopted_brings_what_its_giver_has, .timeout = 120)
{
    struct place own, other;
    open_pair(&own, &other);
    peer_hub_count(other.hub, 1, 48);
    await_state(own.hub);
    cr_expect_eq(count_of(own.hub, 1), 0, "for a mean it is asked likewise");
    peer_hub_adopt(own.hub);
    cr_expect_eq(count_of(own.hub, 1), 48);
    close_place(&own);
    close_place(&other);
}

/* A newcomer's state is fetched in parts of many moments: it cannot say whether a change that came meanwhile is in it. */
Test(peer_hub, a_change_that_a_newcomer_cannot_keep_does_not_count_until_it_has_met, .timeout = 120)
{
    static const float change[COUNT] = {1, 2, 3, 4};
    struct place own, other;
    open_pair(&own, &other);
    peer_replica_set_whole(other.replica, false);
    peer_hub_publish(own.hub, change, 24);
    await_sent(&own, &other);
    cr_expect_eq(count_of(other.hub, 0), 0, "it has thrown the change away");
    peer_replica_set_whole(other.replica, true);
    peer_hub_publish(own.hub, change,
                     48); /* goes when the first is answered, and what is told of that goes before it */
    await_value(&other, 3, 4);
    await_sent(&own, &other);
    cr_expect_eq(count_of(other.hub, 0), 0, "it has this change, but not the one before it");
    meet(own.hub);
    expect_count(other.hub, 0, 48);
    peer_hub_publish(own.hub, change, 72);
    expect_count(other.hub, 0, 72);
    close_place(&own);
    close_place(&other);
}

/* ---- a peer that loses the first update with its stream, has the second without the first, and then all */

struct loser {
    sem_t heard;
    unsigned updates;
    int64_t froms[3], told[3]; /* where each update begins, and the count that was announced when it arrived */
    int64_t known;
};

static void answer(struct rpc_stream *stream, const struct peer_message *message)
{
    unsigned char bytes[PEER_HEAD_MAX];
    rpc_stream_send(stream, bytes, peer_message_encode(message, bytes, sizeof bytes));
}

static void lose_update(struct loser *loser, struct rpc_stream *stream, const struct peer_message *update)
{
    unsigned number = loser->updates++;
    cr_assert_lt(number, 3);
    loser->froms[number] = update->from;
    loser->told[number] = loser->known;
    if (number == 0)
        rpc_stream_close(stream);
    else
        answer(stream, &(struct peer_message){.type = number == 1 ? PEER_NOTHING : PEER_TAKEN});
    sem_post(&loser->heard);
}

static void loser_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct loser *loser = context;
    struct peer_message message;
    cr_assert_eq(peer_message_decode(bytes, length, &message, NULL), 0);
    if (message.type == PEER_HELLO)
        answer(stream, &(struct peer_message){.type = PEER_COUNTS, .seats = SEATS, .counts = {0, 7}});
    if (message.type == PEER_UPDATE)
        lose_update(loser, stream, &message);
    if (message.type != PEER_COUNTS)
        return;
    loser->known = message.counts[0];
    if (loser->known == 72)
        sem_post(&loser->heard);
}

static void loser_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)context, (void)stream, (void)error;
}

static void loser_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                         void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = loser_message, .closed = loser_closed};
    *ret_context = context;
}

Test(peer_hub, an_update_that_is_lost_is_told_by_where_the_next_begins, .timeout = 120)
{
    static const struct rpc_method method = {PEER_METHOD_EXCHANGE, loser_opened};
    static const float change[COUNT] = {1, 2, 3, 4};
    static struct loser loser;
    struct place own;
    struct rpc *rpc;
    struct rpc_server *listener;
    sem_init(&loser.heard, 0, 0);
    cr_assert_eq(rpc_new(NULL, NULL, 1000, &rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(rpc, HOST, 0, &method, 1, &loser, &listener, NULL), 0);
    open_place(&own, 0);
    const uint16_t ports[SEATS] = {peer_hub_port(own.hub), rpc_server_port(listener)};
    struct world world = world_of(0, ports);
    peer_hub_set_world(own.hub, &world);
    expect_count(own.hub, 1, 7); /* they know each other */
    for (int64_t finished = 24; finished <= 72; finished += 24) {
        peer_hub_publish(own.hub, change, finished);
        sem_wait(&loser.heard);
    }
    sem_wait(&loser.heard); /* it is told that all count */
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(loser.froms[i], 24l * i);
        cr_expect_eq(loser.told[i], 0);
    }
    close_place(&own);
    rpc_free(rpc);
}

/* ---- a peer of another version, at the address of one that has joined */

static void expect_version_named(bool silent_first)
{
    static const struct rpc_method method = {PEER_METHOD_EXCHANGE, foreign_opened};
    unsigned char bytes[PEER_HEAD_MAX];
    size_t length = peer_message_encode(&(struct peer_message){.type = PEER_TAKEN}, bytes, sizeof bytes);
    struct buffer taken = {.data = (char *)bytes, .length = length};
    struct place own;
    struct rpc *rpc;
    struct rpc_server *listener;
    foreign_message(bytes, length);
    cr_assert_eq(rpc_new(NULL, NULL, 1000, &rpc, NULL), 0);
    open_place(&own, 0);
    uint16_t ports[SEATS] = {peer_hub_port(own.hub)};
    int silent = listen_and_say_nothing(&ports[1]);
    struct world world = world_of(0, ports);
    if (silent_first) {
        peer_hub_set_world(own.hub, &world);
        expect_stall(own.hub, ports[1], "answered");
    }
    close(silent);
    cr_assert_eq(rpc_server_start(rpc, HOST, ports[1], &method, 1, &taken, &listener, NULL), 0);
    peer_hub_set_world(own.hub, &world);
    expect_words(own.hub, ports[1], "is not heard: the other side speaks version");
    close_place(&own);
    rpc_free(rpc);
}

Test(peer_hub, a_peer_of_another_version_is_named, .timeout = 120)
{
    expect_version_named(false);
}

Test(peer_hub, a_peer_of_another_version_is_named_also_when_it_was_silent_before, .timeout = 120)
{
    expect_version_named(true);
}
