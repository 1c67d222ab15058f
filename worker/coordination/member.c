/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/coordination/chief.h"
#include "worker/coordination/message.h"

#define TICK_MS 100
#define BEAT_MS_DEFAULT 500
#define SUSPICION_MS_DEFAULT 2000
#define DEATH_MS_DEFAULT 5000
#define LOST_MS_DEFAULT 600000
#define START_MS_DEFAULT 30000
#define OTHER_JOB_REDIAL_MS 1000
#define REDIAL_MS 100
#define LEAVE_MS 1000
#define CHIEF_LEAVE_MS 5000

/* A stream to the chief's coordinator. The member follows one at a time; an older one may still
 * be closing. */
struct session {
    struct member *member;
    struct rpc_stream *stream;
    struct collective_peer chief; /* the address that was dialled */
    int64_t heard_ms;             /* when the chief's last message came */
    bool heard;                   /* a message has come from a chief that this member may follow */
    bool superseded;              /* this chief is older than one that the member knows */
};

struct member {
    struct member_options options;
    struct crew_seat seats[CREW_SIZE_MAX];
    char *job_uid;
    uint64_t nonce;
    char arithmetic[ARITHMETIC_MAX];
    int wanted_threads;          /* member_wanted_threads */
    struct collective_peer data; /* the address of this process's data port, as announced to the crew */
    struct rpc *rpc;
    struct rpc_server *server;
    struct address_book *book;

    /* The rpc's thread only. */
    struct chief *chief; /* rank 0 */
    struct session *session;
    int64_t next_dial_ms, next_beat_ms, last_tick_ms;
    struct collective_peer called_from; /* the chief that has asked this member to join; port 0: none */
    bool own_joined;                    /* rank 0: has sent its join to the coordinator */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct error fatal;                   /* kind ERROR_NONE: none */
    struct generation known;              /* the highest generation that a message has named */
    uint32_t incarnations[CREW_SIZE_MAX]; /* by seat, as the last world gave them */
    bool in_force;                        /* the generation `known` has begun and not ended */
    char ended[COORDINATION_TEXT_MAX];    /* why the last generation ended */
    struct member_standing standing;
    bool stands; /* loose crews: `standing` is kept up to date */
    bool agreeing, reported, world_ready, cancelled;
    struct world world;
    struct collective *group;
    bool newcomers; /* rank 0 */
    /* Rank 0: which seats are taken, by which incarnations, as of the last tick, and the generation at that tick. */
    bool seated[CREW_SIZE_MAX];
    uint32_t seated_incarnations[CREW_SIZE_MAX];
    struct generation seated_since;
    char waiting[MEMBER_TEXT_MAX];
    int64_t step;
    int64_t unled_since_ms; /* when the chief was lost; 0: the member has a chief */
    bool leaving, left;
};

/* ---------------------------------------------------------------- changes that the trainer sees; with the lock held */

static void end_world(struct member *member, enum error_kind kind, const char *why)
{
    member->in_force = false;
    member->world_ready = false;
    member->standing.planned = false;
    member->reported = false; /* a member that is agreeing reports again */
    snprintf(member->ended, sizeof(member->ended), "%s", why);
    if (member->group != NULL)
        collective_abort(member->group, kind, why);
}

static void fail_for_good(struct member *member, enum error_kind kind, const char *why)
{
    if (member->fatal.kind == ERROR_NONE)
        error_set(&member->fatal, kind, "%s", why);
    end_world(member, kind, why);
    pthread_cond_broadcast(&member->changed);
}

/* Fails the member because its chief speaks another protocol (comm/protocol.h): a later chief of this crew would too.
 * Takes the lock. */
static void fail_not_understood(struct member *member, const char *why)
{
    SCOPED_LOCK(&member->lock);
    fail_for_good(member, ERROR_FORBIDDEN, why);
}

/* Records that the member has no chief any more. */
static void lose_chief(struct member *member, const char *why)
{
    if (member->unled_since_ms == 0)
        member->unled_since_ms = clock_monotonic_ms();
    end_world(member, ERROR_UNAVAILABLE, why);
    snprintf(member->waiting, sizeof(member->waiting), "waiting for the chief, %s %u (%s:%u): %s",
             member->seats[0].role, member->seats[0].index, member->seats[0].host, member->seats[0].port, why);
    pthread_cond_broadcast(&member->changed);
}

