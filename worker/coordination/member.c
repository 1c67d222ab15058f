/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member.h"

#include <stdio.h>
#include <sys/random.h>

#include "common/condition.h"
#include "common/memory.h"
#include "worker/coordination/member_parts.h"

#define TICK_MS 100
#define BEAT_MS_DEFAULT 500
#define SUSPICION_MS_DEFAULT 2000
#define DEATH_MS_DEFAULT 5000
#define LOST_MS_DEFAULT 600000
#define START_MS_DEFAULT 30000

/* ---------------------------------------------------------------- the rpc's thread */

static void join_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                        void **ret_context)
{
    chief_accept(((struct member *)context)->chief, stream, ret_events, ret_context);
}

static const struct rpc_method methods[] = {{CREW_METHOD_SUMMON, member_summons_opened},
                                            {CREW_METHOD_JOIN, join_opened}};

static void leave_when_alone(struct member *member)
{
    if (!chief_is_alone(member->chief))
        return;
    pthread_mutex_lock(&member->lock);
    if (member->leaving) {
        member->left = true;
        pthread_cond_broadcast(&member->changed);
    }
    pthread_mutex_unlock(&member->lock);
}

static void note_newcomers(struct member *member)
{
    unsigned count = chief_newcomers(member->chief);
    pthread_mutex_lock(&member->lock);
    member->newcomers = count > 0;
    pthread_mutex_unlock(&member->lock);
}

static void note_seated(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    for (unsigned seat = 0; seat < member->options.size; seat++)
        member->seated[seat] = chief_seats(member->chief, seat, &member->seated_incarnations[seat]);
    member->seated_since = member->world.generation;
    pthread_mutex_unlock(&member->lock);
}

static void member_tick(void *context)
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
            member_say_join(member);
        member->own_joined = true;
        chief_tick(member->chief);
        note_newcomers(member);
        note_seated(member);
        leave_when_alone(member);
    } else {
        member_tend_session(member, now);
        member_say_beat_if_due(member, now);
        member_say_leave_if_asked(member);
    }
    member->last_tick_ms = now;
    member_say_standing_if_due(member);
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
        .told = member_told,
        .superseded = member_superseded,
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
    if (choose_data_address(member, error) < 0 || rpc_new(member_tick, member, TICK_MS, &member->rpc, error) < 0 ||
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
