/* SPDX-License-Identifier: Apache-2.0
 *
 * A pipeline of two stages in two members, each a thread here: what becomes of a step that one stage has applied when the
 * other one has missed the last exchange.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/strategy/pipeline_parts.h"

#define RANKS 2
#define BATCH 24
#define STEPS 7
#define MISSED 4 /* rank `behind` misses the last exchange of this step */
#define RATE 0.02

struct stage {
    unsigned rank;
    int behind; /* the rank that misses it; -1: nobody */
    const struct crew_seat *seats;
    struct learner learner;
    unsigned restored;
    uint32_t digest;
    struct error error;
};

static int restore_part(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error)
{
    (void)chooses, (void)base, (void)error;
    ((struct stage *)context)->restored++;
    return 0;
}

static int open_model(struct stage *stage)
{
    static const char text[] =
        "{\"name\":\"test\",\"strategy\":{\"type\":\"Pipeline\",\"stages\":2},\"workers\":{\"replicas\":2},"
        "\"model\":{\"preset\":\"mlp\",\"width\":24},\"data\":{\"format\":\"Synthetic\",\"examples\":90},"
        "\"training\":{\"steps\":7,\"batchSize\":24,\"gradientClipNorm\":\"0.5\","
        "\"optimizer\":{\"type\":\"AdamW\",\"learningRate\":\"0.02\"}}}";
    return learner_open_job(&stage->learner, text, &stage->error) < 0 ||
                   learner_open_model(&stage->learner, 1, BATCH / 8, true, &stage->error) < 0
               ? -1
               : learner_open_state(&stage->learner, &stage->error);
}

static int open_stage(struct stage *stage)
{
    const struct member_options member = {
        .attempt = 1, .rank = stage->rank, .size = RANKS, .seats = stage->seats, .logical_shards = 8};
    if (open_model(stage) < 0 || learner_open_member(&stage->learner, member, &stage->error) < 0)
        return -1;
    struct strategy_options options = learner_options(&stage->learner, STRATEGY_PIPELINE);
    options.global_batch = BATCH;
    options.logical_shards = 8;
    options.gradient_clip_norm = 0.5;
    options.pipeline.stages = 2;
    options.crew.size = RANKS;
    options.crew.rank = stage->rank;
    options.crew.step_deadline_ms = 60000;
    options.calls.restore_part = restore_part;
    options.calls.context = stage;
    return strategy_open(&options, &stage->learner.strategy, &stage->error);
}

/* Vector 0 is the parameters, the others are the optimizer's slots. */
static float *vector_of(const struct training_state *state, unsigned number)
{
    return number == 0 ? state->parameters : state->slots[number - 1];
}

/* Sets the state back to before the step; the step's gradients are kept. */
static int miss_step(struct stage *stage)
{
    struct pipeline *pipeline = (struct pipeline *)stage->learner.strategy;
    const struct training_progress progress = stage->learner.state.progress;
    size_t bytes = (size_t)stage->learner.state.layout.elements * sizeof(float);
    unsigned count = 1 + stage->learner.state.slot_count;
    struct strategy_result result;
    float *before[1 + OPTIMIZER_SLOTS_MAX];
    for (unsigned i = 0; i < count; i++)
        before[i] = (float *)memory_copy_bytes((const char *)vector_of(&stage->learner.state, i), bytes);
    int status = strategy_step(stage->learner.strategy, RATE, 0, &result, &stage->error);
    for (unsigned i = 0; i < count; i++) {
        memcpy(vector_of(&stage->learner.state, i), before[i], bytes);
        free(before[i]);
    }
    stage->learner.state.progress = progress;
    if (status == 0)
        pipeline->verge = (struct pipeline_verge){.step = MISSED, .learning_rate = RATE};
    return status;
}

