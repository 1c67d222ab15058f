/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/local_rounds.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"

#define BATCH 24
#define STEPS 8
#define RATE 0.05
#define RANKS 3

/* One rank's: alone, so that an average is what it averages, and what is left is the outer optimizer; or of a crew. */
struct scene {
    unsigned rank, size;
    pthread_t thread;
    int result;
    struct error error;
    struct strategy_result outcome;
    struct learner learner; /* without a member */
    struct endpoint *endpoint;
    struct collective *group;
    struct strategy_options options;
    struct local_rounds *rounds;
};

static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"MultiWorkerMirrored\"},"
                           "\"model\":{\"preset\":\"mlp\",\"width\":8},"
                           "\"data\":{\"format\":\"Synthetic\",\"examples\":100},"
                           "\"training\":{\"steps\":8,\"batchSize\":24,\"seed\":5,"
                           "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.05\",\"momentum\":\"0.9\"}}}";

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return RATE;
}

static void add_all(const void *context, const float *const *inputs, float *result, size_t elements)
{
    unsigned count = *(const unsigned *)context;
    for (size_t i = 0; i < elements; i++) {
        float sum = inputs[0][i];
        for (unsigned k = 1; k < count; k++)
            sum += inputs[k][i];
        result[i] = sum;
    }
}

static void open_endpoint(struct scene *scene, struct collective_peer *ret_peer)
{
    char address[LOOPBACK_HOST_MAX];
    struct error error = ERROR_INIT;
    loopback_host(address, 8 + scene->rank);
    cr_assert_eq(endpoint_open(address, 0, &scene->endpoint, &error), 0, "%s", error.message);
    snprintf(ret_peer->address, sizeof(ret_peer->address), "%s", address);
    ret_peer->port = endpoint_port(scene->endpoint);
}

static void open_group(struct scene *scene, const struct collective_peer *peers)
{
    struct error error = ERROR_INIT;
    struct collective_options options = {.endpoint = scene->endpoint,
                                         .job_uid = "uid",
                                         .generation = {1, 1, 1},
                                         .rank = scene->rank,
                                         .size = scene->size,
                                         .peers = peers,
                                         .reduction = {.combine = add_all, .context = &scene->size}};
    for (unsigned i = 0; i < scene->size; i++)
        options.reduction.contributions[i] = 1;
    cr_assert_eq(collective_new(&options, &scene->group, &error), 0, "%s", error.message);
}

static void open_learner(struct learner *learner, unsigned devices)
{
    struct error error = ERROR_INIT;
    cr_assert(learner_open_job(learner, text, &error) == 0 &&
                  learner_open_model(learner, devices, BATCH, false, &error) == 0 &&
                  learner_open_state(learner, &error) == 0 &&
                  training_state_add_slot(&learner->state, LOCAL_ROUNDS_SLOT, &error) == 0,
              "%s", error.message);
}

/* The shards of each batch that a rank has, and its number of devices. */
struct share {
    unsigned devices, shards, first, end;
    enum collective_type collective;
};

/* Without a group. */
static void open_share(struct scene *scene, const struct share *share, int64_t batch, int64_t local_steps,
                       double outer_rate, double outer_momentum)
{
    struct error error = ERROR_INIT;
    *scene = (struct scene){.size = 1};
    open_learner(&scene->learner, share->devices);
    scene->learner.job.strategy.local_steps = local_steps;
    scene->learner.job.strategy.outer_learning_rate = outer_rate;
    scene->learner.job.strategy.outer_momentum = outer_momentum;
    scene->options = learner_options(&scene->learner, STRATEGY_MULTI_WORKER_MIRRORED);
    scene->options.spec = &scene->learner.job.strategy;
    scene->options.crew.collective = share->collective;
    scene->options.global_batch = batch;
    scene->options.logical_shards = share->shards;
    static const int64_t last = STEPS;
    scene->options.total_steps = &last;
    scene->options.calls.learning_rate = rate;
    cr_assert_eq(local_rounds_new(&scene->options, &scene->rounds, &error), 0, "%s", error.message);
    cr_assert_eq(local_rounds_fit(scene->rounds, share->shards, share->first, share->end, &error), 0, "%s",
                 error.message);
}

/* Rounds of shard `shard` of `shards`, on one device. */
static void open_rounds(struct scene *scene, int64_t batch, unsigned shards, unsigned shard, int64_t local_steps,
                        double outer_rate, double outer_momentum)
{
    const struct share share = {.devices = 1, .shards = shards, .first = shard, .end = shard + 1};
    open_share(scene, &share, batch, local_steps, outer_rate, outer_momentum);
}

static void join_alone(struct scene *scene)
{
    static struct collective_peer self;
    struct error error = ERROR_INIT;
    open_endpoint(scene, &self);
    open_group(scene, &self);
    cr_assert_eq(collective_connect(scene->group, 60000, &error), 0, "%s", error.message);
}

