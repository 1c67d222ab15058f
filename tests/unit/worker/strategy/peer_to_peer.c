/* SPDX-License-Identifier: Apache-2.0
 *
 * A chief of peers, and one that is in its world and gives nothing, though it greets and its member beats on. With the peer's
 * part of a step never coming, the chief takes two steps of its own for each of the crew's. Or the peer answers, but late.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"
#include "tests/unit/worker/strategy/peer_counts.h"
#include "worker/comm/rpc.h"
#include "worker/device/backend.h"
#include "worker/strategy/peer_hub.h"
#include "worker/strategy/peer_message.h"

#define SIZE 2
#define SIZE_OF_THREE 3
#define PORT 2222
#define BATCH 8
#define GRACE_MS 400
#define RATE 1e-5
#define ELEMENTS_MAX 65536
#define NO_DEATH_MS 600000
#define REFUSED_PORT 1

/* A fake peer of another rank. */
struct companion {
    const struct training_state *likeness; /* its own state is as large */
    struct member *member;
    struct rpc *rpc;
    pthread_t joining;
    bool answers;                   /* what it hears, after a while */
    bool is_absent;                 /* nobody listens where it is said to be */
    bool lacks;                     /* has not got the changes before those that come */
    const struct companion *behind; /* answers nothing until this one has been met */
    /* The rpc's thread only: what it has not answered yet. */
    struct rpc_stream *stream;
    struct peer_message due; /* of a meeting */
    bool owes_update;
    unsigned ticks;
    atomic_uint heard, met;
};

static const int64_t last_step = 100;

struct scene {
    unsigned size;            /* 0: SIZE */
    unsigned seats_of_job;    /* 0: as many as `size` */
    unsigned rank;            /* of the learner, which is the chief mostly */
    unsigned devices, shards; /* of the learner, 0: one; of the crew, 0: one a worker */
    bool is_far;              /* of the learner's devices each has its own memory */
    char hosts[SIZE_OF_THREE][LOOPBACK_HOST_MAX];
    struct crew_seat seats[SIZE_OF_THREE];
    struct learner chief;
    struct peer_hub *hub;
    struct companion companions[SIZE_OF_THREE - 1];
    unsigned votes;
    char warning[1024], stall[1024];
    int64_t stall_ms;
    int64_t grace_ms; /* 0: GRACE_MS */
    int64_t restored_step, restored_finished[CREW_SIZE_MAX];
};

static struct companion *companion_of(struct scene *scene, unsigned rank)
{
    return &scene->companions[rank > scene->rank ? rank - 1 : rank];
}

static double constant_rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return RATE;
}

static unsigned read_votes(void *context)
{
    return ((struct scene *)context)->votes;
}

static void take_warning(void *context, const char *text)
{
    struct scene *scene = context;
    snprintf(scene->warning, sizeof scene->warning, "%s", text);
}

/* Makes the worker leave once it waits for the chief. */
static void take_stall(void *context, const char *text)
{
    struct scene *scene = context;
    if (strstr(text, "waiting for the chief") == NULL)
        return;
    snprintf(scene->stall, sizeof scene->stall, "%s", text);
    scene->votes = STRATEGY_VOTE_LEAVE;
}

/* Restores a checkpoint's step, or starts afresh. */
static int restore_state(void *context, struct error *error)
{
    struct scene *scene = context;
    (void)error;
    scene->chief.state.progress.step = scene->restored_step;
    return 0;
}

static void *join_crew(void *context)
{
    struct companion *companion = context;
    struct world world;
    cr_assert_eq(member_agree(companion->member, &(struct member_standing){0}, &world, NULL), 0);
    return NULL;
}

static struct member_options place_in_crew(struct scene *scene, unsigned rank, uint16_t port)
{
    return (struct member_options){.job_uid = LEARNER_JOB_UID,
                                   .attempt = 1,
                                   .incarnation = 1,
                                   .rank = rank,
                                   .size = scene->size,
                                   .seats = scene->seats,
                                   .listen_address = scene->hosts[rank],
                                   .data_port = port,
                                   .loose = true,
                                   .logical_shards = scene->size,
                                   .death_ms = NO_DEATH_MS,
                                   .lost_ms = NO_DEATH_MS};
}

