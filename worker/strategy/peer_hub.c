/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_hub.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/rpc.h"
#include "worker/data/step_record.h"
#include "worker/strategy/peer_ledger.h"

#define TICK_MS 100
#define REDIAL_MS 100
#define CALLERS_MAX (4 * CREW_SIZE_MAX)
#define SUSPICION_MS_DEFAULT 2000

/* A stream that a peer has opened to us. */
struct caller {
    struct caller *next;
    struct peer_hub *hub;
    struct rpc_stream *stream;
    bool greeted;
    uint32_t seat, incarnation;
    /* The state that it has asked for: what has been handed over of each vector. */
    bool takes_state;
    uint64_t serial, given;
    struct holdings given_holdings;
    /* The meeting that it has asked for: what our parts in it hold. */
    uint64_t meeting;
    bool meets;
    struct holdings met_holdings;
    bool drops; /* of the update that comes, a part was dropped */
};

/* One seat's peer: the stream to it, and what is to be sent to it. */
struct peer {
    struct peer_hub *hub;
    /* The rpc's thread only. */
    struct rpc_stream *stream;
    bool told_done;
    bool is_replaced;   /* its stream is being closed, for another sits there now */
    bool stall_told;    /* it was named, and has answered nothing in good time since */
    bool stranger_told; /* it was named as one of another protocol */
    int64_t sent_count; /* of our examples, with the change in flight */
    int64_t told_total, next_dial_ms;
    int64_t asked_ms; /* when it was greeted, or sent the change in flight */
    /* The number of own examples in what was sent to it in meetings, beginning with the meeting `met_serial`. */
    int64_t met_count;
    uint64_t met_serial;
    /* With the lock held; that thread, which alone writes them, reads without. */
    bool ready;     /* it has greeted us */
    bool in_flight; /* a change that it has not taken yet */
    /* With the lock held. */
    bool in_world;
    float *pending; /* changes that wait; NULL: never any */
    bool dirty;
    int64_t pending_from,
        pending_to; /* the own examples in `pending`: those after the first `pending_from`, up to `pending_to` */
};

enum request_state { REQUEST_NONE, REQUEST_WANTED, REQUEST_ASKED, REQUEST_DONE, REQUEST_NOTHING, REQUEST_FAILED };

/* A meeting or a fetch: one question to one peer at a time. With the lock held. */
struct request {
    enum request_state state;
    unsigned seat;
    uint64_t serial;
    int64_t heard_ms; /* when it was wanted, asked, or last said a part of the answer */
};

struct peer_hub {
    struct peer_hub_options options;
    char job_uid[PEER_UID_MAX];
    struct rpc *rpc;
    struct rpc_server *server;
    struct peer_replica *replica;

    /* The rpc's thread only. */
    struct caller *callers;
    unsigned caller_count;
    struct world world;
    unsigned char *bytes; /* one message */
    float *part, *other;  /* one part of a vector */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct peer peers[CREW_SIZE_MAX]; /* by seat */
    struct world next_world;
    bool world_changed;
    struct peer_ledger ledger;
    struct request meeting, fetch;
    float *sent; /* of the meeting */
    float *const *fetched;
    struct holdings fetched_holdings;
    uint64_t next_serial;
    bool say_done, done, serves;
    char stall[PEER_STALL_MAX]; /* "": no news */
};

/* ---------------------------------------------------------------- speaking */

static void say(struct peer_hub *hub, struct rpc_stream *stream, const struct peer_message *message)
{
    size_t length = peer_message_encode(message, hub->bytes, RPC_MESSAGE_MAX);
    if (length > 0)
        rpc_stream_send(stream, hub->bytes, length);
}

/* ---- the counts */

static struct holdings copy_holdings(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    const struct holdings holdings = peer_ledger_holdings(&hub->ledger);
    return holdings;
}

/* With the lock held, before it is so. */
static void record_held(const struct peer_hub *hub, const int64_t counts[CREW_SIZE_MAX])
{
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        if (seat != hub->options.seat && counts[seat] > hub->ledger.held.counts[seat])
            step_record_peer("has", seat, counts[seat]);
}

/* Our replica has taken in what has these. */
static void hold_also(struct peer_hub *hub, const int64_t counts[CREW_SIZE_MAX])
{
    SCOPED_LOCK(&hub->lock);
    record_held(hub, counts);
    peer_ledger_merge_held(&hub->ledger, counts);
}

/* Called when this replica has added a seat's update. Returns whether it now has all examples that the seat has announced with it. It
 * lacks some if an earlier update was lost, with a stream or with a newcomer's fetch; later updates do not make up for that, but a
 * meeting does. */
static bool hold_update(struct peer_hub *hub, unsigned seat, const struct peer_message *update)
{
    pthread_mutex_lock(&hub->lock);
    bool joins_on = seat < CREW_SIZE_MAX && hub->ledger.held.counts[seat] >= update->from;
    pthread_mutex_unlock(&hub->lock);
    if (joins_on)
        hold_also(hub, update->counts);
    return joins_on;
}