/* Ranks of an elastic crew are not its seats. */
static void name_peers(const struct member *member, struct world *world)
{
    for (unsigned rank = 0; rank < world->size; rank++) {
        unsigned seat = world->members[rank];
        struct collective_peer *peer = &world->peers[rank];
        peer->name[0] = '\0';
        if (seat < member->options.size)
            snprintf(peer->name, sizeof(peer->name), "%s %u", member->seats[seat].role, member->seats[seat].index);
    }
}

static void take_world(struct member *member, const struct coordination_message *message)
{
    for (unsigned rank = 0; rank < message->seats; rank++)
        if (message->incarnations[rank] > member->incarnations[rank])
            member->incarnations[rank] = message->incarnations[rank];
    if (!(member->agreeing || member->options.loose) || message->rank >= message->size ||
        generation_compare(message->generation, member->known) < 0)
        return;
    struct world *world = &member->world;
    *world = (struct world){.generation = message->generation,
                            .rank = message->rank,
                            .size = message->size,
                            .logical_shards = message->logical_shards,
                            .source = (enum world_source)message->source,
                            .source_rank = message->source_rank,
                            .step = message->step};
    memcpy(world->arithmetic, message->arithmetic, sizeof(world->arithmetic));
    memcpy(world->peers, message->peers, sizeof(world->peers));
    for (unsigned rank = 0; rank < message->size; rank++)
        world->incarnations[rank] =
            message->members[rank] < message->seats ? message->incarnations[message->members[rank]] : 0;
    memcpy(world->members, message->members, sizeof(world->members));
    name_peers(member, world);
    memcpy(world->receives, message->receives, sizeof(world->receives));
    member->in_force = true;
    member->world_ready = true;
    pthread_cond_broadcast(&member->changed);
}

static void take_refusal(struct member *member, const struct coordination_message *message)
{
    if (message->refusal == REFUSE_OTHER_JOB) {
        member->next_dial_ms = clock_monotonic_ms() + OTHER_JOB_REDIAL_MS;
        lose_chief(member, message->text);
        return;
    }
    int threads = arithmetic_threads(message->arithmetic);
    if (message->refusal == REFUSE_ARITHMETIC && threads != arithmetic_threads(member->arithmetic))
        member->wanted_threads = threads;
    fail_for_good(member,
                  message->refusal == REFUSE_BAD_SEAT     ? ERROR_INVALID
                  : message->refusal == REFUSE_ARITHMETIC ? ERROR_DEVICE
                                                          : ERROR_STALE,
                  message->text);
}

/* Handles a message from the coordinator, which comes by stream or, in the chief, directly; `context` is the member. */
static void handle_message(void *context, const struct coordination_message *message)
{
    struct member *member = context;
    SCOPED_LOCK(&member->lock);
    if (message->type == COORDINATION_WORLD)
        take_world(member, message);
    else if (message->type == COORDINATION_REFORM)
        end_world(member, ERROR_UNAVAILABLE, message->text);
    else if (message->type == COORDINATION_WAITING)
        snprintf(member->waiting, sizeof(member->waiting), "%s", message->text);
    else if (message->type == COORDINATION_REFUSED)
        take_refusal(member, message);
    if (message->type != COORDINATION_REFUSED) {
        member->unled_since_ms = 0;
        if (generation_compare(message->generation, member->known) > 0)
            member->known = message->generation;
    }
}

/* Handles the report that a member of this chief's crew knows a newer chief. */
static void handle_supersession(void *context, const char *text)
{
    struct member *member = context;
    SCOPED_LOCK(&member->lock);
    fail_for_good(member, ERROR_STALE, text);
}

/* ---------------------------------------------------------------- speaking to the coordinator */

static void say(struct member *member, const struct coordination_message *message)
{
    if (member->chief != NULL) {
        chief_hear(member->chief, message);
        return;
    }
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    if (member->session != NULL && coordination_message_encode(message, &bytes, NULL) == 0)
        rpc_stream_send(member->session->stream, bytes.data, bytes.length);
}

