/* SPDX-License-Identifier: Apache-2.0
 *
 * Real models on crews of forked processes: the final state must have the same bits for any number of workers, and after any worker was
 * killed.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/forking.h"
#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"

#define RANKS_MAX 4
#define PORT 2222
#define BATCH 26 /* not divisible: shards differ in size, and the last batch of an epoch is short */
#define EXAMPLES 90

struct board {
    uint32_t digest[RANKS_MAX];
    volatile int64_t step[RANKS_MAX];
    volatile int64_t pause_at[RANKS_MAX];
    atomic_uint stalls; /* that ranks have told */
    double loss[RANKS_MAX], sum[RANKS_MAX];
    char shared[RANKS_MAX][16];
    char error[RANKS_MAX][512];
};

struct run {
    const char *model;
    unsigned size, shards;
    int64_t steps;
    double clip;
    int64_t leave_at; /* the step at which the last rank votes to leave; 0: never */
    int64_t step_deadline_ms;
    useconds_t restore_us; /* how long the chief takes to restore */
    int64_t stall_ms;      /* else not told */
    unsigned stores_until; /* the chief stores until others have stalled so often */
    struct board *board;
    struct crew_seat seats[RANKS_MAX];
    char hosts[RANKS_MAX][LOOPBACK_HOST_MAX];
    pid_t children[RANKS_MAX];
};

/* One process of the crew. */
struct worker {
    struct run *run;
    unsigned rank;
    struct learner learner;
    uint32_t boundary; /* digest of the state at the last one */
    int announced;     /* changes since */
    bool changed_early;
};

/* training_state_init has made it. */
static int fresh_state(void *context, struct error *error)
{
    (void)error;
    usleep(((struct worker *)context)->run->restore_us);
    return 0;
}

/* Until this returns, a reader may still use the last boundary's bytes. */
static void expect_change(void *context)
{
    struct worker *worker = context;
    worker->announced++;
    worker->changed_early |= training_state_digest(&worker->learner.state) != worker->boundary;
}

static void count_stall(void *context, const char *text)
{
    (void)text;
    atomic_fetch_add(&((struct worker *)context)->run->board->stalls, 1);
}

static int open_job(struct worker *worker, struct error *error)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "{\"name\":\"test\",\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"workers\":{\"replicas\":%u},"
             "\"model\":{\"preset\":\"%s\"},\"data\":{\"format\":\"Synthetic\",\"examples\":%d},"
             "\"training\":{\"steps\":%lld,\"batchSize\":%d,\"logicalShards\":%u,\"seed\":5,"
             "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\",\"momentum\":\"0.9\"}}}",
             worker->run->size, worker->run->model, EXAMPLES, (long long)worker->run->steps, BATCH,
             worker->run->shards);
    return learner_open_job(&worker->learner, text, error);
}

static int open_crew(struct worker *worker, uint32_t incarnation, struct error *error)
{
    const struct run *run = worker->run;
    const struct member_options options = {.attempt = 1,
                                           .incarnation = incarnation,
                                           .rank = worker->rank,
                                           .size = run->size,
                                           .seats = run->seats,
                                           .logical_shards = run->shards,
                                           .lost_ms = 8000};
    return learner_open_member(&worker->learner, options, error);
}

static int open_worker(struct worker *worker, uint32_t incarnation, struct error *error)
{
    const struct run *run = worker->run;
    struct learner *learner = &worker->learner;
    if (open_job(worker, error) < 0 ||
        learner_open_model(learner, 1, (BATCH + run->shards - 1) / run->shards, false, error) < 0 ||
        learner_open_state(learner, error) < 0 || (run->size > 1 && open_crew(worker, incarnation, error) < 0))
        return -1;
    struct strategy_options options = learner_options(learner, STRATEGY_MULTI_WORKER_MIRRORED);
    options.global_batch = BATCH;
    options.logical_shards = run->shards;
    options.gradient_clip_norm = run->clip;
    options.crew.step_deadline_ms = run->step_deadline_ms;
    options.crew.stall_ms = run->stall_ms;
    options.calls.on_stall = run->stall_ms > 0 ? count_stall : NULL;
    options.calls.restore = fresh_state;
    options.calls.before_change = expect_change;
    options.calls.context = worker;
    return strategy_open(&options, &learner->strategy, error);
}

/* As a chief does that has much to write. */
static int store_and_meet(struct worker *worker, struct error *error)
{
    const struct run *run = worker->run;
    while (worker->rank == 0 && atomic_load(&run->board->stalls) < run->stores_until)
        usleep(10000);
    return strategy_meet(worker->learner.strategy, error);
}

