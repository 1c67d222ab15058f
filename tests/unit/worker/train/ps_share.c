/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker of parameter servers reads and computes for a ticket.
 */
#include "worker/train/ps_share.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/data/dataset_format.h"
#include "worker/optimizer/schedule.h"

#define BATCH 12

#define NONE UINT_MAX
#define PATIENCE_MS 60000 /* reached by what hangs only */

static atomic_uint examples_read;      /* that are begun */
static atomic_uint standing_at = NONE; /* after this number of reads, the next one does not end */
static atomic_uint failing_at = NONE;  /* after this number of reads, the next one fails */
static const struct dataset_kind *plain_kind;

static void await_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int count_read(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    unsigned number = atomic_fetch_add(&examples_read, 1);
    while (number >= atomic_load(&standing_at))
        await_moment();
    if (number == atomic_load(&failing_at))
        return error_set(error, ERROR_CORRUPT, "example %u is no example", number);
    return plain_kind->read(dataset, index, input, target, error);
}

static void open_learner(struct learner *learner, unsigned devices, int64_t at_a_time)
{
    static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},"
                               "\"model\":{\"preset\":\"gpt-bytes\",\"vocabulary\":4096,\"width\":32,\"depth\":1,"
                               "\"heads\":2,\"context\":8},"
                               "\"data\":{\"format\":\"Synthetic\",\"examples\":90},"
                               "\"training\":{\"steps\":7,\"batchSize\":12,\"seed\":5,"
                               "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\"}}}";
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

/* Where they are more than can be kept. */
Test(ps_share, one_that_takes_several_passes_is_read_for_each)
{
    expect_reads(1, BATCH / 4, 1);
    expect_reads(1, BATCH / 6, 2);
    expect_reads(2, BATCH / 12, 2);
}

/* ---------------------------------------------------------------- reading ahead */

/* A worker with its first tickets, of two in a step. */
struct ahead {
    struct learner learner;
    struct trainer trainer;
    struct ps_share *share;
    float *gradients;
};

static void open_ahead(struct ahead *ahead, int64_t total_steps)
{
    struct error error = ERROR_INIT;
    open_learner(&ahead->learner, 1, BATCH / 2);
    ahead->trainer = trainer_of(&ahead->learner, BATCH);
    ahead->trainer.plan.total_steps = total_steps;
    ahead->gradients = memory_allocate((size_t)graph_layout(ahead->learner.graph)->elements, sizeof(float));
    cr_assert_eq(ps_share_new(&ahead->trainer, &ahead->share, &error), 0, "%s", error.message);
}

static void close_ahead(struct ahead *ahead)
{
    ps_share_free(ahead->share);
    free(ahead->gradients);
    learner_close(&ahead->learner);
}

static void foresee(struct ahead *ahead, int64_t ticket)
{
    ps_share_foresee(ahead->share, &(struct ticket_grant){.ticket = ticket, .per_step = 2});
}

static int do_share(struct ahead *ahead, int64_t ticket, bool whole_batch, struct error *error)
{
    const struct ps_arrays arrays = {.values = ahead->learner.state.parameters, .gradients = ahead->gradients};
    const struct ticket_grant grant = {.ticket = ticket, .per_step = 2};
    struct ticket_result result;
    return ps_share_compute(ahead->share, &grant, whole_batch, &arrays, &result, error);
}

/* Seconds may pass on a busy machine. */
static void expect_read(unsigned examples)
{
    for (int i = 0; i < 60000 && atomic_load(&examples_read) < examples; i++)
        await_moment();
    cr_expect_eq(examples_read, examples, "%u were read", examples_read);
}

Test(ps_share, while_one_is_computed_the_next_ticket_is_read_and_holds_nothing_up)
{
    struct ahead ahead = {0};
    struct error error = ERROR_INIT;
    open_ahead(&ahead, 0);
    struct outcome plain = do_tickets(&ahead.learner, false);
    examples_read = 0;
    standing_at = BATCH / 2;
    foresee(&ahead, 0);
    foresee(&ahead, 1);
    cr_expect_eq(do_share(&ahead, 0, false, &error), 0, "%s", error.message); /* the second is not read meanwhile */
    expect_read(BATCH / 2 + 1);
    standing_at = NONE;
    expect_read(BATCH);
    cr_expect_eq(do_share(&ahead, 1, false, &error), 0, "%s", error.message);
    expect_read(BATCH);
    cr_expect_arr_eq(ahead.gradients, plain.gradients,
                     (size_t)graph_layout(ahead.learner.graph)->elements * sizeof(float));
    free(plain.gradients);
    close_ahead(&ahead);
}