static void say_join(struct member *member)
{
    struct coordination_message message = {
        .type = COORDINATION_JOIN,
        .generation = {.attempt = member->options.attempt, .incarnation = member->options.incarnation},
        .nonce = member->nonce,
        .rank = member->options.rank,
        .size = member->options.size,
        .peer = member->data};
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", member->job_uid);
    memcpy(message.arithmetic, member->arithmetic, sizeof(message.arithmetic));
    say(member, &message);
}

static void say_standing_if_due(struct member *member)
{
    struct coordination_message message = {.type = COORDINATION_STANDING};
    pthread_mutex_lock(&member->lock);
    bool due = (member->agreeing || member->stands) && !member->reported;
    member->reported |= due;
    message.holds_state = member->standing.holds_state;
    message.step = member->standing.applied_step;
    message.generation = member->known;
    message.planned = member->standing.planned;
    message.seats = member->options.size;
    memcpy(message.incarnations, member->incarnations, sizeof(message.incarnations));
    memcpy(message.arithmetic, member->world.arithmetic, sizeof(message.arithmetic));
    pthread_mutex_unlock(&member->lock);
    if (due)
        say(member, &message);
}

static void say_beat_if_due(struct member *member, int64_t now)
{
    if (now < member->next_beat_ms)
        return;
    member->next_beat_ms = now + member->options.beat_ms;
    struct coordination_message message = {.type = COORDINATION_BEAT};
    pthread_mutex_lock(&member->lock);
    message.step = member->step;
    message.generation = member->known;
    pthread_mutex_unlock(&member->lock);
    say(member, &message);
}

static void say_leave_if_asked(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    bool leaving = member->leaving && !member->left;
    if (leaving && member->session == NULL) {
        member->left = true;
        pthread_cond_broadcast(&member->changed);
        leaving = false;
    }
    member->leaving = false;
    pthread_mutex_unlock(&member->lock);
    if (leaving)
        say(member, &(struct coordination_message){.type = COORDINATION_LEAVE});
}

/* ---------------------------------------------------------------- sessions with the chief, of other members */

static void drop_session(struct member *member, const char *why)
{
    struct session *session = member->session;
    member->session = NULL;
    rpc_stream_close(session->stream);
    SCOPED_LOCK(&member->lock);
    lose_chief(member, why);
}

static bool is_superseded(struct member *member, struct generation generation)
{
    SCOPED_LOCK(&member->lock);
    return generation_compare_chiefs(generation, member->known) < 0;
}

/* This member's beats tell the superseded chief, whose end closes the session. Until then, or until the newer chief calls, this member
 * has no chief. */
static void session_distrust(struct session *session, struct generation generation)
{
    char why[COORDINATION_TEXT_MAX];
    if (session->superseded)
        return;
    session->superseded = true;
    snprintf(why, sizeof(why), "that of attempt %u, incarnation %u is superseded", generation.attempt,
             generation.incarnation);
    SCOPED_LOCK(&session->member->lock);
    lose_chief(session->member, why);
}

/* From another job only a refusal is accepted, and its generation is ignored. */
static bool session_heeds(struct session *session, const struct coordination_message *message)
{
    if (strcmp(message->job_uid, session->member->job_uid) != 0)
        return message->type == COORDINATION_REFUSED;
    if (!is_superseded(session->member, message->generation))
        return true;
    session_distrust(session, message->generation);
    return false;
}

static void session_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)stream;
    struct session *session = context;
    struct coordination_message message;
    if (session->member->session != session)
        return;
    struct error error = ERROR_INIT;
    if (coordination_message_decode(bytes, length, &message, &error) < 0) {
        if (error.kind == ERROR_UNSUPPORTED)
            fail_not_understood(session->member, error.message);
        drop_session(session->member, "the chief does not speak our language; do all pods run the same version?");
        return;
    }
    if (!session_heeds(session, &message))
        return;
    session->heard_ms = clock_monotonic_ms();
    session->heard = true;
    handle_message(session->member, &message);
    say_standing_if_due(session->member);
}

