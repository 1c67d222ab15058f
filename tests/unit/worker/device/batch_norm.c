/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation against float64 on many shapes; its gradient against
 * finite differences.
 */
#include "operation_check.h"

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
    check_run(OPERATION_batch_norm_forward,
              &(struct batch_norm_forward){s->rows, s->c, x, v->weight, v->bias, y, v->mean, v->rstd, v->variance,
                                           workspace, activation},
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
              &(struct batch_norm_backward){s.rows, s.c, x, v.weight, v.mean, v.rstd, v.variance, dy, dx, dweight,
                                            dbias, v.running_mean, v.running_variance, v.mean_step, v.variance_step,
                                            0.1f, 0.5f, workspace, false},
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

Test(batch_norm, inference_takes_the_running_values)
{
    const struct sizes s = {70, 1100};
    struct columns v = new_columns(s.c);
    float *x = check_numbers(s.rows * s.c, 1), *y = check_numbers(s.rows * s.c, 10);
    check_run(OPERATION_batch_norm_inference,
              &(struct batch_norm_inference){s.rows, s.c, x, v.weight, v.bias, v.running_mean, v.running_variance, y,
                                             ACTIVATION_NONE},
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
