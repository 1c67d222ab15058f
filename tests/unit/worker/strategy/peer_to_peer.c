/* SPDX-License-Identifier: Apache-2.0
 *
 * A chief of peers, and one that is in its world and gives nothing, though it greets and its member beats on. With the peer's
 * part of a step never coming, the chief takes two steps of its own for each of the crew's. Or the peer answers, but late.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/comm/rpc.h"
#include "worker/strategy/peer_hub.h"
#include "worker/strategy/peer_message.h"

#define SIZE 2
#define PORT 2222
#define BATCH 8
#define GRACE_MS 400
#define RATE 1e-5
#define ELEMENTS_MAX 65536
#define NO_DEATH_MS 600000

struct scene {
    char hosts[SIZE][LOOPBACK_HOST_MAX];
    struct crew_seat seats[SIZE];
    struct learner chief;
    struct peer_hub *hub;
    struct member *silent;
    struct rpc *rpc;
    pthread_t joining;
    unsigned votes;
    char warning[1024];
    int64_t grace_ms; /* 0: GRACE_MS */
    bool answers;     /* what it hears, after a while */
    /* The rpc's thread only: what it has not answered yet. */
    struct rpc_stream *stream;
    struct peer_message due;
    unsigned ticks;
};

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

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static void *join_crew(void *context)
{
    struct scene *scene = context;
    struct world world;
    cr_assert_eq(member_agree(scene->silent, &(struct member_standing){0}, &world, NULL), 0);
    return NULL;
}

static struct member_options place_in_crew(struct scene *scene, unsigned rank, uint16_t port)
{
    return (struct member_options){.job_uid = LEARNER_JOB_UID,
                                   .attempt = 1,
                                   .epoch = 1,
                                   .rank = rank,
                                   .size = SIZE,
                                   .seats = scene->seats,
                                   .listen_address = scene->hosts[rank],
                                   .data_port = port,
                                   .loose = true,
                                   .logical_shards = SIZE,
                                   .death_ms = NO_DEATH_MS,
                                   .lost_ms = NO_DEATH_MS};
}

static void say(struct rpc_stream *stream, const struct peer_message *message)
{
    static unsigned char bytes[RPC_MESSAGE_MAX];
    rpc_stream_send(stream, bytes, peer_message_encode(message, bytes, sizeof bytes));
}

/* What is to be answered here is of one part. */
static void hear(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    static const float zeros[PEER_PART_MAX];
    struct scene *scene = context;
    struct peer_message message;
    if (peer_message_decode(bytes, length, &message, NULL) < 0)
        return;
    if (message.type == PEER_HELLO)
        say(stream, &(struct peer_message){.type = PEER_COUNTS});
    if ((message.type != PEER_UPDATE && message.type != PEER_AVERAGE) || !message.last)
        return;
    cr_assert(message.offset == 0 || !scene->answers);
    scene->stream = stream;
    scene->ticks = 0;
    scene->due = message;
    scene->due.floats = zeros;
    if (message.type == PEER_UPDATE)
        scene->due = (struct peer_message){.type = PEER_TAKEN};
}

#define LATE_TICKS 10
#define TICK_MS 50

static void answer_late(void *context)
{
    struct scene *scene = context;
    if (!scene->answers || scene->stream == NULL || scene->due.type == PEER_NONE || ++scene->ticks < LATE_TICKS)
        return;
    say(scene->stream, &scene->due);
    scene->due.type = PEER_NONE;
}

static void on_end(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    ((struct scene *)context)->stream = NULL;
}

static void on_call(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = hear, .closed = on_end};
    *ret_context = context;
}