static void session_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream;
    struct session *session = context;
    struct member *member = session->member;
    if (member->session == session) {
        member->session = NULL;
        if (!session->heard)
            member->called_from.port = 0;
        int64_t soonest = clock_monotonic_ms() + REDIAL_MS;
        if (member->next_dial_ms < soonest)
            member->next_dial_ms = soonest;
        pthread_mutex_lock(&member->lock);
        member->left = true;
        lose_chief(member, error != NULL ? error->message : "its end of the connection was closed");
        pthread_mutex_unlock(&member->lock);
    }
    free(session);
}

static void session_open(struct member *member, const struct collective_peer *chief)
{
    static const struct rpc_stream_events events = {.message = session_message, .closed = session_closed};
    struct session *session = memory_allocate(1, sizeof(*session));
    *session = (struct session){.member = member, .chief = *chief, .heard_ms = clock_monotonic_ms()};
    if (rpc_stream_open(member->rpc, chief->address, chief->port, CREW_METHOD_JOIN, 0, &events, session,
                        &session->stream, NULL) < 0) {
        free(session);
        return;
    }
    member->session = session;
    pthread_mutex_lock(&member->lock);
    member->reported = false;
    pthread_mutex_unlock(&member->lock);
    say_join(member);
    say_standing_if_due(member);
}

static void dial_chief(struct member *member, int64_t now)
{
    struct collective_peer named = {.port = member->seats[0].port};
    if (now < member->next_dial_ms)
        return;
    if (member->called_from.port != 0)
        session_open(member, &member->called_from);
    else if (address_book_ask(member->book, 0, named.address))
        session_open(member, &named);
}

/* Dials the chief if there is no session; drops a session whose chief has been silent for too long. */
static void tend_session(struct member *member, int64_t now)
{
    if (member->session == NULL) {
        dial_chief(member, now);
        return;
    }
    /* While we were frozen ourselves, the chief's beats lay unread. */
    if (now - member->last_tick_ms > member->options.suspicion_ms)
        member->session->heard_ms = now;
    if (now - member->session->heard_ms >= member->options.death_ms)
        drop_session(member, "the chief is silent");
}

/* ---------------------------------------------------------------- calls from a new chief */

static void judge_summons(struct member *member, const struct coordination_message *summons,
                          struct coordination_message *answer)
{
    struct generation known = member->known;
    int order = generation_compare_chiefs(summons->generation, known);
    if (strcmp(summons->job_uid, member->job_uid) != 0) {
        answer->refusal = REFUSE_OTHER_JOB;
    } else if (order < 0) {
        answer->refusal = REFUSE_STALE;
        snprintf(answer->text, sizeof(answer->text),
                 "a chief of attempt %u, incarnation %u is superseded by one of attempt %u, incarnation %u",
                 summons->generation.attempt, summons->generation.incarnation, known.attempt, known.incarnation);
    } else if (order > 0 || member->session == NULL) {
        member->known.attempt = summons->generation.attempt;
        member->known.incarnation = summons->generation.incarnation;
        if (order > 0)
            member->known.counter = 0;
    }
}

/* Whether the session may stay when the chief that we know of calls: it leads there, as far as can be told. */
static bool session_serves(const struct session *session, const struct collective_peer *caller)
{
    if (session->heard || session->superseded)
        return !session->superseded;
    return session->chief.port == caller->port && strcmp(session->chief.address, caller->address) == 0;
}

static void follow_summons(struct member *member, const struct coordination_message *summons, bool newer)
{
    if (member->session != NULL && !newer && session_serves(member->session, &summons->peer))
        return;
    if (member->session != NULL)
        drop_session(member, "a new chief calls");
    member->called_from = summons->peer;
    member->next_dial_ms = 0;
    dial_chief(member, clock_monotonic_ms());
}

static void summons_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct member *member = context;
    struct coordination_message summons, answer = {.type = COORDINATION_SUMMONED};
    if (coordination_message_decode(bytes, length, &summons, NULL) < 0 || summons.type != COORDINATION_SUMMON) {
        rpc_stream_close(stream);
        return;
    }
    pthread_mutex_lock(&member->lock);
    bool newer = generation_compare_chiefs(summons.generation, member->known) > 0;
    judge_summons(member, &summons, &answer);
    pthread_mutex_unlock(&member->lock);
    SCOPED_BUFFER reply = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    if (coordination_message_encode(&answer, &reply, NULL) == 0)
        rpc_stream_send(stream, reply.data, reply.length);
    rpc_stream_close(stream);
    if (answer.refusal == REFUSE_NOT && member->chief == NULL)
        follow_summons(member, &summons, newer);
}