/* Though what a stage was sending when a run failed never arrived. */
static int evaluate(struct stage *stage)
{
    struct pipeline *pipeline = (struct pipeline *)stage->learner.strategy;
    struct loss_sums sums;
    for (unsigned u = 0; u < pipeline->unit_count; u++)
        for (unsigned i = 0; i < pipeline->units[u].slots; i++) {
            struct transfer *departure = &pipeline->units[u].departures[i];
            departure->rank = 1 - stage->rank;
            departure->pending = true;
        }
    return strategy_evaluate(stage->learner.strategy, stage->learner.dataset, 0, BATCH, &sums, &stage->error);
}

/* Every process tells how long its own stages took; they do different work. */
static int check_paces(const struct stage *stage, const struct strategy_result *result, struct error *error)
{
    for (unsigned rank = 0; rank < RANKS; rank++)
        if (result->own_ns[rank] <= 0 || strategy_kin(stage->learner.strategy, rank) != rank)
            return error_set(error, ERROR_INTERNAL, "rank %u has no time of its own in step %lld", rank,
                             (long long)result->step);
    return 0;
}

static int train(struct stage *stage)
{
    struct strategy_result result;
    if (strategy_reform(stage->learner.strategy, &stage->error) < 0)
        return -1;
    while (stage->learner.state.progress.step < STEPS) {
        bool missed = stage->behind >= 0 && stage->learner.state.progress.step == MISSED - 1;
        int status = missed && stage->behind == (int)stage->rank
                         ? miss_step(stage)
                         : strategy_step(stage->learner.strategy, RATE, 0, &result, &stage->error);
        bool lost =
            status < 0 && stage->error.kind == ERROR_UNAVAILABLE; /* the other one forms the crew anew already */
        if (lost)
            error_clear(&stage->error);
        else if (status < 0)
            return -1;
        if (status == 0 && !missed && check_paces(stage, &result, &stage->error) < 0)
            return -1;
        if ((missed || lost) && strategy_reform(stage->learner.strategy, &stage->error) < 0)
            return -1;
    }
    stage->digest = training_state_digest(&stage->learner.state);
    return evaluate(stage) < 0 ? -1 : strategy_meet(stage->learner.strategy, &stage->error);
}

static void *run_stage(void *context)
{
    struct stage *stage = context;
    if (open_stage(stage) == 0)
        (void)train(stage);
    return NULL;
}

/* digests[rank]: of each stage's part in the end. */
static void run(int behind, uint32_t digests[RANKS], unsigned restores)
{
    static unsigned used;
    char hosts[RANKS][LOOPBACK_HOST_MAX];
    struct crew_seat seats[RANKS];
    struct stage stages[RANKS];
    pthread_t threads[RANKS];
    memset(stages, 0, sizeof stages);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        loopback_host(hosts[rank], used++);
        seats[rank] = (struct crew_seat){"worker", rank, hosts[rank], 2222};
    }
    for (unsigned rank = 0; rank < RANKS; rank++) {
        stages[rank].rank = rank;
        stages[rank].behind = behind;
        stages[rank].seats = seats;
        pthread_create(&threads[rank], NULL, run_stage, &stages[rank]);
    }
    for (unsigned rank = 0; rank < RANKS; rank++)
        pthread_join(threads[rank], NULL);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        cr_assert_eq(stages[rank].error.kind, ERROR_NONE, "rank %u: %s", rank, stages[rank].error.message);
        cr_expect_eq(stages[rank].restored, restores, "rank %u was restored %u times", rank, stages[rank].restored);
        digests[rank] = stages[rank].digest;
    }
    for (unsigned rank = RANKS; rank-- > 0;)
        learner_close(&stages[rank].learner);
}

Test(pipeline_crew, a_stage_that_missed_the_last_exchange_takes_the_step_all_the_same, .timeout = 120)
{
    uint32_t undisturbed[RANKS], digests[RANKS];
    run(-1, undisturbed, 1); /* the start */
    for (int behind = 0; behind < RANKS; behind++) {
        run(behind, digests, 1);
        for (unsigned rank = 0; rank < RANKS; rank++)
            cr_expect_eq(digests[rank], undisturbed[rank], "rank %u, when rank %d was behind", rank, behind);
    }
}
