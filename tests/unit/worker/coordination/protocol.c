/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of different versions: a member with a chief of another protocol, and a chief that such a member calls. The test plays the
 * other version.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/loopback.h"
#include "tests/unit/worker/comm/foreign.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/chief.h"
#include "worker/coordination/member.h"
#include "worker/coordination/message.h"

#define PORT 2222
#define ADVICE "give all pods of the job the same image"

static void foreign_bytes(enum coordination_message_type type, struct buffer *bytes)
{
    struct coordination_message message = {.type = type, .job_uid = "job", .generation = {1, 1, 0}, .size = 2};
    cr_assert_eq(coordination_message_encode(&message, bytes, NULL), 0);
    foreign_message(bytes->data, bytes->length);
}

static void say_foreign(struct rpc_stream *stream, enum coordination_message_type type)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    foreign_bytes(type, &bytes);
    rpc_stream_send(stream, bytes.data, bytes.length);
}

static struct member *member_of(unsigned rank, char chief[LOOPBACK_HOST_MAX], char here[LOOPBACK_HOST_MAX])
{
    struct crew_seat seats[2] = {{"worker", 0, chief, PORT}, {"worker", 1, here, PORT}};
    struct member_options options = {.job_uid = "job",
                                     .attempt = 1,
                                     .incarnation = 1,
                                     .rank = rank,
                                     .size = 2,
                                     .seats = seats,
                                     .listen_address = rank == 0 ? chief : here,
                                     .beat_ms = 20,
                                     .data_port = 1};
    struct member *member;
    struct error error = ERROR_INIT;
    cr_assert_eq(member_start(&options, &member, &error), 0, "%s", error.message);
    return member;
}

Test(protocol, another_one_is_told_apart_from_damage)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    struct coordination_message message;
    struct error error = ERROR_INIT;
    foreign_bytes(COORDINATION_JOIN, &bytes);
    cr_assert_eq(coordination_message_decode(bytes.data, bytes.length, &message, &error), -1);
    cr_assert_eq(error.kind, ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, ADVICE), "%s", error.message);
}

/* ---------------------------------------------------------------- a chief of another version */

static void answer(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context, (void)bytes, (void)length;
    say_foreign(stream, COORDINATION_BEAT);
}

static void closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    if (context)
        atomic_store((atomic_bool *)context, true);
}

static void opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)context, (void)stream;
    *ret_context = NULL;
    *ret_events = (struct rpc_stream_events){.message = answer, .closed = closed};
}

Test(protocol, a_member_says_what_is_wrong_and_ends, .timeout = 120)
{
    static const struct rpc_method methods[] = {{CREW_METHOD_JOIN, opened}};
    char chief[LOOPBACK_HOST_MAX], here[LOOPBACK_HOST_MAX];
    struct rpc *rpc;
    struct rpc_server *server;
    struct error error = ERROR_INIT;
    loopback_host(chief, 1);
    loopback_host(here, 2);
    cr_assert_eq(rpc_new(NULL, NULL, 20, &rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(rpc, chief, PORT, methods, 1, NULL, &server, NULL), 0);
    struct member *member = member_of(1, chief, here);
    struct member_standing standing = {.applied_step = 0};
    struct world world;
    cr_assert_eq(member_agree(member, &standing, &world, &error), -1);
    cr_assert_eq(error.kind, ERROR_FORBIDDEN, "no other try will do");
    cr_assert_not_null(strstr(error.message, ADVICE), "%s", error.message);
    member_free(member);
    rpc_free(rpc);
}

/* ---------------------------------------------------------------- a member of another version */

static atomic_bool refused;

static void hear(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context, (void)stream;
    struct coordination_message message;
    if (coordination_message_decode(bytes, length, &message, NULL) == 0 && message.type == COORDINATION_REFUSED &&
        strstr(message.text, ADVICE))
        atomic_store(&refused, true);
}

struct stranger {
    struct rpc *rpc;
    char chief[LOOPBACK_HOST_MAX];
    atomic_bool over;
};

/* Streams are opened on the rpc's thread. */
static void call_chief(void *context)
{
    static const struct rpc_stream_events events = {.message = hear, .closed = closed};
    struct stranger *stranger = context;
    struct rpc_stream *stream;
    if (rpc_stream_open(stranger->rpc, stranger->chief, PORT, CREW_METHOD_JOIN, 30000, &events, &stranger->over,
                        &stream, NULL) == 0)
        say_foreign(stream, COORDINATION_JOIN);
}

Test(protocol, a_chief_refuses_a_stranger_in_words, .timeout = 120)
{
    static struct stranger stranger;
    char here[LOOPBACK_HOST_MAX];
    loopback_host(stranger.chief, 1);
    loopback_host(here, 2);
    struct member *member = member_of(0, stranger.chief, here);
    cr_assert_eq(rpc_new(call_chief, &stranger, 100000000, &stranger.rpc, NULL), 0);
    rpc_start_ticks(stranger.rpc);
    rpc_wake(stranger.rpc);
    while (!atomic_load(&stranger.over))
        usleep(1000);
    cr_assert(atomic_load(&refused));
    rpc_free(stranger.rpc);
    member_cancel(member);
    member_free(member);
}

/* ---------------------------------------------------------------- a member that claims to be another pod */

struct pretender {
    struct rpc *rpc;
    char chief[LOOPBACK_HOST_MAX];
    struct coordination_message join;
    char refusal[COORDINATION_TEXT_MAX];
    atomic_bool over;
};

static void hear_verdict(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct pretender *pretender = context;
    struct coordination_message message;
    (void)stream;
    if (coordination_message_decode(bytes, length, &message, NULL) < 0)
        return;
    if (message.type == COORDINATION_REFUSED)
        snprintf(pretender->refusal, sizeof pretender->refusal, "%s", message.text);
    atomic_store(&pretender->over, true);
}

static void verdict_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    atomic_store(&((struct pretender *)context)->over, true);
}