static void say(struct rpc_stream *stream, const struct peer_message *message)
{
    unsigned char *bytes = memory_allocate(1, RPC_MESSAGE_MAX);
    rpc_stream_send(stream, bytes, peer_message_encode(message, bytes, RPC_MESSAGE_MAX));
    free(bytes);
}

static void give_state(const struct companion *companion, struct rpc_stream *stream, uint64_t serial)
{
    static const float zeros[PEER_PART_MAX];
    uint64_t elements = (uint64_t)companion->likeness->layout.elements;
    unsigned vectors = 1 + companion->likeness->optimizer_slots;
    cr_assert_leq(elements, PEER_PART_MAX);
    for (unsigned vector = 0; vector < vectors; vector++)
        say(stream, &(struct peer_message){.type = PEER_STATE,
                                           .serial = serial,
                                           .vector = vector,
                                           .last = vector + 1 == vectors,
                                           .count = elements,
                                           .floats = zeros});
}

/* Whether the learner's step may be given up, as its training loop would be told, and was so when it was answered. */
static atomic_bool may_be_given_up, answered_beside;

static void leaves_boundary(void *context)
{
    (void)context;
    atomic_store(&may_be_given_up, false);
}

static void at_boundary(void *context)
{
    (void)context;
    atomic_store(&may_be_given_up, true);
}

/* Vectors have a single part here. */
static void hear(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    static const float zeros[PEER_PART_MAX];
    struct companion *companion = context;
    struct peer_message message;
    if (peer_message_decode(bytes, length, &message, NULL) < 0)
        return;
    if (message.type == PEER_HELLO)
        say(stream, &(struct peer_message){.type = PEER_COUNTS, .seats = SIZE});
    if (message.type == PEER_FETCH && companion->likeness != NULL)
        give_state(companion, stream, message.serial);
    if ((message.type != PEER_UPDATE && message.type != PEER_AVERAGE) || !message.last)
        return;
    atomic_fetch_add(&companion->heard, 1);
    cr_assert(message.offset == 0 || !companion->answers);
    companion->stream = stream;
    companion->ticks = 0;
    if (message.type == PEER_UPDATE) {
        companion->owes_update = true;
        return;
    }
    companion->due = message;
    companion->due.floats = zeros;
}

#define LATE_TICKS 10
#define TICK_MS 50

/* Changes and meetings may come in either order. */
static void answer(struct companion *companion)
{
    if (companion->owes_update)
        say(companion->stream, &(struct peer_message){.type = companion->lacks ? PEER_NOTHING : PEER_TAKEN});
    companion->owes_update = false;
    if (companion->due.type == PEER_NONE)
        return;
    say(companion->stream, &companion->due);
    atomic_fetch_add(&companion->met, 1);
    companion->due.type = PEER_NONE;
}

static void answer_late(void *context)
{
    struct companion *companion = context;
    bool owes = companion->owes_update || companion->due.type != PEER_NONE;
    if (!companion->answers || companion->stream == NULL || !owes || ++companion->ticks < LATE_TICKS)
        return;
    if (companion->behind != NULL && atomic_load(&companion->behind->met) == 0)
        return;
    if (atomic_load(&may_be_given_up))
        atomic_store(&answered_beside, true);
    answer(companion);
}

static void on_end(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    ((struct companion *)context)->stream = NULL;
}

static void on_call(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = hear, .closed = on_end};
    *ret_context = context;
}

