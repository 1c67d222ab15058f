/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/support.h"

#include <criterion/criterion.h>
#include <string.h>

static struct job_document example(void)
{
    return (struct job_document){.strategy = {.type = STRATEGY_MULTI_WORKER_MIRRORED, .collective = COLLECTIVE_AUTO},
                                 .devices = {.type = DEVICE_TYPE_AUTO, .count = 1}};
}

static int check(const struct job_document *job, unsigned crew, struct error *error)
{
    return support_check(job, &(struct crew){.size = crew, .least = crew, .expected = crew}, error);
}

static void expect(const struct job_document *job, unsigned crew, enum error_kind kind, const char *words)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(check(job, crew, &error), -1);
    cr_assert_eq(error.kind, kind, "%s", error.message);
    cr_assert_not_null(strstr(error.message, words), "%s", error.message);
}

Test(support, what_there_is)
{
    struct job_document job = example();
    cr_assert_eq(check(&job, 3, NULL), 0);
    job.strategy.collective = COLLECTIVE_HIERARCHICAL;
    cr_assert_eq(check(&job, 3, NULL), 0);
    job.strategy.collective = COLLECTIVE_REDUCE_TO_ONE;
    cr_assert_eq(check(&job, 3, NULL), 0);
    job.strategy.collective = COLLECTIVE_RING;
    job.training.determinism = DETERMINISM_RUN;
    cr_assert_eq(check(&job, 3, NULL), 0);
    job.strategy.type = STRATEGY_ONE_DEVICE;
    cr_assert_eq(check(&job, 1, NULL), 0);
}

Test(support, one_device_has_one_worker)
{
    struct job_document job = example();
    job.strategy.type = STRATEGY_ONE_DEVICE;
    expect(&job, 2, ERROR_INVALID, "has 2");
}

Test(support, sharded_slots_are_for_a_fixed_crew_that_mirrors)
{
    struct job_document job = example();
    struct error error = ERROR_INIT;
    job.strategy.sharded_optimizer = true;
    cr_assert_eq(check(&job, 4, NULL), 0);
    expect(&job, 1, ERROR_INVALID, "this job has only one");
    job.devices.count = 2;
    expect(&job, 1, ERROR_INVALID, "this job has only one");
    job.devices.type = DEVICE_TYPE_GPU;
    cr_assert_eq(check(&job, 1, NULL), 0);
    cr_assert_eq(support_check(&job, &(struct crew){.size = 4, .least = 2, .expected = 3}, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_not_null(strstr(error.message, "fixed number of workers"), "%s", error.message);
}

/* By TF_CONFIG, or with nothing at all, which no rule of the manifest sees. */
Test(support, parameter_servers_need_servers)
{
    struct job_document job = example();
    struct error error = ERROR_INIT;
    job.strategy.type = STRATEGY_PARAMETER_SERVER;
    job.training.gradient_accumulation = 1;
    job.training.precision = PRECISION_FLOAT32;
    expect(&job, 1, ERROR_INVALID, "name one or more under ps");
    struct crew crew = {.size = 1, .least = 1, .expected = 1, .server_count = 1};
    cr_expect_eq(support_check(&job, &crew, &error), 0, "%s", error.message);
}

Test(support, a_synchronous_server_keeps_a_limited_number_of_shares)
{
    struct job_document job = example();
    struct error error = ERROR_INIT;
    cr_assert_eq(support_check_shards(&job, 65, NULL), 0);
    job.strategy.type = STRATEGY_PARAMETER_SERVER;
    cr_assert_eq(support_check_shards(&job, 65, NULL), 0);
    job.strategy.mode = PARAMETER_SERVER_SYNCHRONOUS;
    cr_assert_eq(support_check_shards(&job, 64, NULL), 0);
    cr_assert_eq(support_check_shards(&job, 65, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_not_null(strstr(error.message, "set logicalShards to 64"), "%s", error.message);
}

/* Each of a logical shard for each device, and only of a power of two of them the tree is made. */
Test(support, several_devices_of_a_worker_make_a_share_together)
{
    struct job_document job = example();
    struct error error = ERROR_INIT;
    job.strategy.type = STRATEGY_PARAMETER_SERVER;
    job.devices.count = 3;
    cr_assert_eq(support_check_shards(&job, 9, NULL), 0);
    job.strategy.mode = PARAMETER_SERVER_SYNCHRONOUS;
    cr_assert_eq(support_check_shards(&job, 3, NULL), 0);
    cr_assert_eq(support_check_shards(&job, 192, NULL), 0);
    const int64_t others[] = {2, 8, 9, 13};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cr_assert_eq(support_check_shards(&job, others[i], &error), -1);
        cr_assert_not_null(strstr(error.message, "set logicalShards to 3 times"), "%s", error.message);
    }
    cr_assert_eq(support_check_shards(&job, 384, &error), -1);
    cr_assert_not_null(strstr(error.message, "set logicalShards to 192"), "%s", error.message);
}

Test(support, the_best_weights_are_told_by_held_out_examples)
{
    struct job_document job = example();
    struct error error = ERROR_INIT;
    job.export_path = "weights.safetensors";
    cr_assert_eq(support_check_validation(&job, 0, NULL), 0);
    job.export_weights = EXPORT_BEST;
    cr_assert_eq(support_check_validation(&job, 1, NULL), 0);
    cr_assert_eq(support_check_validation(&job, 0, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_not_null(strstr(error.message, "data.validation"), "%s", error.message);
}
