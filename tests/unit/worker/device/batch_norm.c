/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation against float64 on many shapes; its gradient against
 * finite differences.
 */
#include <pthread.h>

#include "operation_check.h"
#include "worker/strategy/statistics_exchange.h"

struct sizes {
    int64_t rows, c;
};
static const struct sizes sizes[] = {{1, 1}, {2, 3}, {7, 16}, {300, 5}, {513, 16}, {1030, 40}, {33, 700}};

struct columns {
    float *weight, *bias, *mean, *rstd, *running_mean, *running_variance, *mean_step, *variance_step, *variance;
};

static struct columns new_columns(int64_t c)
{
    struct columns v = {check_numbers(c, 2), check_numbers(c, 3), check_numbers(c, 4),
                        check_numbers(c, 5), check_numbers(c, 6), check_numbers(c, 7),
                        check_numbers(c, 8), check_numbers(c, 9), check_numbers(c, 16)};
    for (int64_t i = 0; i < c; i++)
        v.running_variance[i] = fabsf(v.running_variance[i]) + 0.1f;
    return v;
}

static void free_columns(struct columns *v)
{
    free(v->weight), free(v->bias), free(v->mean), free(v->rstd), free(v->variance), free(v->running_mean),
        free(v->running_variance);
    free(v->mean_step), free(v->variance_step);
}

static void run_forward(const struct sizes *s, struct columns *v, const float *x, float *y, float *workspace,
                        enum activation activation)
{
    check_run(
        OPERATION_batch_norm_forward,
        &(struct batch_norm_forward){
            s->rows, s->c, x, v->weight, v->bias, y, v->mean, v->rstd, v->variance, workspace, activation, {0}, NULL},
        2, NULL);
}

static void check_column(const struct sizes *s, const struct columns *v, const float *x, const float *y, int64_t i)
{
    double mean = 0, squares = 0, rows = (double)s->rows;
    for (int64_t r = 0; r < s->rows; r++)
        mean += (double)x[r * s->c + i] / rows;
    for (int64_t r = 0; r < s->rows; r++)
        squares += ((double)x[r * s->c + i] - mean) * ((double)x[r * s->c + i] - mean);
    double rstd = 1 / sqrt(squares / rows + 1e-5), sample = s->rows > 1 ? squares / (rows - 1) : 0;
    cr_assert_float_eq(v->mean[i], mean, 1e-6);
    cr_assert_float_eq((double)v->rstd[i] / rstd, 1.0, 1e-5);
    cr_assert_float_eq(v->variance[i], sample, 1e-6);
    for (int64_t r = 0; r < s->rows; r++) {
        double expected = ((double)x[r * s->c + i] - mean) * rstd * (double)v->weight[i] + (double)v->bias[i];
        cr_assert_float_eq(y[r * s->c + i], expected > 0 ? expected : 0, 2e-5 * (1 + rstd));
    }
}

Test(batch_norm, normalises_columns)
{
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const struct sizes *s = &sizes[k];
        struct columns v = new_columns(s->c);
        float *x = check_numbers(s->rows * s->c, 1), *y = check_numbers(s->rows * s->c, 10);
        float *workspace = check_numbers(batch_norm_workspace(s->rows, s->c), 11);
        run_forward(s, &v, x, y, workspace, ACTIVATION_RELU);
        for (int64_t i = 0; i < s->c; i++)
            check_column(s, &v, x, y, i);
        free(x), free(y), free(workspace);
        free_columns(&v);
    }
}

static double weighted(const struct sizes *s, struct columns *v, const float *x, const float *dy)
{
    float *y = check_numbers(s->rows * s->c, 10), *workspace = check_numbers(batch_norm_workspace(s->rows, s->c), 11);
    run_forward(s, v, x, y, workspace, ACTIVATION_NONE);
    double sum = 0;
    for (int64_t i = 0; i < s->rows * s->c; i++)
        sum += (double)y[i] * (double)dy[i];
    free(y), free(workspace);
    return sum;
}

static double difference(const struct sizes *s, struct columns *v, const float *x, const float *dy, float *at)
{
    const float step = 1e-2f;
    float value = *at;
    *at = value + step;
    double above = weighted(s, v, x, dy);
    *at = value - step;
    double below = weighted(s, v, x, dy);
    *at = value;
    return (above - below) / (2 * (double)step);
}

