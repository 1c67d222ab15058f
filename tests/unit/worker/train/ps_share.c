/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker of parameter servers reads and computes for a ticket.
 */
#include "worker/train/ps_share.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/data/dataset_format.h"
#include "worker/optimizer/schedule.h"

#define BATCH 12

static unsigned examples_read;
static const struct dataset_kind *plain_kind;

static int count_read(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    examples_read++;
    return plain_kind->read(dataset, index, input, target, error);
}

static void open_learner(struct learner *learner, unsigned devices, int64_t at_a_time)
{
    static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},"
                               "\"model\":{\"preset\":\"gpt-bytes\",\"vocabulary\":4096,\"width\":32,\"depth\":1,"
                               "\"heads\":2,\"context\":8},"
                               "\"data\":{\"format\":\"synthetic\",\"examples\":90},"
                               "\"training\":{\"steps\":7,\"batchSize\":12,\"seed\":5,"
                               "\"optimizer\":{\"type\":\"sgd\",\"learningRate\":\"0.02\"}}}";
    static struct dataset_kind counting;
    struct error error = ERROR_INIT;
    cr_assert(learner_open_job(learner, text, &error) == 0 &&
                  learner_open_model(learner, devices, at_a_time, false, &error) == 0 &&
                  learner_open_state(learner, &error) == 0,
              "%s", error.message);
    plain_kind = learner->dataset->kind;
    counting = *plain_kind;
    counting.read = count_read;
    learner->dataset->kind = &counting;
}

struct outcome {
    float *gradients;
    double loss;
    unsigned read;
};

static struct trainer trainer_of(struct learner *learner, int64_t batch)
{
    struct trainer trainer = {.job = &learner->job,
                              .graph = learner->graph,
                              .device = learner->devices[0].device,
                              .device_count = learner->device_count,
                              .training = learner->dataset,
                              .sampler = learner->sampler,
                              .plan.global_batch = batch};
    memcpy(trainer.devices, learner->devices, sizeof(learner->devices));
    return trainer;
}

/* Two tickets of a share each: the second must not take what was read for the first. */
static struct outcome do_tickets(struct learner *learner, bool by_rows)
{
    struct trainer trainer = trainer_of(learner, BATCH);
    const int64_t elements = graph_layout(learner->graph)->elements;
    struct outcome outcome = {.gradients = memory_allocate((size_t)elements, sizeof(float))};
    const struct ps_arrays arrays = {.values = learner->state.parameters, .gradients = outcome.gradients};
    struct placement placement;
    struct row_set rows[PS_SERVERS_MAX] = {{0}};
    struct ps_share *share;
    struct ticket_result result;
    struct error error = ERROR_INIT;
    placement_init(&placement, graph_layout(learner->graph), 1);
    cr_assert(placement_has_tables(&placement));
    cr_assert_eq(ps_share_new(&trainer, &share, &error), 0, "%s", error.message);
    examples_read = 0;
    for (int64_t ticket = 0; ticket < 2; ticket++) {
        const struct ticket_grant grant = {.ticket = ticket, .per_step = 2};
        if (by_rows)
            cr_assert_eq(ps_share_rows(share, &grant, &placement, rows, &error), 0, "%s", error.message);
        cr_assert_eq(ps_share_compute(share, &grant, false, &arrays, &result, &error), 0, "%s", error.message);
    }
    outcome.loss = result.loss;
    outcome.read = examples_read;
    ps_share_free(share);
    row_set_release(&rows[0]);
    placement_release(&placement);
    return outcome;
}

static void expect_reads(unsigned devices, int64_t at_a_time, unsigned times)
{
    struct learner learner = {0};
    open_learner(&learner, devices, at_a_time);
    struct outcome all = do_tickets(&learner, false), rows = do_tickets(&learner, true);
    cr_expect_eq(all.read, BATCH);
    cr_expect_eq(rows.read, times * BATCH, "%u", rows.read);
    cr_expect_eq(rows.loss, all.loss);
    cr_expect_arr_eq(rows.gradients, all.gradients, (size_t)graph_layout(learner.graph)->elements * sizeof(float));
    free(all.gradients);
    free(rows.gradients);
    learner_close(&learner);
}

