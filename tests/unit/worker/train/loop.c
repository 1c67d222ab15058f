/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a run with a strategy whose sums do not wait for a chief that writes to its disk.
 */
#include "worker/train/loop.h"

#include <criterion/criterion.h>

#include "worker/data/dataset_format.h"
#include "worker/strategy/strategy_table.h"

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

/* The chief leaves after the first step. */
static int step(struct strategy *strategy, double rate, unsigned votes, struct strategy_result *ret_result,
                struct error *error)
{
    (void)rate, (void)votes;
    int64_t *taken = &((struct trainer *)strategy->options.context)->state.progress.step;
    if (*taken == 1 && meetings == 0)
        return error_set(error, ERROR_TIMEOUT, "rank 1 waits 300.0 s for rank 0");
    *ret_result = (struct strategy_result){.step = ++*taken, .leaving = *taken == 1, .leaves = {*taken == 1}};
    return 0;
}

static const struct strategy_operations
    whole_operations = {.reform = form, .step = step, .sum = sum_in_time, .meet = meet},
    parted_operations = {.reform = form, .sum = sum_in_time, .meet = meet, .gather = gather, .describe = describe};

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
    strategy.options.context = &trainer;
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