static void open_companion(struct scene *scene, unsigned rank)
{
    static const struct rpc_method method = {PEER_METHOD_EXCHANGE, on_call};
    struct companion *companion = companion_of(scene, rank);
    struct rpc_server *listener;
    struct error error = ERROR_INIT;
    cr_assert_eq(rpc_new(answer_late, companion, TICK_MS, &companion->rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(companion->rpc, scene->hosts[rank], 0, &method, 1, companion, &listener, &error), 0,
                 "%s", error.message);
    rpc_start_ticks(companion->rpc);
    const struct member_options options =
        place_in_crew(scene, rank, companion->is_absent ? REFUSED_PORT : rpc_server_port(listener));
    cr_assert_eq(member_start(&options, &companion->member, &error), 0, "%s", error.message);
    cr_assert_eq(pthread_create(&companion->joining, NULL, join_crew, companion), 0);
}

#define JOB(model, examples, optimizer)                                                                                \
    "{\"name\":\"test\",\"strategy\":{\"type\":\"PeerToPeer\"},\"workers\":{\"replicas\":2},\"model\":" model          \
    ",\"data\":{\"format\":\"Synthetic\",\"examples\":" examples "},\"training\":{\"steps\":100,\"batchSize\":8,"      \
    "\"logicalShards\":2,\"seed\":5" optimizer "}}"

#define SMALL JOB("{\"preset\":\"mlp\",\"width\":16}", "64", "")

static int open_learner(struct scene *scene, const char *job, struct error *error)
{
    const struct peer_hub_options hub = {.job_uid = LEARNER_JOB_UID,
                                         .attempt = 1,
                                         .incarnation = 1,
                                         .seat = scene->rank,
                                         .listen_address = scene->hosts[scene->rank]};
    struct learner *chief = &scene->chief;
    chief->is_far = scene->is_far;
    if (learner_open_job(chief, job, error) < 0 || learner_open_model(chief, scene->devices, BATCH, false, error) < 0 ||
        learner_open_state(chief, error) < 0 || peer_hub_open(&hub, &scene->hub, error) < 0)
        return -1;
    const struct member_options member = place_in_crew(scene, scene->rank, peer_hub_port(scene->hub));
    if (member_start(&member, &chief->member, error) < 0)
        return -1;
    struct strategy_options options = learner_options(chief, STRATEGY_PEER_TO_PEER);
    options.peers.hub = scene->hub;
    options.peers.seat = scene->rank;
    options.crew.size = scene->seats_of_job > 0 ? scene->seats_of_job : scene->size;
    options.global_batch = BATCH;
    options.logical_shards = scene->shards;
    options.total_steps = &last_step;
    options.peers.grace_ms = scene->grace_ms > 0 ? scene->grace_ms : GRACE_MS;
    options.spec = &chief->job.strategy;
    options.calls.learning_rate = constant_rate;
    options.calls.votes = read_votes;
    options.calls.restore = restore_state;
    options.peers.restored_finished = scene->restored_finished;
    options.calls.on_warning = take_warning;
    options.calls.leaves_boundary = leaves_boundary;
    options.calls.at_boundary = at_boundary;
    options.calls.on_stall = take_stall;
    options.crew.stall_ms = scene->stall_ms;
    options.calls.context = scene;
    return strategy_open(&options, &chief->strategy, error);
}

static void scene_open(struct scene *scene, const char *job)
{
    struct error error = ERROR_INIT;
    if (scene->size == 0)
        scene->size = SIZE;
    if (scene->devices == 0)
        scene->devices = 1;
    if (scene->shards == 0)
        scene->shards = scene->size;
    for (unsigned rank = 0; rank < scene->size; rank++) {
        loopback_host(scene->hosts[rank], rank + 1);
        scene->seats[rank] = (struct crew_seat){"worker", rank, scene->hosts[rank], PORT};
    }
    for (unsigned rank = 0; rank < scene->size; rank++)
        if (rank != scene->rank)
            open_companion(scene, rank);
    cr_assert_eq(open_learner(scene, job, &error), 0, "%s", error.message);
    if (scene->rank != 0)
        scene->companions[0].likeness = &scene->chief.state;
    cr_assert_eq(strategy_reform(scene->chief.strategy, &error), 0, "%s", error.message);
    for (unsigned i = 0; i + 1 < scene->size; i++)
        pthread_join(scene->companions[i].joining, NULL);
}

static void scene_close(struct scene *scene)
{
    learner_close(&scene->chief);
    peer_hub_free(scene->hub);
    for (unsigned i = 0; i + 1 < scene->size; i++) {
        if (scene->companions[i].member != NULL)
            member_free(scene->companions[i].member);
        rpc_free(scene->companions[i].rpc);
    }
}

Test(peer_to_peer, a_chief_that_is_asked_to_leave_waits_no_longer_than_it_may_for_the_mean, .timeout = 300)
{
    static struct scene scene;
    struct error error = ERROR_INIT;
    unsigned of = 0;
    scene_open(&scene, JOB("{\"preset\":\"mlp\"}", "64", ""));
    struct strategy *strategy = scene.chief.strategy;
    scene.votes = STRATEGY_VOTE_LEAVE;
    cr_assert_eq(strategy_average_begin(strategy, &error), 0, "%s", error.message);
    cr_expect_eq(strategy_averaged(strategy, &of), 1);
    cr_expect_eq(of, SIZE);
    cr_expect_not_null(strstr(scene.warning, "only 1 of 2 replicas were averaged, without rank 1 (worker 1, "), "%s",
                       scene.warning);
    cr_expect_not_null(strstr(scene.warning, "is being terminated, and waited no longer"), "%s", scene.warning);
    strategy_average_end(strategy);
    scene_close(&scene);
}

/* A step of the crew; returns the parameters that were before, to be freed. */
static float *crew_step(struct scene *scene)
{
    struct strategy_result result;
    struct error error = ERROR_INIT;
    const struct training_state *state = &scene->chief.state;
    size_t size = (size_t)state->layout.elements * sizeof(float);
    float *before = memory_allocate(1, size);
    memcpy(before, state->parameters, size);
    cr_assert_eq(strategy_step(scene->chief.strategy, RATE, 0, &result, &error), 0, "%s", error.message);
    return before;
}

static double longest_move(const struct scene *scene, const float *before)
{
    double longest = 0;
    for (int64_t i = 0; i < scene->chief.state.layout.elements; i++)
        longest = fmax(longest, fabs((double)scene->chief.state.parameters[i] - (double)before[i]));
    return longest;
}

/* With a constant gradient, each update of Adam is as long as the learning rate, if the age of the moments is right. All updates of a
 * step are the chief's, since the peer takes none. For any number of seats, they move the mean of the two replicas by the learning rate. */
static void expect_moves_of_mean(const char *job, unsigned seats)
{
    static struct scene scene;
    scene = (struct scene){.seats_of_job = seats, .shards = seats};
    scene_open(&scene, job);
    for (int step = 0; step < 3; step++) {
        SCOPED_FREE float *before = crew_step(&scene);
        double expected = RATE, move = longest_move(&scene, before);
        cr_expect_float_eq(move, expected, 0.05 * expected, "%u seats, step %d: %g of %g", seats, step, move, expected);
    }
    cr_expect_eq(strategy_finished(scene.chief.strategy, 0), 3 * BATCH);
    scene_close(&scene);
}

#define ADAMW ",\"optimizer\":{\"type\":\"AdamW\",\"learningRate\":\"0.00001\"}"

Test(peer_to_peer, moments_are_as_old_as_the_worker_s_own_updates, .timeout = 300)
{
    expect_moves_of_mean(JOB("{\"preset\":\"mlp\"}", "4", ADAMW), SIZE);
}

Test(peer_to_peer, a_batch_moves_the_mean_by_the_rate_for_any_number_of_seats, .timeout = 300)
{
    expect_moves_of_mean(JOB("{\"preset\":\"mlp\"}", "4", ADAMW), 2 * SIZE);
}

/* What may happen to a replica between two steps, the same each time: the mean becomes the state for a while (the peer's replica is all
 * zeros), peers change it, unless they may be reading it for a meeting, and its place among the examples changes. */
static void disturb(struct scene *scene)
{
    struct error error = ERROR_INIT;
    struct strategy *strategy = scene->chief.strategy;
    const struct training_state *state = &scene->chief.state;
    const int64_t further[CREW_SIZE_MAX] = {strategy_finished(strategy, 0) + BATCH + 1};
    cr_assert_eq(strategy_average_begin(strategy, &error), 0, "%s", error.message);
    strategy_average_end(strategy);
    for (int64_t i = 0; i < state->layout.elements; i++)
        state->parameters[i] *= 0.75f;
    peer_hub_restore(scene->hub, further);
}

/* Where its devices compute from. */
static uint32_t digest_of(struct learner *learner)
{
    cr_assert_eq(training_state_to_host(&learner->state, NULL), 0);
    return training_state_digest(&learner->state);
}

/* After steps of which the peer tells nothing: momentum, and a last batch of the epoch that is short. */
static uint32_t digest_on(unsigned devices, bool are_far, const char *job)
{
    struct scene scene = {.devices = devices, .is_far = are_far, .shards = 6};
    scene.companions[0].likeness = &scene.chief.state;
    scene_open(&scene, job);
    for (int step = 0; step < 7; step++) {
        free(crew_step(&scene));
        if (step % 3 == 1)
            disturb(&scene);
    }
    uint32_t digest = digest_of(&scene.chief);
    scene_close(&scene);
    return digest;
}

#define MOMENTUM ",\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\",\"momentum\":\"0.9\"}"

static void expect_bits_of_one(bool are_far, const char *job)
{
    uint32_t one = digest_on(1, false, job);
    for (unsigned devices = 1 + !are_far; devices <= 3; devices++)
        cr_expect_eq(digest_on(devices, are_far, job), one, "%u devices", devices);
}

Test(peer_to_peer, the_devices_of_a_worker_have_the_bits_of_one, .timeout = 300)
{
    expect_bits_of_one(false, JOB("{\"preset\":\"mlp\",\"width\":16}", "22", MOMENTUM));
}

Test(peer_to_peer, devices_with_memory_of_their_own_have_the_bits_of_one, .timeout = 300)
{
    expect_bits_of_one(true, JOB("{\"preset\":\"mlp\",\"width\":16}", "22", MOMENTUM));
}

/* Copies to where the host finds the parameters, and whether the step might have been given up, and its state saved, by then. */
static struct {
    struct device_backend backend; /* the device's, but for launches */
    void (*launch)(struct device_stream *stream, enum device_operation operation, const void *arguments);
    const float *host;
    unsigned filled, filled_beside;
} watch;

static void launch_watched(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    if (operation == OPERATION_copy && ((const struct copy *)arguments)->to == watch.host) {
        watch.filled++;
        watch.filled_beside += atomic_load(&may_be_given_up);
    }
    watch.launch(stream, operation, arguments);
}

static void watch_host(struct training_state *state)
{
    watch.backend = *state->host.stream->backend;
    watch.launch = watch.backend.launch;
    watch.backend.launch = launch_watched;
    watch.host = state->host.parameters;
    state->host.stream->backend = &watch.backend;
}

Test(peer_to_peer, a_step_is_not_given_up_while_other_devices_are_given_its_parameters, .timeout = 300)
{
    static struct scene scene = {.devices = 2, .is_far = true, .shards = 4};
    scene_open(&scene, JOB("{\"preset\":\"mlp\",\"width\":16}", "22", MOMENTUM));
    watch_host(&scene.chief.state);
    at_boundary(NULL); /* the step begins */
    free(crew_step(&scene));
    cr_expect_gt(watch.filled, 0u);
    cr_expect_eq(watch.filled_beside, 0u);
    scene_close(&scene);
}

/* To a peer that takes its time: what it has done is with that one before it goes. */
static void expect_handed_over(const char *job)
{
    static struct scene scene = {.companions = {{.answers = true}}, .grace_ms = NO_DEATH_MS};
    scene_open(&scene, job);
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_eq(peer_hub_handing(scene.hub, 0), PEER_HANDING_DONE);
    scene_close(&scene);
}

Test(peer_to_peer, a_leaver_has_sent_all_changes, .timeout = 300)
{
    expect_handed_over(SMALL);
}

/* A thread that abandoned the step would follow the world at the same time. */
Test(peer_to_peer, a_step_is_not_abandoned_during_the_hand_over, .timeout = 300)
{
    at_boundary(NULL); /* the step begins */
    expect_handed_over(SMALL);
    cr_expect_not(atomic_load(&answered_beside));
}

/* A worker that waits for the chief, which has not told the end yet. */
Test(peer_to_peer, a_worker_asked_to_leave_after_the_last_step_hands_over_too, .timeout = 300)
{
    static struct scene scene = {.rank = 1, .companions = {{.answers = true}}, .grace_ms = NO_DEATH_MS};
    struct error error = ERROR_INIT;
    scene_open(&scene, SMALL);
    free(crew_step(&scene));
    cr_assert_neq(peer_hub_handing(scene.hub, 0), PEER_HANDING_DONE);
    scene.votes = STRATEGY_VOTE_LEAVE;
    cr_expect_eq(strategy_meet(scene.chief.strategy, &error), -1);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "%s", error.message);
    cr_expect_eq(peer_hub_handing(scene.hub, 0), PEER_HANDING_DONE);
    scene_close(&scene);
}

