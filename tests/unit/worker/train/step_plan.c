/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/step_plan.h"

#include <criterion/criterion.h>
#include <string.h>

/* A job of 256 a batch, 3 epochs, as the parser leaves what is not said. */
static struct job_document example(void)
{
    struct job_document job = {.devices.count = 1, .evaluation_every_steps = FIELD_UNSET};
    job.training = (struct training_spec){.epochs = 3,
                                          .steps = FIELD_UNSET,
                                          .steps_per_epoch = FIELD_UNSET,
                                          .batch_size = 256,
                                          .per_replica_batch_size = FIELD_UNSET,
                                          .gradient_accumulation = 1,
                                          .logical_shards = FIELD_UNSET};
    return job;
}

static struct step_plan plan_of(const struct job_document *job, unsigned crew, int64_t recorded, int64_t examples)
{
    struct step_plan plan;
    struct error error = ERROR_INIT;
    cr_assert_eq(step_plan_batches(job, crew, recorded, &plan, &error), 0, "%s", error.message);
    cr_assert_eq(step_plan_steps(job, examples, &plan, &error), 0, "%s", error.message);
    return plan;
}

Test(step_plan, says_what_fills_up_calls_and_which_size_fits)
{
    struct step_plan plan = {.global_batch = 50, .logical_shards = 2};
    cr_assert_eq(step_plan_filler(&plan, 50), 50);
    cr_assert_eq(step_plan_fitting_call(&plan, 50), 25);
    cr_assert_eq(step_plan_filler(&plan, 25), 0);
    plan = (struct step_plan){.global_batch = 200, .logical_shards = 2};
    cr_assert_eq(step_plan_filler(&plan, 64), 21, "two calls for a shard of 100");
    cr_assert_eq(step_plan_fitting_call(&plan, 64), 50);
    plan = (struct step_plan){.global_batch = 50, .logical_shards = 4};
    cr_assert_eq(step_plan_filler(&plan, 13), 3, "two shards of 12, and two of 13");
    cr_assert_eq(step_plan_fitting_call(&plan, 13), 13);
}

Test(step_plan, a_short_last_batch_is_a_step)
{
    struct job_document job = example();
    struct step_plan plan = plan_of(&job, 2, 0, 9000);
    cr_assert_eq(plan.steps_per_epoch, 36);
    cr_assert_eq(plan.total_steps, 108);
    cr_assert_eq(plan.logical_shards, 2);
    cr_assert_eq(plan.max_shard_examples, 128);
    cr_assert_eq(plan.evaluate_every, 36);
    cr_assert_eq(plan.learning_rate_factor, 1);
}

Test(step_plan, per_replica_batches_scale_only_when_asked)
{
    struct job_document job = example();
    job.training.batch_size = FIELD_UNSET;
    job.training.per_replica_batch_size = 64;
    job.devices.count = 2;
    job.training.scale_learning_rate = SCALE_NONE;
    cr_assert_eq(plan_of(&job, 3, 0, 9000).global_batch, 384);
    cr_assert_eq(plan_of(&job, 3, 0, 9000).learning_rate_factor, 1);
    job.training.scale_learning_rate = SCALE_LINEAR;
    cr_assert_eq(plan_of(&job, 3, 0, 9000).learning_rate_factor, 6);
}

Test(step_plan, every_device_has_a_shard_for_each_accumulation_step)
{
    struct job_document job = example();
    struct step_plan plan;
    struct error error = ERROR_INIT;
    job.devices.count = 3;
    job.training.gradient_accumulation = 4;
    cr_assert_eq(plan_of(&job, 2, 0, 9000).logical_shards, 24);
    cr_assert_eq(plan_of(&job, 2, 0, 9000).max_shard_examples, 11);
    job.training.logical_shards = 5;
    cr_assert_eq(step_plan_batches(&job, 2, 0, &plan, &error), -1);
    cr_assert_not_null(strstr(error.message, "one a device"), "%s", error.message);
}

Test(step_plan, the_devices_of_a_worker_make_a_share_together)
{
    struct job_document job = example();
    job.strategy.type = STRATEGY_PARAMETER_SERVER;
    job.devices.count = 3;
    cr_assert_eq(plan_of(&job, 4, 0, 9000).shares, 4);
    job.training.logical_shards = 24;
    cr_assert_eq(plan_of(&job, 4, 0, 9000).shares, 4);
    job.strategy.mode = PARAMETER_SERVER_SYNCHRONOUS;
    cr_assert_eq(plan_of(&job, 4, 0, 9000).shares, 8);
}

Test(step_plan, recorded_shards_are_kept_until_the_crew_outgrows_them)
{
    struct job_document job = example();
    cr_assert_eq(plan_of(&job, 2, 4, 9000).logical_shards, 4);
    cr_assert_eq(plan_of(&job, 8, 4, 9000).logical_shards, 8);
    job.training.logical_shards = 16;
    cr_assert_eq(plan_of(&job, 8, 4, 9000).logical_shards, 16);
}

