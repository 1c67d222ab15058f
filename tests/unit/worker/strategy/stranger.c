/* SPDX-License-Identifier: Apache-2.0
 *
 * A member ends if its chief is of another version, whatever its strategy is. The test plays the chief.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/loopback.h"
#include "tests/unit/worker/comm/foreign.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/chief.h"
#include "worker/coordination/message.h"
#include "worker/strategy/peer_hub.h"
#include "worker/train/error_exit_code.h"

#define SIZE 2
#define PORT 2222
#define BATCH 24

struct scene {
    char hosts[SIZE][LOOPBACK_HOST_MAX];
    struct crew_seat seats[SIZE];
    struct rpc *rpc;
    struct buffer beat; /* everything that the chief sends */
    struct learner learner;
    struct peer_hub *hub;
};

static void play_chief(struct scene *scene)
{
    static const struct rpc_method methods[] = {{CREW_METHOD_JOIN, foreign_opened}};
    const struct coordination_message message = {
        .type = COORDINATION_BEAT, .job_uid = LEARNER_JOB_UID, .generation = {1, 1, 0}, .size = SIZE};
    struct rpc_server *server;
    buffer_init(&scene->beat, COORDINATION_MESSAGE_MAX);
    cr_assert_eq(coordination_message_encode(&message, &scene->beat, NULL), 0);
    foreign_message(scene->beat.data, scene->beat.length);
    for (unsigned rank = 0; rank < SIZE; rank++) {
        loopback_host(scene->hosts[rank], rank);
        scene->seats[rank] = (struct crew_seat){"worker", rank, scene->hosts[rank], PORT};
    }
    cr_assert_eq(rpc_new(NULL, NULL, 20, &scene->rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(scene->rpc, scene->hosts[0], PORT, methods, 1, &scene->beat, &server, NULL), 0);
}

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 0.01;
}

static int open_peer(struct scene *scene, struct member_options member, struct error *error)
{
    const struct peer_hub_options hub = {
        .job_uid = LEARNER_JOB_UID, .attempt = 1, .incarnation = 1, .seat = 1, .listen_address = scene->hosts[1]};
    if (peer_hub_open(&hub, &scene->hub, error) < 0)
        return -1;
    member.job_uid = LEARNER_JOB_UID;
    member.listen_address = scene->hosts[1];
    member.data_port = peer_hub_port(scene->hub);
    member.loose = true;
    return member_start(&member, &scene->learner.member, error);
}

static int open_strategy(struct scene *scene, enum strategy_type type, struct error *error)
{
    static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},"
                               "\"model\":{\"preset\":\"mlp\",\"width\":8},"
                               "\"data\":{\"format\":\"Synthetic\",\"examples\":90},"
                               "\"training\":{\"steps\":7,\"batchSize\":24,\"seed\":5,"
                               "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\"}}}";
    const struct member_options member = {
        .attempt = 1, .rank = 1, .size = SIZE, .seats = scene->seats, .logical_shards = SIZE};
    struct learner *learner = &scene->learner;
    if (learner_open_job(learner, text, error) < 0 ||
        learner_open_model(learner, 1, BATCH / SIZE, type == STRATEGY_PIPELINE, error) < 0 ||
        learner_open_state(learner, error) < 0 ||
        (type == STRATEGY_PEER_TO_PEER ? open_peer(scene, member, error)
                                       : learner_open_member(learner, member, error)) < 0)
        return -1;
    struct strategy_options options = learner_options(learner, type);
    options.global_batch = BATCH;
    options.logical_shards = SIZE;
    options.pipeline.stages = type == STRATEGY_PIPELINE ? SIZE : 0;
    options.crew.size = SIZE;
    options.crew.rank = 1;
    options.peers.hub = scene->hub;
    static const int64_t last = 7;
    options.total_steps = &last;
    options.spec = &learner->job.strategy;
    options.calls.learning_rate = rate;
    return strategy_open(&options, &learner->strategy, error);
}

static void expect_end(enum strategy_type type)
{
    static struct scene scene;
    struct error error = ERROR_INIT;
    play_chief(&scene);
    cr_assert_eq(open_strategy(&scene, type, &error), 0, "%s", error.message);
    cr_assert_eq(strategy_reform(scene.learner.strategy, &error), -1);
    cr_expect_not_null(strstr(error.message, "give all pods of the job the same image"), "%s", error.message);
    cr_expect_neq(error.kind, ERROR_UNAVAILABLE, "that would be tried again");
    cr_expect_eq(error_exit_code(&error, EXIT_CODE_NO_CHECKPOINT), EXIT_CODE_LOST_CREW);
    learner_close(&scene.learner);
    peer_hub_free(scene.hub);
    rpc_free(scene.rpc);
    buffer_release(&scene.beat);
}

Test(stranger, ends_a_worker_of_multi_worker_mirrored, .timeout = 60)
{
    expect_end(STRATEGY_MULTI_WORKER_MIRRORED);
}

Test(stranger, ends_a_stage_of_a_pipeline, .timeout = 60)
{
    expect_end(STRATEGY_PIPELINE);
}

Test(stranger, ends_a_peer, .timeout = 60)
{
    expect_end(STRATEGY_PEER_TO_PEER);
}