static int check_host_values(struct worker *worker, struct error *error)
{
    struct board *board = worker->run->board;
    double values[2] = {worker->rank == 0 ? 0.1 : 0, 1e15 + worker->rank};
    char name[16] = "";
    if (worker->rank == 0)
        snprintf(name, sizeof(name), "from the chief");
    if (strategy_sum(worker->learner.strategy, values, 2, error) < 0 ||
        strategy_share(worker->learner.strategy, name, sizeof(name), error) < 0)
        return -1;
    board->sum[worker->rank] = values[0] == 0.1 ? values[1] : -1;
    memcpy(board->shared[worker->rank], name, sizeof(name));
    return 0;
}

static bool votes_arrived(const struct worker *worker, int64_t step, const struct strategy_result *result)
{
    const struct run *run = worker->run;
    bool leaving = step == run->leave_at;
    for (unsigned rank = 0; rank < run->size; rank++)
        if (result->leaves[rank] != (leaving && rank + 1 == run->size))
            return false;
    bool saves = step == run->steps;
    return result->step == step && result->checkpoint == saves &&
           result->checkpoint_held_by == (saves ? 0 : run->size - 1) && result->leaving == (leaving ? 1 : 0);
}

/* The last rank's word counts, since it has the longest way. */
static int take_step(struct worker *worker, struct error *error)
{
    struct board *board = worker->run->board;
    int64_t step = worker->learner.state.progress.step + 1;
    unsigned votes = STRATEGY_VOTE_CHECKPOINT;
    if (worker->rank + 1 == worker->run->size)
        votes = (step == worker->run->steps ? STRATEGY_VOTE_CHECKPOINT : 0) |
                (step == worker->run->leave_at ? STRATEGY_VOTE_LEAVE : 0);
    struct strategy_result result;
    worker->boundary = training_state_digest(&worker->learner.state);
    worker->announced = 0;
    if (strategy_step(worker->learner.strategy, 0.02, votes, &result, error) < 0)
        return -1;
    if (worker->announced == 0 || worker->changed_early)
        return error_set(error, ERROR_INTERNAL, "step %lld changed the state unannounced", (long long)step);
    if (!votes_arrived(worker, step, &result))
        return error_set(error, ERROR_INTERNAL, "votes of step %lld went astray", (long long)step);
    board->loss[worker->rank] = result.loss;
    board->step[worker->rank] = result.step;
    return 0;
}

static int advance(struct worker *worker, bool *formed, struct error *error)
{
    struct board *board = worker->run->board;
    if (!*formed) {
        worker->boundary = training_state_digest(&worker->learner.state);
        if (strategy_reform(worker->learner.strategy, error) < 0)
            return -1;
        *formed = true;
        return 0;
    }
    if (worker->learner.state.progress.step == worker->run->steps)
        return store_and_meet(worker, error) < 0 ? -1 : check_host_values(worker, error);
    if (board->pause_at[worker->rank] == worker->learner.state.progress.step) {
        board->pause_at[worker->rank] = -1;
        raise(SIGSTOP);
    }
    return take_step(worker, error);
}

static int train(struct worker *worker, struct error *error)
{
    bool formed = false;
    for (;;) {
        bool was_last = formed && worker->learner.state.progress.step == worker->run->steps;
        if (advance(worker, &formed, error) == 0) {
            if (was_last)
                return 0;
        } else if (error->kind == ERROR_UNAVAILABLE) {
            formed = false;
            error_clear(error);
        } else {
            return -1;
        }
    }
}

static _Noreturn void worker_main(struct run *run, unsigned rank, uint32_t incarnation)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static struct worker worker;
    struct error error = ERROR_INIT;
    worker.run = run;
    worker.rank = rank;
    if (open_worker(&worker, incarnation, &error) < 0 || train(&worker, &error) < 0) {
        memcpy(run->board->error[rank], error.message, sizeof(run->board->error[rank]) - 1);
        _exit(1);
    }
    run->board->digest[rank] = training_state_digest(&worker.learner.state);
    if (worker.learner.member != NULL)
        member_leave(worker.learner.member);
    strategy_close(worker.learner.strategy);
    member_free(worker.learner.member);
    endpoint_free(worker.learner.endpoint);
    _exit(0);
}

static void start(struct run *run, unsigned rank, uint32_t incarnation)
{
    run->children[rank] = fork();
    if (run->children[rank] == 0)
        worker_main(run, rank, incarnation);
}

static void prepare(struct run *run)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    static unsigned used;
    run->board = mmap(NULL, sizeof(*run->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned rank = 0; rank < run->size; rank++) {
        loopback_host(run->hosts[rank], used++);
        run->seats[rank] = (struct crew_seat){"worker", rank, run->hosts[rank], PORT};
        run->board->pause_at[rank] = -1;
    }
}