Test(batch_norm, gradients_are_those_of_finite_differences)
{
    const struct sizes s = {41, 9};
    struct columns v = new_columns(s.c);
    float *x = check_numbers(s.rows * s.c, 1), *dy = check_numbers(s.rows * s.c, 12);
    float *dx = check_numbers(s.rows * s.c, 13), *workspace = check_numbers(batch_norm_workspace(s.rows, s.c), 11);
    float *dweight = check_numbers(s.c, 14), *dbias = check_numbers(s.c, 15);
    (void)weighted(&s, &v, x, dy);
    check_run(OPERATION_batch_norm_backward,
              &(struct batch_norm_backward){.rows = s.rows,
                                            .c = s.c,
                                            .x = x,
                                            .weight = v.weight,
                                            .mean = v.mean,
                                            .rstd = v.rstd,
                                            .variance = v.variance,
                                            .dy = dy,
                                            .dx = dx,
                                            .dweight = dweight,
                                            .dbias = dbias,
                                            .running_mean = v.running_mean,
                                            .running_variance = v.running_variance,
                                            .mean_step = v.mean_step,
                                            .variance_step = v.variance_step,
                                            .momentum = 0.1f,
                                            .share = 0.5f,
                                            .workspace = workspace},
              2, NULL);
    for (int64_t i = 0; i < s.c; i++) {
        cr_assert_float_eq(v.mean_step[i], 0.05f * (v.running_mean[i] - v.mean[i]), 1e-7);
        cr_assert_float_eq(v.variance_step[i], 0.05f * (v.running_variance[i] - v.variance[i]), 1e-7);
        cr_assert_float_eq(dweight[i], difference(&s, &v, x, dy, &v.weight[i]), 2e-2);
        cr_assert_float_eq(dbias[i], difference(&s, &v, x, dy, &v.bias[i]), 2e-2);
    }
    for (int64_t i = 0; i < s.rows * s.c; i += 5)
        cr_assert_float_eq(dx[i], difference(&s, &v, x, dy, &x[i]), 2e-2);
    free(x), free(dy), free(dx), free(workspace), free(dweight), free(dbias);
    free_columns(&v);
}

/* ---------------------------------------------------------------- with the rectifiers and sums around it */

static const char *const sets[] = {"avx512", "avx2", "portable"};

/* The results of a batch norm, forward or backward, in one launch or in several. */
struct manner {
    float *y, *dx, *dweight, *dbias, *masked, *workspace;
    struct columns v;
};

static struct manner new_manner(const struct sizes *s)
{
    int64_t count = s->rows * s->c;
    return (struct manner){.y = check_numbers(count, 21),
                           .dx = check_numbers(count, 22),
                           .dweight = check_numbers(s->c, 23),
                           .dbias = check_numbers(s->c, 24),
                           .masked = check_numbers(count, 25),
                           .workspace = check_numbers(batch_norm_workspace(s->rows, s->c), 26),
                           .v = new_columns(s->c)};
}

static void free_manner(struct manner *m)
{
    free(m->y), free(m->dx), free(m->dweight), free(m->dbias), free(m->masked), free(m->workspace);
    free_columns(&m->v);
}

static struct batch_norm_backward way_back(const struct sizes *s, const struct manner *m, const float *x)
{
    return (struct batch_norm_backward){.rows = s->rows,
                                        .c = s->c,
                                        .x = x,
                                        .weight = m->v.weight,
                                        .mean = m->v.mean,
                                        .rstd = m->v.rstd,
                                        .variance = m->v.variance,
                                        .dy = m->masked,
                                        .dx = m->dx,
                                        .dweight = m->dweight,
                                        .dbias = m->dbias,
                                        .running_mean = m->v.running_mean,
                                        .running_variance = m->v.running_variance,
                                        .mean_step = m->v.mean_step,
                                        .variance_step = m->v.variance_step,
                                        .momentum = 0.1f,
                                        .share = 0.5f,
                                        .workspace = m->workspace};
}