/* Records that another replica has the first `count` own examples. */
static void note_handed(struct peer_hub *hub, int64_t count)
{
    pthread_mutex_lock(&hub->lock);
    peer_ledger_mark_replicated(&hub->ledger, count);
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

static void put_holdings(struct peer_message *message, const struct holdings *holdings)
{
    message->seats = CREW_SIZE_MAX;
    memcpy(message->counts, holdings->counts, sizeof(message->counts));
}

/* With the lock held. A member that dies must only take unannounced examples with it. A member without a replica announces nothing,
 * because what it was told may be lost with the replicas of those that told it. */
static struct holdings counts_to_tell(const struct peer_hub *hub)
{
    return peer_replica_is_whole(hub->replica) ? peer_ledger_announced(&hub->ledger) : (struct holdings){{0}};
}

static int64_t total_to_tell(struct peer_hub *hub)
{
    int64_t total = 0;
    pthread_mutex_lock(&hub->lock);
    const struct holdings told = counts_to_tell(hub);
    pthread_mutex_unlock(&hub->lock);
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        total += told.counts[seat];
    return total;
}

static void say_counts(struct peer_hub *hub, struct rpc_stream *stream)
{
    struct peer_message message = {.type = PEER_COUNTS};
    pthread_mutex_lock(&hub->lock);
    const struct holdings told = counts_to_tell(hub);
    pthread_mutex_unlock(&hub->lock);
    put_holdings(&message, &told);
    say(hub, stream, &message);
}

/* A whole vector in parts. */
static void say_vector(struct peer_hub *hub, struct rpc_stream *stream, struct peer_message *message,
                       const float *values)
{
    uint64_t elements = peer_replica_elements(hub->replica);
    for (message->offset = 0; message->offset < elements; message->offset += message->count) {
        uint64_t left = elements - message->offset;
        message->count = left < PEER_PART_MAX ? left : PEER_PART_MAX;
        message->last = message->count == left;
        message->floats = values + message->offset;
        say(hub, stream, message);
    }
}

/* ---------------------------------------------------------------- peers that do not answer */

static bool is_long(const struct peer_hub *hub, int64_t since_ms)
{
    int64_t suspicion = hub->options.suspicion_ms;
    return clock_monotonic_ms() - since_ms >= (suspicion > 0 ? suspicion : SUSPICION_MS_DEFAULT);
}

/* With the lock held. */
static bool request_stalls(const struct peer_hub *hub, const struct request *request, unsigned seat)
{
    return request->state == REQUEST_ASKED && request->seat == seat && is_long(hub, request->heard_ms);
}

/* With the lock held. Returns what the peer has failed to do in time; NULL: nothing. */
static const char *overdue(const struct peer_hub *hub, unsigned seat)
{
    const struct peer *peer = &hub->peers[seat];
    if (request_stalls(hub, &hub->meeting, seat))
        return "answered a meeting";
    if (request_stalls(hub, &hub->fetch, seat))
        return "given its state";
    if (peer->stream == NULL || (peer->ready && !peer->in_flight) || !is_long(hub, peer->asked_ms))
        return NULL;
    return peer->ready ? "taken a change" : "answered";
}

/* The trainer takes one at a time. */
static void look_at(struct peer_hub *hub, unsigned rank)
{
    struct peer *peer = &hub->peers[hub->world.members[rank]];
    char name[COLLECTIVE_PEER_TEXT_MAX];
    SCOPED_LOCK(&hub->lock);
    const char *what = overdue(hub, hub->world.members[rank]);
    if (what != NULL && !peer->stall_told && hub->stall[0] == '\0') {
        collective_peer_describe(hub->world.peers, rank, name);
        snprintf(hub->stall, sizeof(hub->stall), "%s has not %s for a while; training goes on without", name, what);
        peer->stall_told = true;
    }
}

/* Called when an answer is complete. A peer that has answered in time is reported again if it stops answering. */
static void note_answer(struct peer *peer, int64_t asked_ms)
{
    if (!is_long(peer->hub, asked_ms))
        peer->stall_told = false;
}

/* ---------------------------------------------------------------- requests; with the lock held */

static void request_end(struct peer_hub *hub, struct request *request, enum request_state state)
{
    request->state = state;
    pthread_cond_broadcast(&hub->changed);
}

static void request_ask(struct request *request)
{
    request->state = REQUEST_ASKED;
    request->heard_ms = clock_monotonic_ms();
}

/* A part of the answer; whether it was the last. */
static void request_hear(struct peer *peer, struct request *request, bool last)
{
    if (last)
        note_answer(peer, request->heard_ms);
    request->heard_ms = clock_monotonic_ms();
}

/* Called when the seat's peer is gone. A fetch that was not sent yet can still be sent to a successor. */
static void requests_fail(struct peer_hub *hub, unsigned seat, bool has_successor)
{
    if (hub->meeting.state != REQUEST_NONE && hub->meeting.seat == seat)
        request_end(hub, &hub->meeting, REQUEST_NONE);
    bool wanted = hub->fetch.state == REQUEST_WANTED && !has_successor;
    if ((wanted || hub->fetch.state == REQUEST_ASKED) && hub->fetch.seat == seat)
        request_end(hub, &hub->fetch, REQUEST_FAILED);
}

static bool request_is(const struct request *request, const struct peer *peer, uint64_t serial)
{
    return request->state == REQUEST_ASKED && request->serial == serial &&
           request->seat == (unsigned)(peer - peer->hub->peers);
}

/* Unless it is none of theirs any more. */
static void request_end_with(struct peer *peer, struct request *request, uint64_t serial, enum request_state state)
{
    if (request_is(request, peer, serial))
        request_end(peer->hub, request, state);
}

/* ---------------------------------------------------------------- hearing */

static void merge_counts(struct peer_hub *hub, const struct peer_message *message)
{
    SCOPED_LOCK(&hub->lock);
    peer_ledger_merge_announced(&hub->ledger, message->counts);
}

/* The floats of a message, aligned. */
static const float *take_part(struct peer_hub *hub, const struct peer_message *message)
{
    if (message->count > 0)
        memcpy(hub->part, message->floats, message->count * sizeof(float));
    return hub->part;
}

/* Handles answers to a meeting that was given up: the peer has moved to the mean nevertheless. */
static void hear_late_meeting(struct peer *peer, const struct peer_message *message)
{
    if (message->last && message->serial >= peer->met_serial)
        note_handed(peer->hub, peer->met_count);
}

static void hear_meeting(struct peer *peer, const struct peer_message *message)
{
    struct peer_hub *hub = peer->hub;
    pthread_mutex_lock(&hub->lock);
    bool ours = request_is(&hub->meeting, peer, message->serial);
    pthread_mutex_unlock(&hub->lock);
    if (!ours) {
        hear_late_meeting(peer, message);
        return;
    }
    peer_replica_settle(hub->replica, message->offset, message->count, hub->sent, take_part(hub, message));
    pthread_mutex_lock(&hub->lock);
    if (request_is(&hub->meeting, peer, message->serial)) /* the trainer may have given it up while this was settled */
        request_hear(peer, &hub->meeting, message->last);
    pthread_mutex_unlock(&hub->lock);
    if (!message->last)
        return;
    hold_also(hub, message->counts);
    note_handed(hub, peer->met_count);
    pthread_mutex_lock(&hub->lock);
    request_end_with(peer, &hub->meeting, message->serial, REQUEST_NONE);
    pthread_mutex_unlock(&hub->lock);
    say(hub, peer->stream, &(struct peer_message){.type = PEER_TAKEN, .serial = message->serial});
}

static void hear_state(struct peer *peer, const struct peer_message *message)
{
    struct peer_hub *hub = peer->hub;
    uint64_t elements = peer_replica_elements(hub->replica);
    bool fits = message->vector < peer_replica_vectors(hub->replica) && message->offset <= elements &&
                message->count <= elements - message->offset;
    SCOPED_LOCK(&hub->lock);
    if (request_is(&hub->fetch, peer, message->serial)) {
        request_hear(peer, &hub->fetch, message->last);
        if (fits && message->count > 0)
            memcpy(hub->fetched[message->vector] + message->offset, message->floats, message->count * sizeof(float));
        if (message->last)
            memcpy(hub->fetched_holdings.counts, message->counts, sizeof(message->counts));
        if (!fits || message->last)
            request_end(hub, &hub->fetch, fits ? REQUEST_DONE : REQUEST_FAILED);
    }
}

static void land(struct peer *peer)
{
    SCOPED_LOCK(&peer->hub->lock);
    peer->in_flight = false;
    pthread_cond_broadcast(&peer->hub->changed);
}

static void set_ready(struct peer *peer)
{
    SCOPED_LOCK(&peer->hub->lock);
    peer->ready = true;
}

/* With the lock held: the stream to it is, or is about to be, no more. */
static void lose_peer(struct peer *peer, bool has_successor)
{
    peer->ready = false;
    peer->in_flight = false;
    requests_fail(peer->hub, (unsigned)(peer - peer->hub->peers), has_successor);
    pthread_cond_broadcast(&peer->hub->changed);
}

static void end_update(struct peer *peer, bool is_held)
{
    note_answer(peer, peer->asked_ms);
    if (peer->in_flight && is_held)
        note_handed(peer->hub, peer->sent_count);
    land(peer);
    rpc_wake(peer->hub->rpc);
}

static void hear_nothing(struct peer *peer, const struct peer_message *message)
{
    struct peer_hub *hub = peer->hub;
    if (message->serial == 0) {
        end_update(peer, false);
        return;
    }
    if (message->serial >= peer->met_serial)
        peer->met_serial = message->serial + 1;
    SCOPED_LOCK(&hub->lock);
    request_end_with(peer, &hub->fetch, message->serial, REQUEST_NOTHING);
    request_end_with(peer, &hub->meeting, message->serial, REQUEST_NONE);
}

static int rank_of_seat(const struct world *world, uint32_t seat)
{
    for (unsigned rank = 0; rank < world->size; rank++)
        if (world->members[rank] == seat)
            return (int)rank;
    return -1;
}

/* One of another protocol cannot have joined this crew, but it may sit at the address of one that had. */
static void name_stranger(struct peer *peer, const char *why)
{
    struct peer_hub *hub = peer->hub;
    int rank = rank_of_seat(&hub->world, (uint32_t)(peer - hub->peers));
    char name[COLLECTIVE_PEER_TEXT_MAX];
    SCOPED_LOCK(&hub->lock);
    if (rank >= 0 && !peer->stranger_told && hub->stall[0] == '\0') {
        collective_peer_describe(hub->world.peers, (unsigned)rank, name);
        snprintf(hub->stall, sizeof(hub->stall), "%s is not heard: %.300s", name, why);
        peer->stranger_told = peer->stall_told = true;
    }
}

/* Answers on our own stream. */
static void peer_message_came(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct peer *peer = context;
    struct peer_message message;
    struct error error = ERROR_INIT;
    if (peer_message_decode(bytes, length, &message, &error) < 0) {
        if (error.kind == ERROR_UNSUPPORTED)
            name_stranger(peer, error.message);
        rpc_stream_close(stream);
        return;
    }
    switch (message.type) {
    case PEER_COUNTS:
        peer->stall_told &= peer->ready; /* one that was long in greeting is named again should it stop */
        set_ready(peer);
        merge_counts(peer->hub, &message);
        rpc_wake(peer->hub->rpc);
        break;
    case PEER_TAKEN:
        end_update(peer, true);
        break;
    case PEER_AVERAGE:
        hear_meeting(peer, &message);
        break;
    case PEER_STATE:
        hear_state(peer, &message);
        break;
    case PEER_NOTHING:
        hear_nothing(peer, &message);
        break;
    default:
        rpc_stream_close(stream);
    }
}

static void peer_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct peer *peer = context;
    struct peer_hub *hub = peer->hub;
    peer->stream = NULL;
    peer->told_done = false;
    peer->next_dial_ms = clock_monotonic_ms() + REDIAL_MS;
    pthread_mutex_lock(&hub->lock);
    lose_peer(peer, peer->is_replaced);
    pthread_mutex_unlock(&hub->lock);
    peer->is_replaced = false;
}