/* Accepts the stream on which a new chief asks this member to join it: rpc_method.opened of CREW_METHOD_SUMMON. */
static void summons_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = summons_message};
    *ret_context = context;
}

/* ---------------------------------------------------------------- the rpc's thread */

static void join_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                        void **ret_context)
{
    chief_accept(((struct member *)context)->chief, stream, ret_events, ret_context);
}

static const struct rpc_method methods[] = {{CREW_METHOD_SUMMON, summons_opened}, {CREW_METHOD_JOIN, join_opened}};

static void leave_when_alone(struct member *member)
{
    if (!chief_is_alone(member->chief))
        return;
    SCOPED_LOCK(&member->lock);
    if (member->leaving) {
        member->left = true;
        pthread_cond_broadcast(&member->changed);
    }
}

static void note_newcomers(struct member *member)
{
    unsigned count = chief_newcomers(member->chief);
    SCOPED_LOCK(&member->lock);
    member->newcomers = count > 0;
}

static void note_seated(struct member *member)
{
    SCOPED_LOCK(&member->lock);
    for (unsigned seat = 0; seat < member->options.size; seat++)
        member->seated[seat] = chief_seats(member->chief, seat, &member->seated_incarnations[seat]);
    member->seated_since = member->world.generation;
}

static void tick(void *context)
{
    struct member *member = context;
    pthread_mutex_lock(&member->lock);
    bool ready = member->server != NULL, failed = member->fatal.kind != ERROR_NONE;
    pthread_mutex_unlock(&member->lock);
    if (!ready || failed)
        return;
    int64_t now = clock_monotonic_ms();
    if (member->chief != NULL) {
        if (!member->own_joined)
            say_join(member);
        member->own_joined = true;
        chief_tick(member->chief);
        note_newcomers(member);
        note_seated(member);
        leave_when_alone(member);
    } else {
        tend_session(member, now);
        say_beat_if_due(member, now);
        say_leave_if_asked(member);
    }
    member->last_tick_ms = now;
    say_standing_if_due(member);
}

static void wake_rpc(void *context)
{
    rpc_wake(((struct member *)context)->rpc);
}

/* ---------------------------------------------------------------- life cycle */

static void copy_options(struct member *member, const struct member_options *options)
{
    member->options = *options;
    member->job_uid = memory_copy_string(options->job_uid);
    snprintf(member->arithmetic, sizeof(member->arithmetic), "%s", options->arithmetic ? options->arithmetic : "");
    for (unsigned rank = 0; rank < options->size; rank++) {
        member->seats[rank] = options->seats[rank];
        member->seats[rank].role = memory_copy_string(options->seats[rank].role);
        member->seats[rank].host = memory_copy_string(options->seats[rank].host);
    }
    struct member_options *own = &member->options;
    own->seats = member->seats;
    own->beat_ms = own->beat_ms > 0 ? own->beat_ms : BEAT_MS_DEFAULT;
    own->suspicion_ms = own->suspicion_ms > 0 ? own->suspicion_ms : SUSPICION_MS_DEFAULT;
    own->death_ms = own->death_ms > 0 ? own->death_ms : DEATH_MS_DEFAULT;
    own->start_ms = own->start_ms > 0 ? own->start_ms : START_MS_DEFAULT;
    own->lost_ms = own->lost_ms > 0 ? own->lost_ms : LOST_MS_DEFAULT;
    member->known = (struct generation){.attempt = options->attempt};
    snprintf(member->waiting, sizeof(member->waiting), "waiting for the chief, %s %u (%s:%u, not reached yet)",
             member->seats[0].role, member->seats[0].index, member->seats[0].host, member->seats[0].port);
    snprintf(member->ended, sizeof(member->ended), "no generation yet");
}

static int choose_data_address(struct member *member, struct error *error)
{
    const struct member_options *options = &member->options;
    const char *address = options->announce_address != NULL ? options->announce_address : options->listen_address;
    if (address == NULL || *address == '\0')
        address = member->seats[options->rank].host;
    char numeric[RESOLVE_ADDRESS_MAX];
    if (resolve_host(address, numeric, error) < 0)
        return error_wrap(error, "our own address");
    snprintf(member->data.address, sizeof(member->data.address), "%s", numeric);
    member->data.port = options->data_port;
    return 0;
}