static void assert_same(const struct sizes *s, const struct manner *one, const struct manner *several)
{
    size_t bytes = (size_t)(s->rows * s->c) * sizeof(float), columns = (size_t)s->c * sizeof(float);
    cr_assert_eq(memcmp(one->y, several->y, bytes), 0);
    cr_assert_eq(memcmp(one->dx, several->dx, bytes), 0);
    cr_assert_eq(memcmp(one->masked, several->masked, bytes), 0);
    cr_assert_eq(memcmp(one->dweight, several->dweight, columns), 0);
    cr_assert_eq(memcmp(one->dbias, several->dbias, columns), 0);
}

static void check_sum(const struct sizes *s, const char *set, bool two)
{
    const int64_t count = s->rows * s->c;
    struct manner one = new_manner(s), several = new_manner(s);
    float *x = check_numbers(count, 1), *past = check_numbers(count, 27), *others = check_numbers(count, 28);
    struct batch_norm_forward norm = {s->rows,         s->c,       x,          one.v.weight,   one.v.bias,
                                      one.y,           one.v.mean, one.v.rstd, one.v.variance, one.workspace,
                                      ACTIVATION_RELU, {0},        past};
    check_run(OPERATION_batch_norm_forward, &norm, 2, set);
    struct batch_norm_backward back = way_back(s, &one, x);
    back.relu_output = one.y;
    back.others = two ? others : NULL;
    back.masked = one.masked;
    check_run(OPERATION_batch_norm_backward, &back, 2, set);

    norm = (struct batch_norm_forward){s->rows,
                                       s->c,
                                       x,
                                       several.v.weight,
                                       several.v.bias,
                                       several.y,
                                       several.v.mean,
                                       several.v.rstd,
                                       several.v.variance,
                                       several.workspace,
                                       ACTIVATION_NONE,
                                       {0},
                                       NULL};
    check_run(OPERATION_batch_norm_forward, &norm, 2, set);
    check_run(OPERATION_add_forward, &(struct add_forward){count, several.y, past, several.y, ACTIVATION_RELU}, 2, set);
    if (two)
        check_run(OPERATION_axpy, &(struct axpy){count, 1, others, several.masked}, 2, set);
    check_run(OPERATION_relu_backward, &(struct relu_backward){count, several.y, several.masked, several.masked}, 2,
              set);
    back = way_back(s, &several, x);
    check_run(OPERATION_batch_norm_backward, &back, 2, set);
    assert_same(s, &one, &several);
    free(x), free(past), free(others);
    free_manner(&one), free_manner(&several);
}

static void check_own(const struct sizes *s, const char *set)
{
    struct manner one = new_manner(s), several = new_manner(s);
    float *x = check_numbers(s->rows * s->c, 1);
    struct manner *both[] = {&one, &several};
    for (int m = 0; m < 2; m++) {
        const struct columns *v = &both[m]->v;
        check_run(OPERATION_batch_norm_forward,
                  &(struct batch_norm_forward){s->rows,
                                               s->c,
                                               x,
                                               v->weight,
                                               v->bias,
                                               both[m]->y,
                                               v->mean,
                                               v->rstd,
                                               v->variance,
                                               both[m]->workspace,
                                               ACTIVATION_RELU,
                                               {0},
                                               NULL},
                  2, set);
        struct batch_norm_backward back = way_back(s, both[m], x);
        back.bias = v->bias;
        back.activation = m == 0 ? ACTIVATION_RELU : ACTIVATION_NONE;
        if (m == 1)
            check_run(OPERATION_relu_backward,
                      &(struct relu_backward){s->rows * s->c, several.y, several.masked, several.masked}, 2, set);
        check_run(OPERATION_batch_norm_backward, &back, 2, set);
    }
    memcpy(one.masked, several.masked, (size_t)(s->rows * s->c) * sizeof(float)); /* it leaves dy as it is */
    assert_same(s, &one, &several);
    free(x);
    free_manner(&one), free_manner(&several);
}

Test(batch_norm, rectifiers_and_sums_within_have_the_bits_of_launches_apart)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes && gemm_kernel_choose(sets[i]); k++) {
            check_sum(&sizes[k], sets[i], false);
            check_sum(&sizes[k], sets[i], true);
            check_own(&sizes[k], sets[i]);
        }
}

/* ---------------------------------------------------------------- shards of one batch */