/* One epoch of 15 steps of 6 examples, and then steps of 12, 8 an epoch. */
Test(ps_share, the_rate_of_an_update_is_that_of_its_place_in_the_data)
{
    struct learner learner = {0};
    open_learner(&learner, 1, BATCH);
    learner.job.training.optimizer.schedule.type = SCHEDULE_LINEAR;
    struct trainer trainer = trainer_of(&learner, BATCH);
    trainer.plan = (struct step_plan){.global_batch = BATCH,
                                      .examples = 90,
                                      .epochs = 3,
                                      .steps_per_epoch = 8,
                                      .total_steps = 24,
                                      .learning_rate_factor = 1};
    struct ticket_grant grant = {.ticket = 2 * 15, .per_step = 2, .base_step = 15, .base_epoch = 1};
    cr_expect_eq(ps_share_rate(&trainer, &grant), schedule_rate(&learner.job.training.optimizer, 9, 24));
    grant.ticket = 2 * 29;
    cr_expect_gt(ps_share_rate(&trainer, &grant), 0, "the last step but one");
    cr_expect_eq(trainer.plan.total_steps, 31);
    learner_close(&learner);
}

Test(ps_share, a_share_is_read_once_for_its_rows_and_its_gradients)
{
    expect_reads(1, BATCH / 2, 1);
    expect_reads(3, BATCH / 6, 1);
}

Test(ps_share, one_that_takes_several_passes_is_read_for_each)
{
    expect_reads(1, BATCH / 4, 2);
    expect_reads(2, BATCH / 6, 2);
}

/* ---------------------------------------------------------------- several devices */

/* One ticket of `per_step`, into `gradients`. */
static struct ticket_result compute(struct learner *learner, int64_t batch, int64_t per_step, int64_t ticket,
                                    float *gradients)
{
    struct trainer trainer = trainer_of(learner, batch);
    const struct ps_arrays arrays = {.values = learner->state.parameters, .gradients = gradients};
    const struct ticket_grant grant = {.ticket = ticket, .per_step = per_step};
    struct ps_share *share;
    struct ticket_result result;
    struct error error = ERROR_INIT;
    cr_assert_eq(ps_share_new(&trainer, &share, &error), 0, "%s", error.message);
    cr_assert_eq(ps_share_compute(share, &grant, true, &arrays, &result, &error), 0, "%s", error.message);
    ps_share_free(share);
    return result;
}

/* Shares of a third as many examples each, which one device computes, added as the tree has them: the first two, then the last. */
static struct ticket_result compute_thirds(struct learner *learner, int64_t batch, int64_t ticket, float *gradients)
{
    const int64_t elements = graph_layout(learner->graph)->elements;
    SCOPED_FREE float *third = memory_allocate((size_t)elements, sizeof(*third));
    struct ticket_result sum = compute(learner, batch, 6, 3 * ticket, gradients);
    for (int64_t next = 1; next < 3; next++) {
        struct ticket_result result = compute(learner, batch, 6, 3 * ticket + next, third);
        for (int64_t i = 0; i < elements; i++)
            gradients[i] += third[i];
        sum.examples += result.examples;
        sum.loss += result.loss;
    }
    return sum;
}

static void expect_the_same(int64_t batch, int64_t at_a_time)
{
    struct learner three = {0}, one = {0};
    open_learner(&three, 3, at_a_time);
    open_learner(&one, 1, at_a_time);
    const size_t elements = (size_t)graph_layout(one.graph)->elements;
    for (int64_t ticket = 0; ticket < 2; ticket++) {
        SCOPED_FREE float *gradients = memory_allocate(elements, sizeof(*gradients));
        SCOPED_FREE float *wanted = memory_allocate(elements, sizeof(*wanted));
        struct ticket_result result = compute(&three, batch, 2, ticket, gradients);
        struct ticket_result sum = compute_thirds(&one, batch, ticket, wanted);
        cr_expect_eq(result.examples, sum.examples);
        cr_expect_eq(result.loss, sum.loss);
        cr_expect_arr_eq(gradients, wanted, elements * sizeof(float), "ticket %lld of batches of %lld",
                         (long long)ticket, (long long)batch);
    }
    learner_close(&three);
    learner_close(&one);
}

Test(ps_share, the_devices_of_a_worker_sum_their_parts_of_a_share)
{
    expect_the_same(BATCH, BATCH / 6);
    expect_the_same(BATCH + 5, BATCH / 6); /* parts differ, and take one pass or two */
    expect_the_same(3, BATCH / 6);         /* some parts are empty */
}