/* ---------------------------------------------------------------- callers */

static bool is_member(const struct peer_hub *hub, uint32_t seat, uint32_t incarnation)
{
    int rank = rank_of_seat(&hub->world, seat);
    return rank >= 0 && hub->world.incarnations[rank] == incarnation;
}

static bool greet(struct caller *caller, const struct peer_message *hello)
{
    struct peer_hub *hub = caller->hub;
    caller->seat = hello->seat;
    caller->incarnation = hello->incarnation;
    caller->greeted = strcmp(hello->job_uid, hub->job_uid) == 0 && hello->attempt == hub->options.attempt &&
                      is_member(hub, hello->seat, hello->incarnation);
    if (caller->greeted)
        say_counts(hub, caller->stream);
    return caller->greeted;
}

static void take_update(struct caller *caller, const struct peer_message *message)
{
    struct peer_hub *hub = caller->hub;
    bool added = peer_replica_add(hub->replica, message->offset, message->count, take_part(hub, message));
    caller->drops = !added || (message->offset > 0 && caller->drops);
    if (!message->last)
        return;
    bool is_held = !caller->drops && hold_update(hub, caller->seat, message);
    say(hub, caller->stream, &(struct peer_message){.type = is_held ? PEER_TAKEN : PEER_NOTHING});
}