static void pretend(void *context)
{
    static const struct rpc_stream_events events = {.message = hear_verdict, .closed = verdict_closed};
    struct pretender *pretender = context;
    struct rpc_stream *stream;
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    cr_assert_eq(coordination_message_encode(&pretender->join, &bytes, NULL), 0);
    if (rpc_stream_open(pretender->rpc, pretender->chief, PORT, CREW_METHOD_JOIN, 30000, &events, pretender, &stream,
                        NULL) == 0)
        rpc_stream_send(stream, bytes.data, bytes.length);
}

/* This process is worker 1 of attempt 1, incarnation 5, which its connections prove. Returns why the chief refuses; "": it does not. */
static const char *join_as(unsigned rank, struct generation generation)
{
    static struct pretender pretender;
    char here[LOOPBACK_HOST_MAX];
    pretender = (struct pretender){.join = {.type = COORDINATION_JOIN,
                                            .job_uid = "job",
                                            .generation = generation,
                                            .nonce = 77,
                                            .rank = rank,
                                            .size = 2,
                                            .peer = {.address = "127.0.0.1", .port = 1}}};
    crew_key_set("the key of this job", 19);
    pod_identity_set_own(
        &(struct pod_identity){.job_uid = "job", .role = "worker", .index = 1, .attempt = 1, .incarnation = 5});
    loopback_host(pretender.chief, 1);
    loopback_host(here, 2);
    struct member *member = member_of(0, pretender.chief, here);
    cr_assert_eq(rpc_new(pretend, &pretender, 100000000, &pretender.rpc, NULL), 0);
    rpc_start_ticks(pretender.rpc);
    rpc_wake(pretender.rpc);
    while (!atomic_load(&pretender.over))
        usleep(1000);
    rpc_free(pretender.rpc);
    member_cancel(member);
    member_free(member);
    return pretender.refusal;
}

Test(protocol, a_pod_joins_as_itself, .timeout = 120)
{
    cr_assert_str_empty(join_as(1, (struct generation){1, 5, 0}));
}

Test(protocol, a_join_with_another_incarnation_than_proven_is_refused, .timeout = 120)
{
    const char *refusal = join_as(1, (struct generation){1, 6, 0});
    cr_assert_not_null(
        strstr(refusal, "worker 1, attempt 1, incarnation 5, and cannot join as worker 1, attempt 1, incarnation 6"),
        "%s", refusal);
}

Test(protocol, a_join_as_another_worker_or_attempt_is_refused, .timeout = 120)
{
    cr_assert_not_null(strstr(join_as(0, (struct generation){1, 5, 0}), "cannot join as worker 0"));
    cr_assert_not_null(strstr(join_as(1, (struct generation){2, 5, 0}), "attempt 2, incarnation 5"));
}