Test(step_plan, given_steps_and_steps_per_epoch)
{
    struct job_document job = example();
    job.training.steps_per_epoch = 10;
    cr_assert_eq(plan_of(&job, 1, 0, 9000).total_steps, 30);
    job.training.epochs = FIELD_UNSET;
    job.training.steps = 77;
    cr_assert_eq(plan_of(&job, 1, 0, 9000).total_steps, 77);
}

Test(step_plan, too_few_shards_and_no_data_get_a_sentence)
{
    struct job_document job = example();
    struct step_plan plan;
    struct error error = ERROR_INIT;
    job.training.logical_shards = 2;
    cr_assert_eq(step_plan_batches(&job, 3, 0, &plan, &error), -1);
    cr_assert_not_null(strstr(error.message, "logicalShards"), "%s", error.message);
    cr_assert_eq(step_plan_batches(&job, 2, 0, &plan, &error), 0);
    cr_assert_eq(step_plan_steps(&job, 0, &plan, &error), -1);
}

/* Makes the plan of a run with 9,000 examples, 3 epochs of 36 steps. */
static struct step_plan gone_on(int64_t step, int64_t data_epoch, int64_t consumed)
{
    struct job_document job = example();
    struct step_plan plan = plan_of(&job, 2, 0, 9000);
    step_plan_go_on(&plan, step, data_epoch, consumed);
    return plan;
}

Test(step_plan, a_run_of_one_batch_has_one_length_wherever_it_goes_on)
{
    for (int64_t step = 0; step <= 108; step++) {
        struct step_plan plan = gone_on(step, step / 36, step % 36 * 256);
        cr_assert_eq(plan.total_steps, 108, "from step %lld", (long long)step);
        cr_assert_eq(step_plan_place(&plan, step), step);
        cr_assert_eq(step_plan_is_over(&plan, step, step / 36, step % 36 * 256), step == 108);
    }
}

/* 128 a batch before: 71 steps an epoch. */
Test(step_plan, after_steps_of_another_batch_what_is_left_of_the_epochs_is_taken)
{
    struct step_plan plan = gone_on(142, 2, 0);
    cr_expect_eq(plan.total_steps, 142 + 36, "%lld", (long long)plan.total_steps);
    cr_expect_not(step_plan_is_over(&plan, 142, 2, 0));
    cr_expect(step_plan_is_over(&plan, 178, 3, 0));
    plan = gone_on(80, 1, 9 * 128);
    cr_expect_eq(plan.total_steps, 80 + 31 + 36, "7,848 examples of this epoch and those of the next: %lld",
                 (long long)plan.total_steps);
    step_plan_go_on(&plan, 111, 2, 0);
    cr_expect_eq(plan.total_steps, 147, "and a successor within the run has the same");
    plan = gone_on(36, 3, 0);
    cr_expect(step_plan_is_over(&plan, 36, 3, 0), "with more examples a step before");
}

Test(step_plan, the_schedule_and_evaluations_stand_where_the_data_does)
{
    struct step_plan plan = gone_on(142, 2, 0);
    cr_expect_eq(step_plan_place(&plan, 143), 73);
    cr_expect_eq(step_plan_schedule_steps(&plan), 108);
    cr_expect_not(step_plan_evaluates(&plan, 142, 144));
    cr_expect(step_plan_evaluates(&plan, 177, 178));
    plan = gone_on(80, 1, 9 * 128);
    cr_expect_eq(step_plan_place(&plan, 111), 72);
    cr_expect(step_plan_evaluates(&plan, 110, 111), "the epoch's end");
    cr_expect_not(step_plan_evaluates(&plan, 111, 112));
}

Test(step_plan, what_is_given_in_steps_stays_so)
{
    struct job_document job = example();
    job.training.epochs = FIELD_UNSET;
    job.training.steps = 77;
    struct step_plan plan = plan_of(&job, 1, 0, 9000);
    step_plan_go_on(&plan, 70, 0, 7000);
    cr_expect(plan.total_steps == 77 && step_plan_place(&plan, 70) == 70);
    cr_expect(step_plan_is_over(&plan, 77, 0, 0) && !step_plan_is_over(&plan, 76, 9, 0));
    job = example();
    job.training.steps_per_epoch = 10;
    plan = plan_of(&job, 1, 0, 9000);
    step_plan_go_on(&plan, 20, 0, 2000);
    cr_expect_eq(plan.total_steps, 30);
    job = example();
    job.strategy.type = STRATEGY_PEER_TO_PEER;
    plan = plan_of(&job, 1, 0, 9000);
    cr_expect_eq(plan.total_steps, 106, "peers have no short batches: 27000 examples are 105.5 of 256");
    step_plan_go_on(&plan, 105, 2, 8992);
    cr_expect_eq(plan.total_steps, 106);
}