static void meet_caller(struct caller *caller, const struct peer_message *message)
{
    struct peer_hub *hub = caller->hub;
    struct peer_message answer = *message;
    if (message->offset == 0) {
        caller->meets = true;
        caller->meeting = message->serial;
        caller->met_holdings = copy_holdings(hub); /* before the first part: nothing is in it that a part lacks */
    }
    answer.floats = hub->other;
    put_holdings(&answer, &caller->met_holdings);
    bool met = peer_replica_meet(hub->replica, message->offset, message->count, take_part(hub, message), hub->other);
    caller->meets &= met && caller->meeting == message->serial;
    if (message->last && caller->meets)
        hold_also(hub, message->counts);
    say(hub, caller->stream, met ? &answer : &(struct peer_message){.type = PEER_NOTHING, .serial = message->serial});
}

/* It has our parts of a meeting. */
static void end_meeting(struct caller *caller, uint64_t serial)
{
    struct peer_hub *hub = caller->hub;
    if (!caller->meets || caller->meeting != serial)
        return;
    caller->meets = false;
    note_handed(hub, caller->met_holdings.counts[hub->options.seat]);
}

/* The next part of each vector, of the same moment: what belongs to a weight stays together. The parts are of many moments, as the
 * stream takes them: nothing is queued for a slow one, and training waits for one part at most. Where the device
 * has failed the asker hears no more of us. */
static void give_parts(struct caller *caller)
{
    struct peer_hub *hub = caller->hub;
    uint64_t elements = peer_replica_elements(hub->replica), left = elements - caller->given;
    unsigned vectors = peer_replica_vectors(hub->replica);
    struct peer_message part = {.type = PEER_STATE, .serial = caller->serial, .offset = caller->given};
    part.count = left < PEER_PART_MAX ? left : PEER_PART_MAX;
    part.floats = hub->part;
    bool is_read = true;
    peer_replica_lock(hub->replica);
    for (unsigned vector = 0; vector < vectors; vector++) {
        is_read = peer_replica_read(hub->replica, vector, part.offset, part.count, hub->part);
        if (!is_read)
            break;
        part.vector = vector;
        part.last = part.count == left && vector + 1 == vectors;
        put_holdings(&part, &caller->given_holdings);
        say(hub, caller->stream, &part);
    }
    peer_replica_unlock(hub->replica);
    caller->given += part.count;
    caller->takes_state = is_read && caller->given < elements;
    if (!is_read)
        rpc_stream_close(caller->stream);
}

static void caller_drained(void *context, struct rpc_stream *stream)
{
    struct caller *caller = context;
    (void)stream;
    if (caller->takes_state)
        give_parts(caller);
}

