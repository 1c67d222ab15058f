/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a run with a strategy whose sums do not wait for a chief that writes to its disk, and the pause at a rung.
 */
#include "worker/train/loop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "worker/data/dataset_format.h"
#include "worker/strategy/strategy_table.h"
#include "worker/train/stop.h"

static unsigned meetings, described_after;

static int form(struct strategy *strategy, struct error *error)
{
    (void)strategy, (void)error;
    return 0;
}

static int sum_in_time(struct strategy *strategy, double *values, unsigned count, struct error *error)
{
    (void)strategy, (void)values, (void)count;
    return error_set(error, ERROR_TIMEOUT, "rank 1 waits 300.0 s for rank 0");
}

static int meet(struct strategy *strategy, struct error *error)
{
    (void)strategy, (void)error;
    meetings++;
    return 0;
}

static int gather(struct strategy *strategy, float *whole, struct error *error)
{
    (void)strategy, (void)whole, (void)error;
    return 0;
}

static int describe(struct strategy *strategy, struct buffer *text, struct error *error)
{
    (void)strategy, (void)text, (void)error;
    described_after = meetings;
    return 0;
}

static unsigned kin(const struct strategy *strategy, unsigned rank)
{
    (void)strategy, (void)rank;
    return 0;
}

static int evaluate(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                    struct loss_sums *ret_sums, struct error *error)
{
    (void)strategy, (void)dataset, (void)first, (void)error;
    *ret_sums = (struct loss_sums){.count = count};
    return 0;
}

/* The chief leaves after the first step. */
static int step(struct strategy *strategy, double rate, unsigned votes, struct strategy_result *ret_result,
                struct error *error)
{
    (void)rate, (void)votes;
    int64_t *taken = &((struct trainer *)strategy->options.calls.context)->state.progress.step;
    if (*taken == 1 && meetings == 0)
        return error_set(error, ERROR_TIMEOUT, "rank 1 waits 300.0 s for rank 0");
    *ret_result = (struct strategy_result){.step = ++*taken, .leaving = *taken == 1, .leaves = {*taken == 1}};
    return 0;
}

static const struct strategy_crew_operations meets = {.meet = meet};
static const struct strategy_model_operations parts = {
    .evaluate = evaluate, .kin = kin, .gather = gather, .describe = describe};
static const struct strategy_operations whole_operations = {.reform = form,
                                                            .step = step,
                                                            .sum = sum_in_time,
                                                            .crew = &meets},
                                        parted_operations = {
                                            .reform = form, .sum = sum_in_time, .crew = &meets, .model = &parts};

/* Runs rank 1 of 2. */
static void end_run(const struct strategy_operations *operations, int64_t steps)
{
    static struct crew_seat seats[2];
    static struct dataset none;
    const struct report_options report = {.job_uid = "", .role = "worker", .http_port = -1, .unit = "examples"};
    const struct identity identity = {.job_uid = "", .grace_ms = 30000};
    const struct job_document job = {.strategy.type = STRATEGY_PIPELINE};
    struct strategy strategy = {.operations = operations, .world = {.rank = 1, .size = 2}};
    struct trainer trainer = {.identity = &identity,
                              .job = &job,
                              .crew = {.seats = seats, .size = 2, .least = 2, .expected = 2, .rank = 1},
                              .validation = &none,
                              .plan = {.total_steps = steps, .evaluate_every = steps + 1},
                              .strategy = &strategy};
    struct error error = ERROR_INIT;
    enum exit_code code;
    strategy.options.calls.context = &trainer;
    cr_assert_eq(report_open(&report, &trainer.report, NULL), 0);
    cr_expect_eq(loop_run(&trainer, &code, &error), 0, "%s", error.message);
    report_free(trainer.report);
}

Test(loop, the_others_wait_for_what_the_chief_stores_however_long_it_takes, .timeout = 60)
{
    end_run(&whole_operations, 0);
    cr_expect_eq(meetings, 1);
}

Test(loop, those_that_have_more_to_do_together_wait_before_that, .timeout = 60)
{
    end_run(&parted_operations, 0);
    cr_expect_eq(described_after, 1);
    cr_expect_eq(meetings, 2);
}

Test(loop, ranks_that_stay_wait_for_a_leaving_chiefs_save, .timeout = 60)
{
    end_run(&whole_operations, 2);
    cr_expect_eq(meetings, 2, "once more at the end");
}

/* ---- a pause */

#define MEETINGS_OF_A_PAUSE 3

static int step_on(struct strategy *strategy, double rate, unsigned votes, struct strategy_result *ret_result,
                   struct error *error)
{
    (void)rate, (void)votes, (void)error;
    *ret_result =
        (struct strategy_result){.step = ++((struct trainer *)strategy->options.calls.context)->state.progress.step};
    return 0;
}

/* The sweep decides after some meetings. */
static int meet_until_asked(struct strategy *strategy, struct error *error)
{
    (void)strategy, (void)error;
    if (++meetings == MEETINGS_OF_A_PAUSE)
        (void)kill(getpid(), SIGTERM);
    return 0;
}

/* Returns the step after which rank 1 of 2 has ended, of 5. */
static int64_t run_to_pause(int64_t pause_step, int *ret_result, enum exit_code *ret_code, struct error *error)
{
    static struct crew_seat seats[2];
    static struct dataset none;
    static char directory[] = "/nowhere";
    const struct strategy_crew_operations crew = {.meet = meet_until_asked};
    const struct strategy_operations operations = {.reform = form, .step = step_on, .sum = sum_in_time, .crew = &crew};
    const struct report_options report = {.job_uid = "", .role = "worker", .http_port = -1, .unit = "examples"};
    const struct identity identity = {.job_uid = "", .grace_ms = 30000, .pause_step = pause_step};
    const struct job_document job = {.strategy.type = STRATEGY_MULTI_WORKER_MIRRORED};
    struct strategy strategy = {.operations = &operations, .world = {.rank = 1, .size = 2}};
    struct trainer trainer = {.identity = &identity,
                              .job = &job,
                              .crew = {.seats = seats, .size = 2, .least = 2, .expected = 2, .rank = 1},
                              .validation = &none,
                              .files.checkpoint_directory = directory,
                              .plan = {.total_steps = 5, .evaluate_every = 6},
                              .strategy = &strategy};
    strategy.options.calls.context = &trainer;
    cr_assert_eq(stop_block(error), 0);
    cr_assert_eq(stop_watch(error), 0);
    cr_assert_eq(report_open(&report, &trainer.report, NULL), 0);
    *ret_result = loop_run(&trainer, ret_code, error);
    report_free(trainer.report);
    return trainer.state.progress.step;
}

Test(loop, a_crew_waits_at_its_rung_until_it_is_asked_to_leave, .timeout = 60)
{
    struct error error = ERROR_INIT;
    enum exit_code code = EXIT_CODE_INTERNAL;
    int result;
    cr_expect_eq(run_to_pause(2, &result, &code, &error), 2);
    cr_expect(result < 0 && code == EXIT_CODE_LEFT, "%d", code);
    cr_expect_geq(meetings, MEETINGS_OF_A_PAUSE);
    cr_expect_str_eq(error.message, "left on request after step 2 of 5, at which the job had paused");
}

Test(loop, the_last_step_is_no_rung, .timeout = 60)
{
    struct error error = ERROR_INIT;
    enum exit_code code;
    int result;
    cr_expect_eq(run_to_pause(5, &result, &code, &error), 5);
    cr_expect_eq(result, 0, "%s", error.message);
}