/* The first takes no changes, and the second has not got those before: what this one has done goes to it in a meeting. */
static void expect_met(struct companion first)
{
    static struct scene scene;
    scene = (struct scene){
        .size = SIZE_OF_THREE, .companions = {first, {.answers = true, .lacks = true}}, .grace_ms = 40000};
    scene_open(&scene, SMALL);
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_eq(peer_hub_unhanded(scene.hub), 0);
    scene_close(&scene);
}

Test(peer_to_peer, a_leaver_meets_another_peer_than_a_frozen_one, .timeout = 300)
{
    expect_met((struct companion){.answers = false});
}

Test(peer_to_peer, a_leaver_meets_another_peer_than_an_unconnected_one, .timeout = 300)
{
    expect_met((struct companion){.is_absent = true});
}

/* Changes do not reach the one, and mean nothing to the other. */
Test(peer_to_peer, a_leaver_meets_a_peer_although_another_takes_no_change, .timeout = 300)
{
    static struct scene scene = {
        .size = SIZE_OF_THREE,
        .companions = {{.answers = true, .behind = &scene.companions[1]}, {.answers = true, .lacks = true}},
        .grace_ms = NO_DEATH_MS};
    scene_open(&scene, SMALL);
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_gt(atomic_load(&scene.companions[1].met), 0u);
    scene_close(&scene);
}