/* The server may be asked before its port is known, so a chief is ready first. */
static void chief_start(struct member *member, uint16_t port)
{
    const struct member_options *own = &member->options;
    struct chief_options options = {
        .rpc = member->rpc,
        .book = member->book,
        .beat_ms = own->beat_ms,
        .told = handle_message,
        .superseded = handle_supersession,
        .context = member,
        .where = member->data,
        .coordinator = {.job_uid = member->job_uid,
                        .generation = {.attempt = own->attempt, .incarnation = own->incarnation},
                        .size = own->size,
                        .least = own->least,
                        .expected = own->expected,
                        .start_ms = own->start_ms,
                        .loose = own->loose,
                        .seats = member->seats,
                        .logical_shards = own->logical_shards,
                        .suspicion_ms = own->suspicion_ms,
                        .death_ms = own->death_ms}};
    options.where.port = port;
    member->chief = chief_new(&options);
}

static int start_parts(struct member *member, struct error *error)
{
    const struct member_options *own = &member->options;
    uint16_t port = member->seats[own->rank].port;
    if (choose_data_address(member, error) < 0 || rpc_new(tick, member, TICK_MS, &member->rpc, error) < 0 ||
        address_book_new(member->seats, own->size, wake_rpc, member, &member->book, error) < 0)
        return -1;
    if (own->rank == 0)
        chief_start(member, port);
    struct rpc_server *server;
    if (rpc_server_start(member->rpc, own->listen_address, port, methods, own->rank == 0 ? 2 : 1, member, &server,
                         error) < 0)
        return -1;
    pthread_mutex_lock(&member->lock);
    member->server = server;
    pthread_mutex_unlock(&member->lock);
    rpc_start_ticks(member->rpc);
    return 0;
}

int member_start(const struct member_options *options, struct member **ret_member, struct error *error)
{
    if (options->size < 1 || options->size > CREW_SIZE_MAX || options->rank >= options->size)
        return error_set(error, ERROR_INVALID, "rank %u of %u: a crew has 1 to %d members", options->rank,
                         options->size, CREW_SIZE_MAX);
    struct member *member = memory_allocate(1, sizeof(*member));
    copy_options(member, options);
    if (getrandom(&member->nonce, sizeof(member->nonce), 0) < 0)
        member->nonce = (uint64_t)clock_now_ms();
    pthread_mutex_init(&member->lock, NULL);
    condition_init(&member->changed);
    if (start_parts(member, error) < 0) {
        member_free(member);
        return -1;
    }
    *ret_member = member;
    return 0;
}

void member_free(struct member *member)
{
    if (member == NULL)
        return;
    /* The book calls rpc_wake, the rpc's thread asks the book: the thread ends first. */
    if (member->rpc != NULL)
        rpc_stop(member->rpc);
    address_book_free(member->book);
    if (member->rpc != NULL)
        rpc_free(member->rpc);
    chief_free(member->chief);
    for (unsigned rank = 0; rank < member->options.size; rank++) {
        free((char *)member->seats[rank].role);
        free((char *)member->seats[rank].host);
    }
    pthread_cond_destroy(&member->changed);
    pthread_mutex_destroy(&member->lock);
    free(member->job_uid);
    free(member);
}

/* ---------------------------------------------------------------- the trainer's calls */

static int64_t wait_until_told(struct member *member)
{
    condition_wait_ms(&member->changed, &member->lock, 1000);
    return member->unled_since_ms == 0 ? 0 : clock_monotonic_ms() - member->unled_since_ms;
}

static int tell_lost(const struct member *member, int64_t unled_ms, struct error *error)
{
    return error_set(
        error, ERROR_TIMEOUT,
        "the crew is lost: no connection to the chief for %lld s, %s; start the chief, then this process again",
        (long long)(unled_ms / 1000), member->waiting);
}

