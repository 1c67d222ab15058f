/* SPDX-License-Identifier: Apache-2.0
 *
 * One member between two chiefs that the test plays itself: one that is superseded
 * and does not know it, and its successor.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/loopback.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/chief.h"
#include "worker/coordination/member.h"
#include "worker/coordination/message.h"

#define PORT 2222
#define OLD 3
#define NEW 5

struct played_chief {
    struct rpc *rpc;
    char address[LOOPBACK_HOST_MAX], member_address[LOOPBACK_HOST_MAX];
    uint32_t incarnation;
    const char *job_uid;
    atomic_bool silent;    /* ends every stream before it has said anything */
    atomic_bool calls;     /* summons the member */
    atomic_uint joins;     /* streams that spoke */
    atomic_uint foreigner; /* the highest incarnation of a chief that the member told it of */
    struct rpc_stream *member, *summon;
};

static void say(struct rpc_stream *stream, const struct played_chief *chief, enum coordination_message_type type)
{
    struct coordination_message message = {.type = type, .generation = {1, chief->incarnation, 0}};
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", chief->job_uid);
    snprintf(message.peer.address, sizeof(message.peer.address), "%s", chief->address);
    message.peer.port = PORT;
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    cr_assert_eq(coordination_message_encode(&message, &bytes, NULL), 0);
    rpc_stream_send(stream, bytes.data, bytes.length);
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct played_chief *chief = context;
    struct coordination_message message;
    cr_assert_eq(coordination_message_decode(bytes, length, &message, NULL), 0);
    if (message.type == COORDINATION_JOIN) {
        atomic_fetch_add(&chief->joins, 1);
        say(stream, chief, COORDINATION_BEAT);
    } else if (message.generation.incarnation > atomic_load(&chief->foreigner)) {
        atomic_store(&chief->foreigner, message.generation.incarnation);
    }
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)error;
    struct played_chief *chief = context;
    if (chief->member == stream)
        chief->member = NULL;
    if (chief->summon == stream)
        chief->summon = NULL;
}

static void ignore(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context, (void)stream, (void)bytes, (void)length;
}

static void on_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                      void **ret_context)
{
    struct played_chief *chief = context;
    *ret_context = chief;
    *ret_events = (struct rpc_stream_events){.message = ignore, .closed = on_closed};
    if (atomic_load(&chief->silent)) {
        rpc_stream_close(stream);
        return;
    }
    chief->member = stream;
    ret_events->message = on_message;
}

static void on_tick(void *context)
{
    static const struct rpc_stream_events events = {.message = ignore, .closed = on_closed};
    struct played_chief *chief = context;
    if (chief->member != NULL && atomic_load(&chief->silent))
        rpc_stream_close(chief->member);
    else if (chief->member != NULL)
        say(chief->member, chief, COORDINATION_BEAT);
    if (!atomic_load(&chief->calls) || chief->summon != NULL)
        return;
    if (rpc_stream_open(chief->rpc, chief->member_address, PORT, CREW_METHOD_SUMMON, 1000, &events, chief,
                        &chief->summon, NULL) == 0)
        say(chief->summon, chief, COORDINATION_SUMMON);
}

static void played_chief_start(struct played_chief *chief)
{
    static const struct rpc_method methods[] = {{CREW_METHOD_JOIN, on_opened}};
    struct rpc_server *server;
    cr_assert_eq(rpc_new(on_tick, chief, 20, &chief->rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(chief->rpc, chief->address, PORT, methods, 1, chief, &server, NULL), 0);
    rpc_start_ticks(chief->rpc);
}

/* ---------------------------------------------------------------- the member between them */

struct scene {
    struct played_chief old, new;
    struct member *member;
    pthread_t trainer;
};

static void *agree(void *context)
{
    struct member_standing standing = {.holds_state = true, .applied_step = 40};
    struct world world;
    (void)member_agree(((struct scene *)context)->member, &standing, &world, NULL);
    return NULL;
}

/* The chief's name leads to the old one. */
static void scene_open(struct scene *scene, const char *job_of_old, uint32_t incarnation_of_old)
{
    char here[LOOPBACK_HOST_MAX];
    *scene = (struct scene){.old = {.incarnation = incarnation_of_old, .job_uid = job_of_old},
                            .new = {.incarnation = NEW, .job_uid = "job"}};
    loopback_host(scene->old.address, 1);
    loopback_host(scene->new.address, 2);
    loopback_host(here, 3);
    memcpy(scene->new.member_address, here, sizeof(here));
    memcpy(scene->old.member_address, here, sizeof(here));
    played_chief_start(&scene->old);
    played_chief_start(&scene->new);
    struct crew_seat seats[2] = {{"worker", 0, scene->old.address, PORT}, {"worker", 1, here, PORT}};
    struct member_options options = {.job_uid = "job",
                                     .attempt = 1,
                                     .incarnation = 1,
                                     .rank = 1,
                                     .size = 2,
                                     .seats = seats,
                                     .listen_address = here,
                                     .beat_ms = 20,
                                     .data_port = 1};
    struct error error = ERROR_INIT;
    cr_assert_eq(member_start(&options, &scene->member, &error), 0, "%s", error.message);
    cr_assert_eq(pthread_create(&scene->trainer, NULL, agree, scene), 0);
}

static void scene_close(struct scene *scene)
{
    member_cancel(scene->member);
    pthread_join(scene->trainer, NULL);
    member_free(scene->member);
    rpc_free(scene->old.rpc);
    rpc_free(scene->new.rpc);
}

static void await(const atomic_uint *value, unsigned least)
{
    while (atomic_load(value) < least)
        usleep(1000);
}

Test(superseded_chief, is_told_and_left_for_the_successor_that_calls, .timeout = 120)
{
    struct scene scene;
    scene_open(&scene, "job", OLD);
    await(&scene.old.joins, 1);
    atomic_store(&scene.new.calls, true);
    await(&scene.new.joins, 1);
    /* The successor is out of reach for a while; the chief's name still leads to the old one. */
    atomic_store(&scene.new.calls, false);
    atomic_store(&scene.new.silent, true);
    await(&scene.old.joins, 2);
    await(&scene.old.foreigner, NEW);
    char text[MEMBER_TEXT_MAX];
    do {
        usleep(1000);
        member_describe(scene.member, text);
    } while (strstr(text, "superseded") == NULL);
    unsigned before = atomic_load(&scene.new.joins);
    atomic_store(&scene.new.silent, false);
    atomic_store(&scene.new.calls, true);
    await(&scene.new.joins, before + 1);
    scene_close(&scene);
}

Test(superseded_chief, a_chief_of_another_job_supersedes_no_chief, .timeout = 120)
{
    struct scene scene;
    scene_open(&scene, "job of yesterday", NEW + 4);
    await(&scene.old.joins, 1);
    usleep(100 * 1000); /* time for its beats; nothing breaks when there are none */
    atomic_store(&scene.new.calls, true);
    await(&scene.new.joins, 1);
    scene_close(&scene);
}