/* The share of a short grace period is short. */
Test(peer_to_peer, a_leaver_does_not_wait_for_a_peer_that_takes_nothing, .timeout = 300)
{
    static struct scene scene;
    scene_open(&scene, SMALL);
    for (int look = 0; look < 6000 && !peer_hub_is_connected(scene.hub, 1); look++)
        usleep(10000);
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_eq(peer_hub_handing(scene.hub, 0), PEER_HANDING_UNDER_WAY);
    cr_expect_not_null(strstr(scene.warning, "goes without handing over to rank 1 (worker 1, "), "%s", scene.warning);
    cr_expect_not_null(strstr(scene.warning, "; 4 examples are in no other replica"), "%s", scene.warning);
    scene_close(&scene);
}

/* As far as this worker knows, the chief, which is of even rank and should ask, is evaluating. */
Test(peer_to_peer, a_worker_that_is_not_asked_asks_when_only_it_has_more_than_a_batch, .timeout = 300)
{
    static struct scene scene = {.rank = 1};
    scene_open(&scene, SMALL);
    free(crew_step(&scene));
    cr_expect_not(peer_hub_meets(scene.hub));
    for (int step = 1; step < 8; step++) /* of two steps of its own each */
        free(crew_step(&scene));
    cr_expect(peer_hub_meets(scene.hub));
    scene_close(&scene);
}