/* A new request replaces the one under way, which the peer has given up. */
static void give_state(struct caller *caller, uint64_t serial)
{
    struct peer_hub *hub = caller->hub;
    if (!peer_replica_is_whole(hub->replica)) {
        say(hub, caller->stream, &(struct peer_message){.type = PEER_NOTHING, .serial = serial});
        return;
    }
    say_counts(hub, caller->stream); /* a newcomer has reset its counts */
    bool flows = caller->takes_state;
    caller->takes_state = true;
    caller->serial = serial;
    caller->given = 0;
    caller->given_holdings = copy_holdings(hub);
    if (!flows)
        give_parts(caller);
}

static void note_done(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    hub->done = true;
    pthread_cond_broadcast(&hub->changed);
}

/* False: the stream is to be closed. */
static bool hear_caller(struct caller *caller, const struct peer_message *message)
{
    if (message->type == PEER_HELLO)
        return greet(caller, message);
    if (!caller->greeted)
        return false;
    switch (message->type) {
    case PEER_COUNTS:
        merge_counts(caller->hub, message);
        return true;
    case PEER_UPDATE:
        take_update(caller, message);
        return true;
    case PEER_AVERAGE:
        meet_caller(caller, message);
        return true;
    case PEER_TAKEN:
        end_meeting(caller, message->serial);
        return true;
    case PEER_FETCH:
        give_state(caller, message->serial);
        return true;
    case PEER_DONE:
        if (caller->seat == 0)
            note_done(caller->hub);
        return true;
    default:
        return false;
    }
}

static void caller_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct peer_message message;
    struct error error = ERROR_INIT;
    if (peer_message_decode(bytes, length, &message, &error) == 0) {
        if (!hear_caller(context, &message))
            rpc_stream_close(stream);
    } else if (error.kind == ERROR_UNSUPPORTED) {
        say(((struct caller *)context)->hub, stream, &(struct peer_message){.type = PEER_NOTHING}); /* any tells it */
    } else {
        rpc_stream_close(stream);
    }
}

static void caller_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct caller *caller = context;
    for (struct caller **place = &caller->hub->callers; *place != NULL; place = &(*place)->next) {
        if (*place == caller) {
            *place = caller->next;
            break;
        }
    }
    caller->hub->caller_count--;
    free(caller);
}

static void caller_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                          void **ret_context)
{
    struct peer_hub *hub = context;
    struct caller *caller = memory_allocate(1, sizeof(*caller));
    *caller = (struct caller){.next = hub->callers, .hub = hub, .stream = stream};
    hub->callers = caller;
    hub->caller_count++;
    *ret_events =
        (struct rpc_stream_events){.message = caller_message, .closed = caller_closed, .drained = caller_drained};
    *ret_context = caller;
    if (hub->caller_count > CALLERS_MAX)
        rpc_stream_close(stream);
}

/* ---------------------------------------------------------------- the rpc's thread */

static void dial(struct peer_hub *hub, unsigned seat, int64_t now)
{
    static const struct rpc_stream_events events = {.message = peer_message_came, .closed = peer_closed};
    struct peer *peer = &hub->peers[seat];
    int rank = rank_of_seat(&hub->world, seat);
    if (rank < 0 || now < peer->next_dial_ms)
        return;
    peer->next_dial_ms = now + REDIAL_MS;
    peer->asked_ms = now;
    const struct collective_peer *where = &hub->world.peers[rank];
    if (rpc_stream_open(hub->rpc, where->address, where->port, PEER_METHOD_EXCHANGE, 0, &events, peer, &peer->stream,
                        NULL) < 0)
        return;
    struct peer_message hello = {.type = PEER_HELLO,
                                 .attempt = hub->options.attempt,
                                 .incarnation = hub->options.incarnation,
                                 .seat = hub->options.seat};
    memcpy(hello.job_uid, hub->job_uid, sizeof(hello.job_uid));
    peer->told_total = -1;
    say(hub, peer->stream, &hello);
}

/* Drops the stream to a peer that is not in the world any more, or was replaced by a successor, and what is pending for it. The trainer
 * may have learned of this world earlier, and may already have a request for the successor. */
static void drop_peer(struct peer_hub *hub, struct peer *peer, bool has_successor)
{
    if (peer->stream != NULL) {
        peer->is_replaced = has_successor;
        rpc_stream_close(peer->stream);
    }
    peer->next_dial_ms = 0;
    peer->stranger_told = peer->stall_told = false;
    SCOPED_LOCK(&hub->lock);
    lose_peer(peer, has_successor);
    if (peer->pending != NULL)
        memset(peer->pending, 0, peer_replica_elements(hub->replica) * sizeof(float));
    peer->dirty = false;
}

static void drop_former(struct peer_hub *hub, const struct world *before)
{
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++) {
        int old = rank_of_seat(before, seat), new = rank_of_seat(&hub->world, seat);
        bool same = old >= 0 && new >= 0 && before->incarnations[old] == hub->world.incarnations[new];
        if (!same)
            drop_peer(hub, &hub->peers[seat], new >= 0);
        pthread_mutex_lock(&hub->lock);
        hub->peers[seat].in_world = new >= 0 && seat != hub->options.seat;
        pthread_mutex_unlock(&hub->lock);
    }
    for (struct caller *caller = hub->callers; caller != NULL; caller = caller->next)
        if (caller->greeted && !is_member(hub, caller->seat, caller->incarnation))
            rpc_stream_close(caller->stream);
}