/* Does `count` shares in turn, and expects the number of shares that were read. */
static void expect_reads_of_shares(const int64_t *tickets, unsigned count, unsigned shares_read)
{
    struct ahead ahead = {0};
    struct error error = ERROR_INIT;
    open_ahead(&ahead, 5);
    examples_read = 0;
    for (unsigned i = 0; i < count; i++)
        cr_expect_eq(do_share(&ahead, tickets[i], true, &error), 0, "%s", error.message);
    expect_read(shares_read * BATCH / 2);
    cr_expect(ps_share_rest(ahead.share, PATIENCE_MS));
    expect_read(shares_read * BATCH / 2);
    close_ahead(&ahead);
}

Test(ps_share, where_a_step_waits_for_all_a_worker_reads_the_share_that_it_always_has)
{
    expect_reads_of_shares((int64_t[]){1, 3, 5}, 3, 4);
    expect_reads_of_shares((int64_t[]){1, 3, 5, 7}, 4, 5);
    expect_reads_of_shares((int64_t[]){1, 3, 5, 7, 9}, 5, 5); /* there is no step behind the last */
}

/* As the others' shares come to it, too. */
Test(ps_share, a_worker_with_several_shares_of_a_step_reads_none_in_vain)
{
    expect_reads_of_shares((int64_t[]){0, 1, 3, 2, 4, 5, 7, 6}, 8, 8);
}

/* The first ticket is done, and the first example of the second, which is read ahead, stands or fails. */
static void stop_reading_ahead(struct ahead *ahead, atomic_uint *stops_at)
{
    struct error error = ERROR_INIT;
    open_ahead(ahead, 0);
    examples_read = 0;
    atomic_store(stops_at, BATCH / 2);
    cr_expect_eq(do_share(ahead, 0, false, &error), 0, "%s", error.message);
    foresee(ahead, 1);
    expect_read(BATCH / 2 + 1);
}

Test(ps_share, what_cannot_be_read_ahead_is_read_again_when_it_is_needed)
{
    struct ahead ahead = {0};
    struct error error = ERROR_INIT;
    stop_reading_ahead(&ahead, &failing_at);
    cr_expect(ps_share_rest(ahead.share, PATIENCE_MS));
    cr_expect_eq(do_share(&ahead, 1, false, &error), 0, "%s", error.message);
    failing_at = examples_read;
    cr_expect_lt(do_share(&ahead, 2, false, &error), 0);
    cr_expect_str_eq(strstr(error.message, "is no example"), "is no example");
    failing_at = NONE;
    cr_expect_eq(do_share(&ahead, 2, false, &error), 0, "%s", error.message);
    close_ahead(&ahead);
}

/* ---------------------------------------------------------------- a volume that hangs */

static void hang_reading_ahead(struct ahead *ahead)
{
    stop_reading_ahead(ahead, &standing_at);
    cr_expect_not(ps_share_rest(ahead->share, 1));
}

Test(ps_share, what_is_read_ahead_holds_nobody_up_at_the_end, .timeout = 120)
{
    static struct ahead ahead; /* the thread is in its data set until the process ends */
    hang_reading_ahead(&ahead);
    cr_expect_not(ps_share_free(ahead.share), "the thread is in the data set");
    free(ahead.gradients);
}

Test(ps_share, a_volume_that_goes_on_after_all_is_waited_for)
{
    struct ahead ahead = {0};
    hang_reading_ahead(&ahead);
    standing_at = NONE;
    cr_expect(ps_share_rest(ahead.share, PATIENCE_MS));
    cr_expect(ps_share_free(ahead.share));
    ahead.share = NULL;
    close_ahead(&ahead);
}

static void *cancel_when_it_stands(void *context)
{
    struct ahead *ahead = context;
    expect_read(1);
    ps_share_cancel(ahead->share);
    return NULL;
}

/* Others have done it. */
Test(ps_share, a_share_that_nobody_needs_does_not_wait_for_its_examples, .timeout = 120)
{
    struct ahead ahead = {0};
    struct error error = ERROR_INIT;
    pthread_t run;
    open_ahead(&ahead, 0);
    examples_read = 0;
    standing_at = 0;
    cr_assert_eq(pthread_create(&run, NULL, cancel_when_it_stands, &ahead), 0);
    cr_expect_lt(do_share(&ahead, 0, false, &error), 0);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "%s", error.message);
    pthread_join(run, NULL);
    standing_at = NONE;
    close_ahead(&ahead);
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