/* For a minute, in fewer steps than the run has. */
static void step_until(struct scene *scene, bool (*is_so)(struct scene *scene))
{
    for (int step = 0; step < 90 && !is_so(scene); step++) {
        free(crew_step(scene));
        for (int look = 0; look < 70 && !is_so(scene); look++)
            usleep(10000);
    }
}

static bool second_has_heard(struct scene *scene)
{
    return atomic_load(&scene->companions[1].heard) > 0;
}

static bool has_warned(struct scene *scene)
{
    return scene->warning[0] != '\0';
}

/* Of three workers, the first companion is the only one of odd rank. */
Test(peer_to_peer, a_worker_that_gets_no_answer_asks_another, .timeout = 300)
{
    static struct scene scene = {.size = SIZE_OF_THREE, .companions = {{.answers = false}, {.answers = true}}};
    scene_open(&scene, SMALL);
    step_until(&scene, second_has_heard);
    cr_expect_gt(atomic_load(&scene.companions[1].heard), 0u);
    scene_close(&scene);
}

/* Those were with another that is gone, too. */
Test(peer_to_peer, a_worker_left_alone_tells_which_counted_examples_are_lost, .timeout = 300)
{
    static struct scene scene;
    scene_open(&scene, SMALL);
    peer_hub_count(
        scene.hub, 1,
        7); /* as if the companion had told: what it tells while the crew forms belongs to nobody's replica */
    cr_expect_eq(count_of(scene.hub, 1), 7);
    free(crew_step(&scene));
    cr_expect_str_empty(scene.warning);
    member_leave(scene.companions[0].member);
    step_until(&scene, has_warned);
    cr_expect_not_null(strstr(scene.warning, "nobody else is left, and 7 examples that count"), "%s", scene.warning);
    scene_close(&scene);
}

/* It is lost before it has stored what came of the run. */
Test(peer_to_peer, a_worker_that_waits_for_the_chief_at_the_end_names_it, .timeout = 300)
{
    static struct scene scene = {.rank = 1, .stall_ms = 100};
    struct error error = ERROR_INIT;
    scene_open(&scene, SMALL);
    free(crew_step(&scene));
    member_free(scene.companions[0].member);
    scene.companions[0].member = NULL;
    cr_expect_eq(strategy_meet(scene.chief.strategy, &error), -1);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "%s", error.message);
    cr_expect_not_null(strstr(scene.stall, "waiting for the chief, worker 0 ("), "%s", scene.stall);
    scene_close(&scene);
}