static uint32_t finish(struct run *run)
{
    for (unsigned rank = 0; rank < run->size; rank++) {
        int status = 0;
        waitpid(run->children[rank], &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %u of %u: %s", rank, run->size,
                  run->board->error[rank]);
        cr_assert_eq(run->board->digest[rank], run->board->digest[0]);
        cr_assert_eq(run->board->loss[rank], run->board->loss[0]);
        cr_assert_eq(run->board->sum[rank], run->size == 1 ? 1e15 : run->size * 1e15 + run->size * (run->size - 1) / 2);
        cr_assert_str_eq(run->board->shared[rank], "from the chief");
    }
    return run->board->digest[0];
}

static uint32_t run_whole(const char *model, unsigned size, unsigned shards, double clip)
{
    struct run run = {.model = model, .size = size, .shards = shards, .steps = 9, .clip = clip};
    prepare(&run);
    for (unsigned rank = 0; rank < size; rank++)
        start(&run, rank, 1);
    return finish(&run);
}

static void expect_same_bits(const char *model, unsigned shards, double clip)
{
    uint32_t one = run_whole(model, 1, shards, clip);
    for (unsigned size = 2; size <= RANKS_MAX; size++)
        cr_assert_eq(run_whole(model, size, shards, clip), one, "%s: %u workers, %u shards", model, size, shards);
}

Test(multi_worker_mirrored, lenet_has_the_same_bits_on_1_to_4_workers, .timeout = 240)
{
    expect_same_bits("lenet", 4, 0);
    expect_same_bits("lenet", 12, 0);
}

Test(multi_worker_mirrored, mlp_has_the_same_bits_on_1_to_4_workers, .timeout = 240)
{
    expect_same_bits("mlp", 4, 0.5);
    expect_same_bits("mlp", 12, 0);
}

static void kill_and_compare(unsigned victim)
{
    struct run run = {.model = "lenet", .size = 3, .shards = 4, .steps = 9};
    prepare(&run);
    run.board->pause_at[victim] = 5;
    for (unsigned rank = 0; rank < run.size; rank++)
        start(&run, rank, 1);
    int status;
    cr_assert_eq(waitpid(run.children[victim], &status, WUNTRACED), run.children[victim]);
    cr_assert(WIFSTOPPED(status), "%s", run.board->error[victim]);
    kill(run.children[victim], SIGKILL);
    waitpid(run.children[victim], &status, 0);
    start(&run, victim, 2);
    cr_assert_eq(finish(&run), run_whole("lenet", 1, 4, 0));
}

Test(multi_worker_mirrored, a_killed_worker_changes_no_bit, .timeout = 240)
{
    kill_and_compare(2);
}

Test(multi_worker_mirrored, a_killed_chief_changes_no_bit, .timeout = 240)
{
    kill_and_compare(0);
}

Test(multi_worker_mirrored, a_long_restore_of_the_chief_is_waited_for, .timeout = 240)
{
    struct run run = {
        .model = "mlp", .size = 2, .shards = 2, .steps = 2, .step_deadline_ms = 2000, .restore_us = 3500 * 1000};
    prepare(&run);
    start(&run, 0, 1);
    start(&run, 1, 1);
    finish(&run);
}

/* Stalls of 100 ms, more of them than the deadline has. */
Test(multi_worker_mirrored, a_chief_that_stores_for_long_is_waited_for, .timeout = 240)
{
    struct run run = {.model = "mlp",
                      .size = 2,
                      .shards = 2,
                      .steps = 2,
                      .step_deadline_ms = 2000,
                      .stall_ms = 100,
                      .stores_until = 40};
    prepare(&run);
    start(&run, 0, 1);
    start(&run, 1, 1);
    finish(&run);
}

Test(multi_worker_mirrored, a_vote_to_leave_reaches_all_at_its_step, .timeout = 240)
{
    for (unsigned size = 1; size <= 3; size++) {
        struct run run = {.model = "mlp", .size = size, .shards = 3, .steps = 4, .leave_at = 2};
        prepare(&run);
        for (unsigned rank = 0; rank < size; rank++)
            start(&run, rank, 1);
        finish(&run);
    }
}

Test(multi_worker_mirrored, votes_to_leave_and_save_travel_together, .timeout = 240)
{
    struct run run = {.model = "mlp", .size = 2, .shards = 2, .steps = 3, .leave_at = 3};
    prepare(&run);
    start(&run, 0, 1);
    start(&run, 1, 1);
    finish(&run);
}