static void open_scene(struct scene *scene, int64_t local_steps, double outer_rate, double outer_momentum)
{
    open_rounds(scene, BATCH, 1, 0, local_steps, outer_rate, outer_momentum);
    join_alone(scene);
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
        cr_assert_eq(result.own_steps, ends[round] - 3 * round);
        cr_assert(result.own_ns[0] > 0 && result.own_ns[0] <= result.longest_ns[0]);
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

/* ---------------------------------------------------------------- several devices */

static void expect_round(struct scene *scene)
{
    struct strategy_result result;
    struct error error = ERROR_INIT;
    cr_assert_eq(run_round(scene, &result, &error), 0, "%s", error.message);
}

/* A round that comes to nothing when the others are gone; then the crew is whole again. */
static void expect_lost_round(struct scene *scene)
{
    struct strategy_result result;
    struct error error = ERROR_INIT;
    collective_abort(scene->group, ERROR_UNAVAILABLE, "worker 1: gone");
    cr_assert_eq(run_round(scene, &result, &error), -1);
    cr_assert_eq(error.kind, ERROR_UNAVAILABLE);
    collective_free(scene->group);
    endpoint_free(scene->endpoint);
    join_alone(scene);
}

/* Rounds of 3, 3 and 2 steps, the fifth step of which has a short batch. */
static uint32_t digest_after(const struct share *share, bool loses_rounds)
{
    struct scene scene;
    open_share(&scene, share, BATCH, 3, 0.7, 0.9);
    join_alone(&scene);
    for (int round = 0; round < 3; round++) {
        if (loses_rounds)
            expect_lost_round(&scene);
        expect_round(&scene);
    }
    cr_assert_eq(scene.learner.state.progress.step, STEPS);
    uint32_t digest = training_state_digest(&scene.learner.state);
    close_scene(&scene);
    return digest;
}

/* Shards that are one subtree of twelve, and some that are several; with the short batch most have no example. */
static const struct {
    unsigned first, end;
} ranges[] = {{0, 6}, {2, 8}, {3, 12}, {5, 8}};
#define RANGES (sizeof ranges / sizeof *ranges)

static void expect_same_bits(const struct share *several, const struct share *one, bool loses_rounds)
{
    uint32_t expected = digest_after(one, false);
    cr_expect_eq(digest_after(several, loses_rounds), expected, "%u devices, shards [%u, %u)", several->devices,
                 one->first, one->end);
}

static void expect_the_bits_of_one_device(unsigned devices, enum collective_type collective, bool loses_rounds)
{
    for (size_t i = 0; i < RANGES; i++) {
        const struct share one = {.devices = 1, .shards = 12, .first = ranges[i].first, .end = ranges[i].end};
        struct share several = one;
        several.devices = devices;
        several.collective = collective;
        expect_same_bits(&several, &one, loses_rounds);
    }
}

Test(local_rounds, the_devices_of_a_worker_have_the_bits_of_one, .timeout = 120)
{
    expect_the_bits_of_one_device(2, COLLECTIVE_AUTO, false);
    expect_the_bits_of_one_device(3, COLLECTIVE_AUTO, false);
    expect_the_bits_of_one_device(3, COLLECTIVE_HIERARCHICAL, false);
    expect_the_bits_of_one_device(2, COLLECTIVE_REDUCE_TO_ONE, false);
}

/* The other devices forget what they have computed as well. */
Test(local_rounds, all_devices_go_back_when_a_round_fails, .timeout = 120)
{
    expect_the_bits_of_one_device(3, COLLECTIVE_AUTO, true);
}

/* ---------------------------------------------------------------- several workers */

static void *run_rank(void *context)
{
    struct scene *scene = context;
    int64_t abandoned = 0;
    struct world world = {.rank = scene->rank, .size = scene->size, .logical_shards = scene->size};
    scene->result = collective_connect(scene->group, 60000, &scene->error);
    if (scene->result == 0)
        scene->result =
            local_rounds_run(scene->rounds, scene->group, &world, 0, &scene->outcome, &abandoned, &scene->error);
    return NULL;
}

static void start_rank(struct scene *scene, const struct collective_peer *peers)
{
    open_group(scene, peers);
    cr_assert_eq(pthread_create(&scene->thread, NULL, run_rank, scene), 0);
}

static void await_rank(struct scene *scene)
{
    pthread_join(scene->thread, NULL);
    cr_assert_eq(scene->result, 0, "rank %u: %s", scene->rank, scene->error.message);
}

/* One round of a whole crew. */
static void run_crew(struct scene crew[RANKS], int64_t batch, double outer_rate, double outer_momentum)
{
    static struct collective_peer peers[RANKS];
    for (unsigned i = 0; i < RANKS; i++) {
        open_rounds(&crew[i], batch, RANKS, i, 3, outer_rate, outer_momentum);
        crew[i].rank = i;
        crew[i].size = RANKS;
        open_endpoint(&crew[i], &peers[i]);
    }
    for (unsigned i = 0; i < RANKS; i++)
        start_rank(&crew[i], peers);
    for (unsigned i = 0; i < RANKS; i++)
        await_rank(&crew[i]);
}

static void run_one_alone(struct scene *scene, int64_t batch, unsigned shard, float *start)
{
    const struct training_state *state = &scene->learner.state;
    open_rounds(scene, batch, RANKS, shard, 3, 1, 0);
    join_alone(scene);
    memcpy(start, state->parameters, (size_t)state->layout.elements * sizeof(*start));
    cr_assert_eq(run_round(scene, &scene->outcome, &scene->error), 0, "%s", scene->error.message);
}

/* Runs the round of each rank by itself. */
static void run_alone(struct scene alone[RANKS], int64_t batch, float *start)
{
    for (unsigned i = 0; i < RANKS; i++)
        run_one_alone(&alone[i], batch, i, start);
}

static double mean_of(const struct scene alone[RANKS], int vector, int64_t element)
{
    double sum = 0, examples = 0;
    for (unsigned i = 0; i < RANKS; i++) {
        const struct training_state *state = &alone[i].learner.state;
        const float *values = vector == 0 ? state->parameters : state->slots[vector - 1];
        sum += (double)alone[i].outcome.examples * (double)values[element];
        examples += (double)alone[i].outcome.examples;
    }
    return sum / examples;
}

/* With SGD's momentum as the inner slot. */
static void expect_the_mean(const struct training_state *state, const struct scene alone[RANKS], int64_t k,
                            double start)
{
    double change = start - mean_of(alone, 0, k);
    cr_assert_float_eq(state->parameters[k], start - 0.5 * (change + 0.9 * change), 1e-6, "%lld", (long long)k);
    cr_assert_float_eq(state->slots[0][k], mean_of(alone, 1, k), 1e-5, "slot %lld", (long long)k);
    cr_assert_float_eq(state->slots[1][k], change, 1e-6, "velocity %lld", (long long)k);
}

static void expect_outcome(const struct scene *member, const struct scene alone[RANKS], int64_t examples,
                           const float *start)
{
    const struct training_state *state = &member->learner.state;
    cr_expect_eq(member->outcome.examples, examples);
    cr_expect_eq(state->progress.step, 3);
    for (int64_t k = 0; k < state->layout.elements; k++)
        expect_the_mean(state, alone, k, start[k]);
}

static void expect_examples(const struct scene *scene, int64_t examples)
{
    cr_expect_eq(scene->outcome.examples, examples);
}

static void try_crew(int64_t batch, const int64_t examples[RANKS])
{
    struct scene crew[RANKS], alone[RANKS];
    static float start[100000];
    int64_t all = 0;
    run_alone(alone, batch, start);
    run_crew(crew, batch, 0.5, 0.9);
    for (unsigned i = 0; i < RANKS; i++)
        all += alone[i].outcome.examples;
    for (unsigned i = 0; i < RANKS; i++) {
        expect_examples(&alone[i], examples[i]);
        expect_outcome(&crew[i], alone, all, start);
    }
    for (unsigned i = 0; i < RANKS; i++) {
        close_scene(&crew[i]);
        close_scene(&alone[i]);
    }
}

Test(local_rounds, a_crew_takes_the_mean_of_its_workers)
{
    try_crew(BATCH, (int64_t[]){24, 24, 24});
}

Test(local_rounds, workers_count_as_often_as_they_have_seen_examples)
{
    try_crew(5, (int64_t[]){3, 6, 6});
}

/* Its momentum, which nothing has been added to, is not averaged in. */
Test(local_rounds, a_worker_without_examples_takes_no_step)
{
    try_crew(2, (int64_t[]){0, 3, 3});
}

/* ---------------------------------------------------------------- a reader that copies the state for a checkpoint */

struct reader {
    struct training_state *state;
    uint32_t start; /* digest of what is being copied */
    bool told, told_late;
};

static void await_copy(void *context)
{
    struct reader *reader = context;
    reader->told_late |= !reader->told && training_state_digest(reader->state) != reader->start;
    reader->told = true;
}

/* A rank that has examples is told of by their first update. */
Test(local_rounds, a_rank_without_examples_announces_the_change_too, .timeout = 120)
{
    static struct scene scene;
    struct strategy_result result;
    struct error error = ERROR_INIT;
    open_rounds(&scene, BATCH, 2 * BATCH, 0, 4, 0.7, 0.9);
    struct training_state *state = &scene.learner.state;
    for (int64_t i = 0; i < state->layout.elements; i++)
        state->slots[state->slot_count - 1][i] = 1; /* on its way from earlier rounds */
    struct reader reader = {.state = state, .start = training_state_digest(state)};
    local_rounds_free(scene.rounds);
    scene.options.calls.before_change = await_copy;
    scene.options.calls.context = &reader;
    cr_assert_eq(local_rounds_new(&scene.options, &scene.rounds, &error), 0, "%s", error.message);
    cr_assert_eq(local_rounds_fit(scene.rounds, 2 * BATCH, 0, 1, &error), 0, "%s", error.message);
    join_alone(&scene);
    cr_assert_eq(run_round(&scene, &result, &error), 0, "%s", error.message);
    cr_expect_eq(result.examples, 0);
    cr_expect(reader.told && !reader.told_late);
    cr_expect_neq(training_state_digest(state), reader.start, "it did change");
    close_scene(&scene);
}