static void open_silent(struct scene *scene)
{
    static const struct rpc_method method = {PEER_METHOD_EXCHANGE, on_call};
    struct rpc_server *door;
    struct error error = ERROR_INIT;
    cr_assert_eq(rpc_new(answer_late, scene, TICK_MS, &scene->rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(scene->rpc, scene->hosts[1], 0, &method, 1, scene, &door, &error), 0, "%s",
                 error.message);
    rpc_start_ticks(scene->rpc);
    const struct member_options options = place_in_crew(scene, 1, rpc_server_port(door));
    cr_assert_eq(member_start(&options, &scene->silent, &error), 0, "%s", error.message);
    cr_assert_eq(pthread_create(&scene->joining, NULL, join_crew, scene), 0);
}

#define JOB(model, examples, optimizer) JOB_OF("", model, examples, optimizer)
#define JOB_OF(exchange, model, examples, optimizer)                                                                   \
    "{\"name\":\"test\",\"strategy\":{\"type\":\"PeerToPeer\"" exchange "},\"workers\":2,\"model\":" model             \
    ",\"data\":{\"format\":\"synthetic\",\"examples\":" examples "},\"training\":{\"steps\":100,\"batchSize\":8,"      \
    "\"logicalShards\":2,\"seed\":5" optimizer "}}"

static int open_chief(struct scene *scene, const char *job, struct error *error)
{
    const struct peer_hub_options hub = {
        .job_uid = LEARNER_JOB_UID, .attempt = 1, .epoch = 1, .listen_address = scene->hosts[0]};
    struct learner *chief = &scene->chief;
    if (learner_open_job(chief, job, error) < 0 || learner_open_model(chief, 1, BATCH, false, error) < 0 ||
        learner_open_state(chief, error) < 0 || peer_hub_open(&hub, &scene->hub, error) < 0)
        return -1;
    const struct member_options member = place_in_crew(scene, 0, peer_hub_port(scene->hub));
    if (member_start(&member, &chief->member, error) < 0)
        return -1;
    struct strategy_options options = learner_options(chief, STRATEGY_PEER_TO_PEER);
    options.hub = scene->hub;
    options.peers = SIZE;
    options.global_batch = BATCH;
    options.logical_shards = SIZE;
    options.total_steps = 100;
    options.grace_ms = scene->grace_ms > 0 ? scene->grace_ms : GRACE_MS;
    options.spec = &chief->job.strategy;
    options.learning_rate = constant_rate;
    options.votes = read_votes;
    options.restore = fresh_state;
    options.on_warning = take_warning;
    options.context = scene;
    return strategy_open(&options, &chief->strategy, error);
}

static void scene_open(struct scene *scene, const char *job)
{
    struct error error = ERROR_INIT;
    for (unsigned rank = 0; rank < SIZE; rank++) {
        loopback_host(scene->hosts[rank], rank + 1);
        scene->seats[rank] = (struct crew_seat){"worker", rank, scene->hosts[rank], PORT};
    }
    open_silent(scene);
    cr_assert_eq(open_chief(scene, job, &error), 0, "%s", error.message);
    cr_assert_eq(strategy_reform(scene->chief.strategy, &error), 0, "%s", error.message);
    pthread_join(scene->joining, NULL);
}

static void scene_close(struct scene *scene)
{
    learner_close(&scene->chief);
    peer_hub_free(scene->hub);
    member_free(scene->silent);
    rpc_free(scene->rpc);
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
    cr_expect_not_null(strstr(scene.warning, "is of 1 of 2 replicas: without rank 1 (worker 1, "), "%s", scene.warning);
    cr_expect_not_null(strstr(scene.warning, "is asked to leave, and waited no longer"), "%s", scene.warning);
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

/* Of a gradient that stays as it is each update of Adam is as long as the rate, if the moments' age is told right. A step of the
 * crew are two of the chief's, each of which moves the mean of two by half of itself. */
Test(peer_to_peer, moments_are_as_old_as_the_worker_s_own_updates, .timeout = 300)
{
    static struct scene scene;
    scene_open(&scene,
               JOB("{\"preset\":\"mlp\"}", "4", ",\"optimizer\":{\"type\":\"adamw\",\"learningRate\":\"0.00001\"}"));
    for (int step = 0; step < 3; step++) {
        SCOPED_FREE float *before = crew_step(&scene);
        cr_expect_float_eq(longest_move(&scene, before), RATE, 0.05 * RATE, "step %d: %g of %g", step,
                           longest_move(&scene, before), RATE);
    }
    scene_close(&scene);
}

/* To a peer that takes its time: what it has done is with that one before it goes. */
static void expect_handed_over(const char *job)
{
    static struct scene scene = {.answers = true, .grace_ms = NO_DEATH_MS};
    scene_open(&scene, job);
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_eq(peer_hub_handing(scene.hub, 0), PEER_HANDING_DONE);
    scene_close(&scene);
}

Test(peer_to_peer, who_leaves_has_sent_all_changes, .timeout = 300)
{
    expect_handed_over(JOB("{\"preset\":\"mlp\",\"width\":16}", "64", ""));
}

Test(peer_to_peer, who_leaves_and_gossips_has_met_somebody_after_its_last_step, .timeout = 300)
{
    expect_handed_over(JOB_OF(",\"exchange\":\"Gossip\"", "{\"preset\":\"mlp\",\"width\":16}", "64", ""));
}

/* The share of a short grace period is short. */
Test(peer_to_peer, who_leaves_does_not_wait_for_one_that_takes_nothing, .timeout = 300)
{
    static struct scene scene;
    scene_open(&scene, JOB("{\"preset\":\"mlp\",\"width\":16}", "64", ""));
    scene.votes = STRATEGY_VOTE_LEAVE;
    free(crew_step(&scene));
    cr_expect_eq(peer_hub_handing(scene.hub, 0), PEER_HANDING_UNDER_WAY);
    scene_close(&scene);
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
        JOB("{\"inputShape\":[784],\"layers\":[{\"type\":\"dense\",\"units\":64},{\"type\":\"dropout\","
            "\"rate\":\"0.5\"},{\"type\":\"dense\",\"units\":10}],\"loss\":\"softmaxCrossEntropy\"}",
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
    options.total_steps = 100;
    options.learning_rate = constant_rate;
    options.restore = fresh_state;
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