static int agree_locked(struct member *member, struct world *ret_world, struct error *error)
{
    int64_t unled_ms = 0;
    while (!member->world_ready) {
        if (member->fatal.kind != ERROR_NONE) {
            if (error != NULL)
                *error = member->fatal;
            return -1;
        }
        if (member->cancelled)
            return error_set(error, ERROR_CANCELLED, "asked to stop while %s",
                             member->waiting[0] != '\0' ? member->waiting : "the crew forms");
        if (unled_ms >= member->options.lost_ms)
            return tell_lost(member, unled_ms, error);
        unled_ms = wait_until_told(member);
    }
    member->world_ready = false;
    *ret_world = member->world;
    return 0;
}

int member_agree(struct member *member, const struct member_standing *standing, struct world *ret_world,
                 struct error *error)
{
    SCOPED_LOCK(&member->lock);
    member->standing = *standing;
    member->agreeing = true;
    member->reported = false;
    member->world_ready = false;
    member->in_force = false;
    if (member->unled_since_ms == 0 && member->known.counter == 0 && member->options.rank != 0)
        member->unled_since_ms = clock_monotonic_ms();
    rpc_wake(member->rpc);
    int status = agree_locked(member, ret_world, error);
    member->agreeing = false;
    return status;
}

int member_wanted_threads(struct member *member)
{
    SCOPED_LOCK(&member->lock);
    return member->wanted_threads;
}

int member_poll_world(struct member *member, const struct member_standing *standing, struct world *ret_world,
                      struct error *error)
{
    int result = 0;
    SCOPED_LOCK(&member->lock);
    member->standing = *standing;
    member->stands = true;
    int64_t unled_ms = member->unled_since_ms == 0 ? 0 : clock_monotonic_ms() - member->unled_since_ms;
    if (member->fatal.kind != ERROR_NONE) {
        if (error != NULL)
            *error = member->fatal;
        result = -1;
    } else if (unled_ms >= member->options.lost_ms) {
        result = tell_lost(member, unled_ms, error);
    } else if (member->world_ready) {
        member->world_ready = false;
        *ret_world = member->world;
        result = 1;
    }
    return result;
}

void member_guard(struct member *member, struct collective *group)
{
    SCOPED_LOCK(&member->lock);
    member->group = group;
    if (group != NULL && member->fatal.kind != ERROR_NONE)
        collective_abort(group, member->fatal.kind, member->fatal.message);
    else if (group != NULL &&
             (!member->in_force || generation_compare(collective_generation(group), member->world.generation) != 0))
        collective_abort(group, ERROR_UNAVAILABLE, member->ended);
}

void member_set_step(struct member *member, int64_t step)
{
    SCOPED_LOCK(&member->lock);
    member->step = step;
}

bool member_has_newcomers(struct member *member)
{
    SCOPED_LOCK(&member->lock);
    bool newcomers = member->newcomers;
    return newcomers;
}

enum member_presence member_presence_of(struct member *member, const struct world *world, unsigned rank)
{
    unsigned seat = world->members[rank];
    SCOPED_LOCK(&member->lock);
    bool known = member->options.rank == 0 && generation_compare(member->seated_since, world->generation) >= 0;
    bool lost = known && (!member->seated[seat] || member->seated_incarnations[seat] != world->incarnations[rank]);
    bool ended = !member->in_force || generation_compare(member->world.generation, world->generation) != 0;
    return lost ? MEMBER_LOST : ended ? MEMBER_MOVED_ON : MEMBER_PRESENT;
}

void member_cancel(struct member *member)
{
    SCOPED_LOCK(&member->lock);
    member->cancelled = true;
    pthread_cond_broadcast(&member->changed);
}

void member_leave(struct member *member)
{
    int64_t until = clock_monotonic_ms() + (member->options.rank == 0 ? CHIEF_LEAVE_MS : LEAVE_MS);
    SCOPED_LOCK(&member->lock);
    member->leaving = true;
    member->left = false;
    rpc_wake(member->rpc);
    while (!member->left && member->fatal.kind == ERROR_NONE && clock_monotonic_ms() < until)
        (void)wait_until_told(member);
}

void member_describe(struct member *member, char text[MEMBER_TEXT_MAX])
{
    SCOPED_LOCK(&member->lock);
    memcpy(text, member->waiting, MEMBER_TEXT_MAX);
}