#define SHARDS 3

/* Rows [first, first + rows) of the batch, on a thread of its own. */
struct batch_shard {
    const struct sizes *batch;
    unsigned number;
    int64_t first, rows;
    struct shard_exchange *exchange;
    const float *x, *dy;
    float *y, *dx; /* the batch's */
    struct columns v;
    float *dweight, *dbias;
};

static void *run_shard(void *context)
{
    struct batch_shard *shard = context;
    int64_t c = shard->batch->c, at = shard->first * c;
    float *workspace = check_numbers(batch_norm_workspace(shard->rows, c), 11);
    const struct batch_norm_peers peers = {shard->exchange, shard->number, 0};
    const struct columns *v = &shard->v;
    check_run(OPERATION_batch_norm_forward,
              &(struct batch_norm_forward){shard->rows, c, shard->x + at, v->weight, v->bias, shard->y + at, v->mean,
                                           v->rstd, v->variance, workspace, ACTIVATION_NONE, peers, NULL},
              1, NULL);
    check_run(OPERATION_batch_norm_backward,
              &(struct batch_norm_backward){.rows = shard->rows,
                                            .c = c,
                                            .x = shard->x + at,
                                            .weight = v->weight,
                                            .mean = v->mean,
                                            .rstd = v->rstd,
                                            .variance = v->variance,
                                            .dy = shard->dy + at,
                                            .dx = shard->dx + at,
                                            .dweight = shard->dweight,
                                            .dbias = shard->dbias,
                                            .running_mean = v->running_mean,
                                            .running_variance = v->running_variance,
                                            .mean_step = v->mean_step,
                                            .variance_step = v->variance_step,
                                            .momentum = 0.1f,
                                            .share = 1.0f / SHARDS,
                                            .workspace = workspace,
                                            .peers = peers},
              1, NULL);
    free(workspace);
    return NULL;
}

/* One of them is empty. Values, and gradients against finite differences of the whole batch. */
Test(batch_norm, shards_that_ask_each_other_are_one_batch, .timeout = 120)
{
    static const int64_t cuts[SHARDS + 1] = {0, 26, 26, 41};
    const struct sizes s = {41, 9};
    float *x = check_numbers(s.rows * s.c, 1), *dy = check_numbers(s.rows * s.c, 12);
    float *y = check_numbers(s.rows * s.c, 20), *dx = check_numbers(s.rows * s.c, 21);
    struct statistics_exchange *exchange = statistics_exchange_new(SHARDS, 0, SHARDS, 1);
    struct batch_shard shards[SHARDS];
    pthread_t threads[SHARDS];
    statistics_exchange_begin(exchange);
    for (unsigned i = 0; i < SHARDS; i++) {
        shards[i] = (struct batch_shard){&s,
                                         i,
                                         cuts[i],
                                         cuts[i + 1] - cuts[i],
                                         statistics_exchange_base(exchange),
                                         x,
                                         dy,
                                         y,
                                         dx,
                                         new_columns(s.c),
                                         check_numbers(s.c, 14),
                                         check_numbers(s.c, 15)};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_shard, &shards[i]), 0);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        pthread_join(threads[i], NULL);
    struct columns whole = new_columns(s.c);
    float *workspace = check_numbers(batch_norm_workspace(s.rows, s.c), 11),
          *expected = check_numbers(s.rows * s.c, 22);
    run_forward(&s, &whole, x, expected, workspace, ACTIVATION_NONE);
    check_close(y, expected, s.rows * s.c, 1e-5f);
    for (unsigned i = 0; i < SHARDS; i++) {
        check_close(shards[i].v.mean, whole.mean, s.c, 1e-6f);
        check_close(shards[i].v.variance, whole.variance, s.c, 1e-6f);
    }
    for (int64_t i = 0; i < s.c; i++) {
        float weight = 0, bias = 0;
        for (unsigned k = 0; k < SHARDS; k++)
            weight += shards[k].dweight[i], bias += shards[k].dbias[i];
        cr_assert_float_eq(weight, difference(&s, &whole, x, dy, &whole.weight[i]), 2e-2);
        cr_assert_float_eq(bias, difference(&s, &whole, x, dy, &whole.bias[i]), 2e-2);
    }
    for (int64_t i = 0; i < s.rows * s.c; i += 5)
        cr_assert_float_eq(dx[i], difference(&s, &whole, x, dy, &x[i]), 2e-2);
    statistics_exchange_free(exchange);
    for (unsigned i = 0; i < SHARDS; i++) {
        free_columns(&shards[i].v);
        free(shards[i].dweight), free(shards[i].dbias);
    }
    free_columns(&whole);
    free(x), free(dy), free(y), free(dx), free(workspace), free(expected);
}