/* ---- what a checkpoint tells */

static void expect_restored(int64_t step, int64_t own, int64_t other, int64_t expected_own, int64_t expected_other)
{
    static struct scene scene;
    scene = (struct scene){.restored_step = step, .restored_finished = {own, other}};
    scene_open(&scene, SMALL);
    cr_expect_eq(strategy_finished(scene.chief.strategy, 0), expected_own);
    cr_expect_eq(strategy_finished(scene.chief.strategy, 1), expected_other);
    cr_expect_eq(scene.chief.state.progress.step, step);
    scene_close(&scene);
}

#define RESTORED(name, ...)                                                                                            \
    Test(peer_to_peer, name, .timeout = 300)                                                                           \
    {                                                                                                                  \
        expect_restored(__VA_ARGS__);                                                                                  \
    }
RESTORED(what_each_had_finished_comes_back_with_a_checkpoint, 5, 28, 15, 28, 15)
/* They overshoot the last step together. */
RESTORED(what_each_had_finished_at_the_end_comes_back_with_a_checkpoint, 100, 420, 400, 420, 400)
/* All examples are no whole number of the batches that there are now: the run stays over. */
Test(peer_to_peer, what_each_had_finished_of_a_run_that_is_over_comes_back_with_other_batches, .timeout = 300)
{
    expect_restored(100, 415, 380, 420, 380);
    expect_restored(100, 0, 795, 5, 795);
}

RESTORED(a_checkpoint_that_does_not_tell_counts_as_the_chief_s, 5, 0, 0, 40, 0)
/* The checkpoint's batches were larger. */
RESTORED(a_checkpoint_keeps_its_step_with_another_batch_size, 5, 56, 30, 40, 0)

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

/* Which parameters a step leaves alone: those behind what dropout has dropped. */
static void note_still(const struct learner *learner, const float *before, bool still[])
{
    cr_assert_leq(learner->state.layout.elements, ELEMENTS_MAX);
    for (int64_t i = 0; i < learner->state.layout.elements; i++)
        still[i] = learner->state.parameters[i] == before[i];
}

/* One example, so that nothing but its mask differs from that of a worker alone, which the seed and its place tell. */
Test(peer_to_peer, a_worker_has_masks_of_its_own, .timeout = 300)
{
    static const char job[] =
        JOB("{\"inputShape\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":64},{\"type\":\"Dropout\","
            "\"rate\":\"0.5\"},{\"type\":\"Dense\",\"units\":10}],\"loss\":\"SoftmaxCrossEntropy\"}",
            "1", "");
    static struct scene scene;
    static struct learner alone;
    static bool still[2][ELEMENTS_MAX];
    struct strategy_result result;
    struct error error = ERROR_INIT;
    scene_open(&scene, job);
    scene.votes = STRATEGY_VOTE_LEAVE; /* after one step of its own */
    SCOPED_FREE float *before = crew_step(&scene);
    note_still(&scene.chief, before, still[0]);
    cr_assert(learner_open_job(&alone, job, &error) == 0 && learner_open_model(&alone, 1, BATCH, false, &error) == 0 &&
                  learner_open_state(&alone, &error) == 0,
              "%s", error.message);
    struct strategy_options options = learner_options(&alone, STRATEGY_ONE_DEVICE);
    options.global_batch = BATCH;
    options.logical_shards = 1;
    options.total_steps = &last_step;
    options.calls.learning_rate = constant_rate;
    options.calls.restore = fresh_state;
    cr_assert(strategy_open(&options, &alone.strategy, &error) == 0 && strategy_reform(alone.strategy, &error) == 0 &&
                  strategy_step(alone.strategy, RATE, 0, &result, &error) == 0,
              "%s", error.message);
    note_still(&alone, before, still[1]);
    int64_t differ = 0;
    for (int64_t i = 0; i < alone.state.layout.elements; i++)
        differ += still[0][i] != still[1][i];
    cr_expect_gt(differ, alone.state.layout.elements / 10);
    learner_close(&alone);
    scene_close(&scene);
}
