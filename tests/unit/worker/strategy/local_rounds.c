/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/local_rounds.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"

#define BATCH 24
#define STEPS 8
#define RATE 0.05

/* One worker, so that an average is what it averages, and what is left is the outer optimizer. */
struct scene {
    struct learner learner; /* without a member */
    struct endpoint *endpoint;
    struct collective *group;
    struct strategy_options options;
    struct local_rounds *rounds;
};

static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"MultiWorkerMirrored\"},"
                           "\"model\":{\"preset\":\"mlp\",\"width\":8},"
                           "\"data\":{\"format\":\"synthetic\",\"examples\":100},"
                           "\"training\":{\"steps\":8,\"batchSize\":24,\"seed\":5,"
                           "\"optimizer\":{\"type\":\"sgd\",\"learningRate\":\"0.05\",\"momentum\":\"0.9\"}}}";

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return RATE;
}

static void take_last(const void *context, const float *const *inputs, float *result, size_t elements)
{
    (void)context;
    if (inputs[0] != result)
        memcpy(result, inputs[0], elements * sizeof(*result));
}

static void open_group(struct scene *scene)
{
    static struct collective_peer self;
    char address[LOOPBACK_HOST_MAX];
    struct error error = ERROR_INIT;
    loopback_host(address, 8);
    cr_assert_eq(endpoint_open(address, 0, &scene->endpoint, &error), 0, "%s", error.message);
    snprintf(self.address, sizeof(self.address), "%s", address);
    self.port = endpoint_port(scene->endpoint);
    struct collective_options options = {.endpoint = scene->endpoint,
                                         .job_uid = "uid",
                                         .generation = {1, 1, 1},
                                         .size = 1,
                                         .peers = &self,
                                         .reduction = {.contributions = {1}, .combine = take_last}};
    cr_assert_eq(collective_new(&options, &scene->group, &error), 0, "%s", error.message);
    cr_assert_eq(collective_connect(scene->group, 60000, &error), 0, "%s", error.message);
}

static void open_learner(struct learner *learner)
{
    struct error error = ERROR_INIT;
    cr_assert(learner_open_job(learner, text, &error) == 0 &&
                  learner_open_model(learner, 1, BATCH, false, &error) == 0 &&
                  learner_open_state(learner, &error) == 0 &&
                  training_state_add_slot(&learner->state, LOCAL_ROUNDS_SLOT, &error) == 0,
              "%s", error.message);
}

static void open_scene(struct scene *scene, int64_t local_steps, double outer_rate, double outer_momentum)
{
    struct error error = ERROR_INIT;
    *scene = (struct scene){0};
    open_learner(&scene->learner);
    scene->learner.job.strategy.local_steps = local_steps;
    scene->learner.job.strategy.outer_learning_rate = outer_rate;
    scene->learner.job.strategy.outer_momentum = outer_momentum;
    scene->options = learner_options(&scene->learner, STRATEGY_MULTI_WORKER_MIRRORED);
    scene->options.spec = &scene->learner.job.strategy;
    scene->options.global_batch = BATCH;
    scene->options.logical_shards = 1;
    scene->options.total_steps = STEPS;
    scene->options.learning_rate = rate;
    cr_assert_eq(local_rounds_new(&scene->options, &scene->rounds, &error), 0, "%s", error.message);
    cr_assert_eq(local_rounds_fit(scene->rounds, 1, 0, 1, &error), 0, "%s", error.message);
    open_group(scene);
}

static void close_scene(struct scene *scene)
{
    local_rounds_free(scene->rounds);
    collective_free(scene->group);
    endpoint_free(scene->endpoint);
    learner_close(&scene->learner);
}

static int run_round(struct scene *scene, struct strategy_result *result, struct error *error)
{
    int64_t abandoned = 0;
    struct world world = {.size = 1, .logical_shards = 1};
    return local_rounds_run(scene->rounds, scene->group, &world, 0, result, &abandoned, error);
}

/* The same steps without rounds. */
static void train_plainly(struct scene *scene)
{
    struct strategy *strategy;
    struct error error = ERROR_INIT;
    struct strategy_options options = scene->options;
    options.type = STRATEGY_ONE_DEVICE;
    struct strategy_result result;
    cr_assert_eq(strategy_open(&options, &strategy, &error), 0, "%s", error.message);
    for (int step = 0; step < STEPS; step++)
        cr_assert_eq(strategy_step(strategy, RATE, 0, &result, &error), 0, "%s", error.message);
    strategy_close(strategy);
}

static double difference(const struct scene *a, const struct scene *b)
{
    double most = 0;
    for (int64_t i = 0; i < a->learner.state.layout.elements; i++)
        most = fmax(most, fabs((double)a->learner.state.parameters[i] - (double)b->learner.state.parameters[i]));
    return most;
}

Test(local_rounds, plain_averaging_of_one_worker_is_plain_training)
{
    struct scene local, plain;
    struct error error = ERROR_INIT;
    struct strategy_result result;
    open_scene(&local, 3, 1, 0);
    open_scene(&plain, 3, 1, 0);
    const int64_t ends[] = {3, 6, STEPS};
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(local_rounds_begin(local.rounds, ends[round]), 3 * round);
        cr_assert_eq(run_round(&local, &result, &error), 0, "%s", error.message);
        cr_assert_eq(result.step, ends[round]);
        cr_assert_eq(result.examples, round == 1 ? 2 * BATCH + 4 : (ends[round] - 3 * round) * BATCH);
    }
    train_plainly(&plain);
    cr_assert_eq(local.learner.state.progress.examples_consumed, plain.learner.state.progress.examples_consumed);
    cr_assert_lt(difference(&local, &plain), 1e-6);
    close_scene(&local);
    close_scene(&plain);
}

Test(local_rounds, the_outer_optimizer_is_nesterovs)
{
    struct scene one, outer;
    struct error error = ERROR_INIT;
    struct strategy_result result;
    open_scene(&one, 2, 1, 0);
    open_scene(&outer, 2, 0.5, 0.9);
    float start = outer.learner.state.parameters[3];
    cr_assert_eq(run_round(&one, &result, &error), 0);
    cr_assert_eq(run_round(&outer, &result, &error), 0);
    double change = (double)start - (double)one.learner.state.parameters[3];
    cr_assert_neq(change, 0);
    cr_assert_float_eq(outer.learner.state.slots[outer.learner.state.slot_count - 1][3], change, 1e-7);
    cr_assert_float_eq(outer.learner.state.parameters[3], (double)start - 0.5 * (change + 0.9 * change), 1e-6);
    close_scene(&one);
    close_scene(&outer);
}

Test(local_rounds, a_round_that_fails_has_changed_nothing)
{
    struct scene scene;
    struct error error = ERROR_INIT;
    struct strategy_result result;
    open_scene(&scene, 4, 0.7, 0.9);
    uint32_t before = training_state_digest(&scene.learner.state);
    collective_abort(scene.group, ERROR_UNAVAILABLE, "worker 1: gone");
    cr_assert_eq(run_round(&scene, &result, &error), -1);
    cr_assert_eq(error.kind, ERROR_UNAVAILABLE);
    cr_assert_eq(training_state_digest(&scene.learner.state), before);
    close_scene(&scene);
}