static void *share_alone(void *context)
{
    struct shard_exchange *exchange = context;
    return (void *)exchange->share(exchange, 0, 0, &(double){1}, 1);
}

static struct error why_alone(struct statistics_exchange *exchange, bool abandoned)
{
    struct shard_exchange *base = statistics_exchange_base(exchange);
    struct error error = ERROR_INIT;
    pthread_t thread;
    void *all;
    statistics_exchange_begin(exchange);
    cr_assert_eq(base->check(base, &error), 0);
    cr_assert_eq(pthread_create(&thread, NULL, share_alone, base), 0);
    if (abandoned)
        statistics_exchange_abandon(exchange);
    pthread_join(thread, &all);
    cr_assert_null(all);
    cr_assert_eq(base->check(base, &error), -1);
    return error;
}

Test(batch_norm, a_shard_does_not_wait_for_ever, .timeout = 120)
{
    struct statistics_exchange *exchange = statistics_exchange_new(2, 0, 2, 1);
    struct error abandoned = why_alone(exchange, true);
    cr_expect_eq(abandoned.kind, ERROR_CANCELLED);
    statistics_exchange_set_patience(exchange, 1010);
    struct error late = why_alone(exchange, false);
    cr_expect_eq(late.kind, ERROR_TIMEOUT);
    cr_expect(strstr(late.message, "timed out after 1 s in layer 0 (forward): 1 logical shards") &&
                  strstr(late.message, "the first is 1"),
              "%s", late.message);
    statistics_exchange_free(exchange);
}

static struct error why_after_a_failure(bool before)
{
    struct statistics_exchange *exchange = statistics_exchange_new(2, 0, 2, 1);
    struct shard_exchange *base = statistics_exchange_base(exchange);
    struct error error = ERROR_INIT;
    pthread_t thread;
    void *all;
    statistics_exchange_begin(exchange);
    if (before)
        base->leave(base, 1);
    cr_assert_eq(pthread_create(&thread, NULL, share_alone, base), 0);
    if (!before)
        base->leave(base, 1);
    pthread_join(thread, &all);
    cr_assert_null(all);
    cr_assert_eq(base->check(base, &error), -1);
    statistics_exchange_begin(exchange);
    cr_expect_eq(base->check(base, NULL), 0, "the next step begins anew");
    statistics_exchange_free(exchange);
    return error;
}

/* Work that is queued behind a failure is skipped, together with its shares, for which others would wait minutes. */
Test(batch_norm, a_shard_whose_pass_has_failed_is_not_waited_for, .timeout = 120)
{
    cr_expect_eq(why_after_a_failure(true).kind, ERROR_CANCELLED);
    cr_expect_eq(why_after_a_failure(false).kind, ERROR_CANCELLED);
}

Test(batch_norm, inference_takes_the_running_values)
{
    const struct sizes s = {70, 1100};
    struct columns v = new_columns(s.c);
    float *x = check_numbers(s.rows * s.c, 1), *y = check_numbers(s.rows * s.c, 10);
    check_run(OPERATION_batch_norm_inference,
              &(struct batch_norm_inference){s.rows, s.c, x, v.weight, v.bias, v.running_mean, v.running_variance, y,
                                             ACTIVATION_NONE, NULL},
              2, NULL);
    for (int64_t i = 0; i < s.rows * s.c; i++) {
        int64_t c = i % s.c;
        double expected = ((double)x[i] - (double)v.running_mean[c]) / sqrt((double)v.running_variance[c] + 1e-5) *
                              (double)v.weight[c] +
                          (double)v.bias[c];
        cr_assert_float_eq(y[i], expected, 2e-5);
    }
    free(x), free(y);
    free_columns(&v);
}