static void take_world(struct peer_hub *hub)
{
    struct world before = hub->world;
    pthread_mutex_lock(&hub->lock);
    bool changed = hub->world_changed;
    if (changed)
        hub->world = hub->next_world;
    hub->world_changed = false;
    pthread_mutex_unlock(&hub->lock);
    if (changed)
        drop_former(hub, &before);
}

static void send_pending(struct peer_hub *hub, struct peer *peer)
{
    pthread_mutex_lock(&hub->lock);
    bool due = peer->dirty && !peer->in_flight;
    pthread_mutex_unlock(&hub->lock);
    if (!due)
        return;
    /* The trainer adds to it under the lock; it waits for as long as the copy takes. */
    struct peer_message message = {.type = PEER_UPDATE, .seats = CREW_SIZE_MAX};
    pthread_mutex_lock(&hub->lock);
    peer->sent_count = peer->pending_to;
    message.from = peer->pending_from;
    message.counts[hub->options.seat] = peer->sent_count;
    say_vector(hub, peer->stream, &message, peer->pending);
    memset(peer->pending, 0, peer_replica_elements(hub->replica) * sizeof(float));
    peer->dirty = false;
    peer->in_flight = true;
    pthread_mutex_unlock(&hub->lock);
    peer->asked_ms = clock_monotonic_ms();
}

static void start_meeting(struct peer_hub *hub, struct peer *peer)
{
    pthread_mutex_lock(&hub->lock);
    bool due = hub->meeting.state == REQUEST_WANTED && &hub->peers[hub->meeting.seat] == peer;
    if (due)
        request_ask(&hub->meeting);
    uint64_t serial = hub->meeting.serial;
    pthread_mutex_unlock(&hub->lock);
    if (!due)
        return;
    const struct holdings sent_holdings = copy_holdings(hub); /* before the copy, which then has no less */
    peer_replica_lock(hub->replica);
    bool is_read = peer_replica_read(hub->replica, 0, 0, peer_replica_elements(hub->replica), hub->sent);
    peer_replica_unlock(hub->replica);
    if (!is_read) { /* the trainer hears why, and ends */
        pthread_mutex_lock(&hub->lock);
        request_end_with(peer, &hub->meeting, serial, REQUEST_NONE);
        pthread_mutex_unlock(&hub->lock);
        return;
    }
    struct peer_message message = {.type = PEER_AVERAGE, .serial = serial};
    put_holdings(&message, &sent_holdings);
    if (peer->met_count != sent_holdings.counts[hub->options.seat])
        peer->met_serial = serial;
    peer->met_count = sent_holdings.counts[hub->options.seat];
    say_vector(hub, peer->stream, &message, hub->sent);
}

static void start_fetch(struct peer_hub *hub, struct peer *peer)
{
    pthread_mutex_lock(&hub->lock);
    bool due = hub->fetch.state == REQUEST_WANTED && &hub->peers[hub->fetch.seat] == peer;
    if (due)
        request_ask(&hub->fetch);
    if (due && !peer_replica_is_whole(hub->replica))
        peer_ledger_forget(&hub->ledger);
    uint64_t serial = hub->fetch.serial;
    pthread_mutex_unlock(&hub->lock);
    if (due)
        say(hub, peer->stream, &(struct peer_message){.type = PEER_FETCH, .serial = serial});
}

static void tend(struct peer_hub *hub, struct peer *peer)
{
    int64_t total = total_to_tell(hub);
    pthread_mutex_lock(&hub->lock);
    bool say_done = hub->say_done;
    pthread_mutex_unlock(&hub->lock);
    if (total != peer->told_total)
        say_counts(hub, peer->stream);
    peer->told_total = total;
    start_fetch(hub, peer);
    start_meeting(hub, peer);
    send_pending(hub, peer);
    if (say_done && !peer->told_done)
        say(hub, peer->stream, &(struct peer_message){.type = PEER_DONE});
    peer->told_done = say_done;
}

bool peer_hub_take_stall(struct peer_hub *hub, char text[PEER_STALL_MAX])
{
    SCOPED_LOCK(&hub->lock);
    bool news = hub->stall[0] != '\0';
    memcpy(text, hub->stall, PEER_STALL_MAX);
    hub->stall[0] = '\0';
    return news;
}

static void hub_tick(void *context)
{
    struct peer_hub *hub = context;
    pthread_mutex_lock(&hub->lock);
    bool serves = hub->serves;
    pthread_mutex_unlock(&hub->lock);
    if (!serves)
        return;
    take_world(hub);
    int64_t now = clock_monotonic_ms();
    for (unsigned rank = 0; rank < hub->world.size; rank++) {
        unsigned seat = hub->world.members[rank];
        if (seat >= CREW_SIZE_MAX || seat == hub->options.seat)
            continue;
        look_at(hub, rank);
        if (hub->peers[seat].stream == NULL)
            dial(hub, seat, now);
        else if (hub->peers[seat].ready)
            tend(hub, &hub->peers[seat]);
    }
}

/* ---------------------------------------------------------------- the trainer's calls */

void peer_hub_serve(struct peer_hub *hub, struct peer_replica *replica)
{
    SCOPED_LOCK(&hub->lock);
    hub->replica = replica;
    hub->sent = memory_allocate(peer_replica_elements(replica), sizeof(*hub->sent));
    hub->serves = true;
}

void peer_hub_set_world(struct peer_hub *hub, const struct world *world)
{
    pthread_mutex_lock(&hub->lock);
    hub->next_world = *world;
    hub->world_changed = true;
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

int64_t peer_hub_place(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    return peer_ledger_begin(&hub->ledger);
}

void peer_hub_publish(struct peer_hub *hub, const float *change, int64_t examples)
{
    uint64_t elements = peer_replica_elements(hub->replica);
    pthread_mutex_lock(&hub->lock);
    int64_t from = hub->ledger.begun;
    peer_ledger_finish(&hub->ledger, examples);
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++) {
        struct peer *peer = &hub->peers[seat];
        if (!peer->in_world)
            continue;
        if (peer->pending == NULL)
            peer->pending = memory_allocate(elements, sizeof(*peer->pending));
        for (uint64_t i = 0; i < elements; i++)
            peer->pending[i] += change[i];
        /* examples in between are another worker's and are not in this change */
        if (!peer->dirty || from > peer->pending_to)
            peer->pending_from = from;
        peer->pending_to = examples;
        peer->dirty = true;
    }
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

/* With the lock held. */
static void want_meeting(struct peer_hub *hub, unsigned seat)
{
    hub->meeting = (struct request){
        .state = REQUEST_WANTED, .seat = seat, .serial = ++hub->next_serial, .heard_ms = clock_monotonic_ms()};
}

void peer_hub_meet(struct peer_hub *hub, unsigned seat)
{
    pthread_mutex_lock(&hub->lock);
    if (hub->meeting.state == REQUEST_NONE && hub->peers[seat].in_world)
        want_meeting(hub, seat);
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

bool peer_hub_meet_instead(struct peer_hub *hub, unsigned seat, int64_t silence_ms)
{
    pthread_mutex_lock(&hub->lock);
    const struct request *former = &hub->meeting;
    bool is_vain = !hub->peers[former->seat].ready || clock_monotonic_ms() - former->heard_ms >= silence_ms;
    bool replaces = former->state != REQUEST_NONE && former->seat != seat && is_vain && hub->peers[seat].in_world &&
                    hub->peers[seat].ready;
    if (replaces)
        want_meeting(hub, seat);
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
    return replaces;
}

bool peer_hub_meets(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    return hub->meeting.state != REQUEST_NONE;
}

int64_t peer_hub_unhanded(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    return peer_ledger_unreplicated(&hub->ledger);
}

bool peer_hub_is_connected(struct peer_hub *hub, unsigned seat)
{
    SCOPED_LOCK(&hub->lock);
    return hub->peers[seat].in_world && hub->peers[seat].ready;
}

void peer_hub_ask(struct peer_hub *hub, unsigned seat, float *const *ret_vectors)
{
    pthread_mutex_lock(&hub->lock);
    hub->fetched = ret_vectors;
    hub->fetch = (struct request){
        .state = REQUEST_WANTED, .seat = seat, .serial = ++hub->next_serial, .heard_ms = clock_monotonic_ms()};
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

static bool is_open(const struct request *request)
{
    return request->state == REQUEST_WANTED || request->state == REQUEST_ASKED;
}

/* With the lock held. */
static bool has_taken(const struct peer *peer)
{
    return !peer->in_world || (!peer->dirty && !peer->in_flight);
}

/* With the lock held. */
static bool changes_are_taken(const struct peer_hub *hub)
{
    bool taken = true;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        taken &= has_taken(&hub->peers[seat]);
    return taken;
}

bool peer_hub_has_taken(struct peer_hub *hub, unsigned seat)
{
    SCOPED_LOCK(&hub->lock);
    return has_taken(&hub->peers[seat]);
}

/* With the lock held. Does not wait for a meeting that has become unnecessary, because another peer's late answer arrived. */
static enum peer_handing handing_now(const struct peer_hub *hub)
{
    if (!changes_are_taken(hub))
        return PEER_HANDING_UNDER_WAY;
    if (peer_ledger_unreplicated(&hub->ledger) == 0)
        return PEER_HANDING_DONE;
    return hub->meeting.state == REQUEST_NONE ? PEER_HANDING_WANTS_MEETING : PEER_HANDING_UNDER_WAY;
}

enum peer_handing peer_hub_handing(struct peer_hub *hub, int64_t timeout_ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + timeout_ms * 1000000;
    bool in_time = true;
    SCOPED_LOCK(&hub->lock);
    while ((hub->meeting.state != REQUEST_NONE || !changes_are_taken(hub)) && in_time)
        in_time = condition_wait_until(&hub->changed, &hub->lock, deadline_ns);
    return handing_now(hub);
}

/* With the lock held. */
static bool is_waited_for(const struct peer_hub *hub, unsigned seat)
{
    const struct peer *peer = &hub->peers[seat];
    bool meets = hub->meeting.state != REQUEST_NONE && hub->meeting.seat == seat;
    return seat != hub->options.seat && (meets || !has_taken(peer));
}

void peer_hub_name_waited(struct peer_hub *hub, char text[PEER_STALL_MAX])
{
    char name[COLLECTIVE_PEER_TEXT_MAX];
    int length = 0;
    text[0] = '\0';
    SCOPED_LOCK(&hub->lock);
    const struct world *world = &hub->next_world;
    for (unsigned rank = 0; rank < world->size && length < PEER_STALL_MAX; rank++) {
        if (!is_waited_for(hub, world->members[rank]))
            continue;
        collective_peer_describe(world->peers, rank, name);
        length += snprintf(text + length, (size_t)(PEER_STALL_MAX - length), "%s%s", length > 0 ? " " : "", name);
    }
}

enum peer_answer peer_hub_answer(struct peer_hub *hub, int64_t timeout_ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&hub->lock);
    bool in_time = true;
    while (is_open(&hub->fetch) && in_time)
        in_time = condition_wait_until(&hub->changed, &hub->lock, deadline_ns);
    enum request_state state = hub->fetch.state;
    pthread_mutex_unlock(&hub->lock);
    if (state == REQUEST_DONE)
        return PEER_ANSWER_STATE;
    if (state == REQUEST_NOTHING)
        return PEER_ANSWER_NOTHING;
    return state == REQUEST_WANTED || state == REQUEST_ASKED ? PEER_ANSWER_PENDING : PEER_ANSWER_FAILED;
}

int64_t peer_hub_silence_ms(struct peer_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    int64_t heard_ms = hub->fetch.heard_ms;
    pthread_mutex_unlock(&hub->lock);
    return clock_monotonic_ms() - heard_ms;
}

void peer_hub_adopt(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    record_held(hub, hub->fetched_holdings.counts);
    peer_ledger_adopt(&hub->ledger, hub->fetched_holdings.counts);
}

void peer_hub_forget(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    hub->fetch.state = REQUEST_NONE;
}

void peer_hub_count(struct peer_hub *hub, unsigned seat, int64_t examples)
{
    int64_t counts[CREW_SIZE_MAX] = {0};
    counts[seat] = examples;
    SCOPED_LOCK(&hub->lock);
    if (seat == hub->options.seat)
        peer_ledger_finish(&hub->ledger, examples);
    else
        peer_ledger_merge_announced(&hub->ledger, counts);
}

int64_t peer_hub_restore(struct peer_hub *hub, const int64_t counts[CREW_SIZE_MAX])
{
    SCOPED_LOCK(&hub->lock);
    return peer_ledger_restore(&hub->ledger, counts);
}

int64_t peer_hub_read_counts(struct peer_hub *hub, int64_t ret_counts[CREW_SIZE_MAX])
{
    SCOPED_LOCK(&hub->lock);
    memcpy(ret_counts, hub->ledger.counts.counts, sizeof(hub->ledger.counts.counts));
    return peer_ledger_total(&hub->ledger);
}

int64_t peer_hub_total(struct peer_hub *hub)
{
    int64_t counts[CREW_SIZE_MAX];
    return peer_hub_read_counts(hub, counts);
}

int64_t peer_hub_lacking(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    return peer_ledger_lacking(&hub->ledger);
}

void peer_hub_say_done(struct peer_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->say_done = true;
    pthread_mutex_unlock(&hub->lock);
    rpc_wake(hub->rpc);
}

bool peer_hub_is_done(struct peer_hub *hub)
{
    SCOPED_LOCK(&hub->lock);
    bool done = hub->done;
    return done;
}

/* ---------------------------------------------------------------- life cycle */

static int listen_somewhere(struct peer_hub *hub, struct error *error)
{
    static const struct rpc_method methods[] = {{PEER_METHOD_EXCHANGE, caller_opened}};
    const struct peer_hub_options *options = &hub->options;
    struct rpc_server *server;
    if (rpc_server_start(hub->rpc, options->listen_address, options->port, methods, 1, hub, &server, NULL) < 0 &&
        rpc_server_start(hub->rpc, options->listen_address, 0, methods, 1, hub, &server, error) < 0)
        return -1;
    hub->server = server;
    rpc_start_ticks(hub->rpc);
    return 0;
}

int peer_hub_open(const struct peer_hub_options *options, struct peer_hub **ret_hub, struct error *error)
{
    struct peer_hub *hub = memory_allocate(1, sizeof(*hub));
    hub->options = *options;
    hub->ledger.seat = options->seat;
    snprintf(hub->job_uid, sizeof(hub->job_uid), "%s", options->job_uid);
    hub->bytes = memory_allocate(1, RPC_MESSAGE_MAX);
    hub->part = memory_allocate(PEER_PART_MAX, sizeof(*hub->part));
    hub->other = memory_allocate(PEER_PART_MAX, sizeof(*hub->other));
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        hub->peers[seat].hub = hub;
    pthread_mutex_init(&hub->lock, NULL);
    condition_init(&hub->changed);
    if (rpc_new(hub_tick, hub, TICK_MS, &hub->rpc, error) < 0 || listen_somewhere(hub, error) < 0) {
        peer_hub_free(hub);
        return -1;
    }
    *ret_hub = hub;
    return 0;
}

void peer_hub_stop(struct peer_hub *hub)
{
    if (hub->rpc != NULL)
        rpc_stop(hub->rpc);
}

void peer_hub_free(struct peer_hub *hub)
{
    if (hub == NULL)
        return;
    if (hub->rpc != NULL)
        rpc_free(hub->rpc);
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        free(hub->peers[seat].pending);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub->sent);
    free(hub->bytes);
    free(hub->part);
    free(hub->other);
    free(hub);
}

uint16_t peer_hub_port(const struct peer_hub *hub)
{
    return rpc_server_port(hub->server);
}
