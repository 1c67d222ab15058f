/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of sequence models and losses against their definitions.
 */
#include <string.h>

#include "tests/unit/worker/device/operation_check.h"

Test(sequence, attention_sees_the_past_only)
{
    enum { B = 2, T = 70, C = 12, HEADS = 3, WIDTH = C / HEADS };
    float *qkv = check_numbers(B * T * 3 * C, 1), *y = check_numbers(B * T * C, 2),
          *start = check_numbers(B * T * C, 3);
    float *expected = calloc(B * T * C, sizeof *expected), *logsumexp = check_numbers(B * HEADS * T, 4);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < HEADS; h++)
            for (int t = 0; t < T; t++) {
                const float *q = qkv + (b * T + t) * 3 * C + h * WIDTH;
                double weights[T], sum = 0;
                for (int s = 0; s <= t; s++) {
                    const float *k = qkv + (b * T + s) * 3 * C + C + h * WIDTH;
                    double score = 0;
                    for (int i = 0; i < WIDTH; i++)
                        score += (double)q[i] * (double)k[i];
                    weights[s] = exp(score / sqrt(WIDTH));
                    sum += weights[s];
                }
                for (int s = 0; s <= t; s++)
                    for (int i = 0; i < WIDTH; i++)
                        expected[(b * T + t) * C + h * WIDTH + i] +=
                            (float)(weights[s] / sum) * qkv[(b * T + s) * 3 * C + 2 * C + h * WIDTH + i];
            }
    struct attention_forward op = {B, T, C, HEADS, qkv, y, logsumexp, 0};
    check_everywhere(OPERATION_attention_forward, &op, y, start, expected, B * T * C, 1e-5f);
    free(qkv), free(y), free(start), free(expected), free(logsumexp);
}

Test(sequence, layer_norm_has_mean_zero_and_variance_one)
{
    enum { ROWS = 67, C = 37 };
    float *x = check_numbers(ROWS * C, 1), *w = check_numbers(C, 2), *b = check_numbers(C, 3);
    float *y = check_numbers(ROWS * C, 4), *start = check_numbers(ROWS * C, 5), *expected = check_numbers(ROWS * C, 6);
    float mean[ROWS], rstd[ROWS];
    for (int r = 0; r < ROWS; r++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < C; i++)
            sum += (double)x[r * C + i] / C;
        for (int i = 0; i < C; i++)
            squares += ((double)x[r * C + i] - sum) * ((double)x[r * C + i] - sum) / C;
        for (int i = 0; i < C; i++)
            expected[r * C + i] =
                (float)(((double)x[r * C + i] - sum) / sqrt(squares + 1e-5) * (double)w[i] + (double)b[i]);
    }
    struct layer_norm_forward op = {ROWS, C, x, w, b, y, mean, rstd, NULL, NULL};
    check_everywhere(OPERATION_layer_norm_forward, &op, y, start, expected, ROWS * C, 1e-5f);
    free(x), free(w), free(b), free(y), free(start), free(expected);
}

/* One launch has the bits of two. */
Test(sequence, layer_norm_makes_the_sum_before_it_and_adds_its_gradient_to_another)
{
    enum { ROWS = 21, C = 37, COUNT = ROWS * C };
    float *x = check_numbers(COUNT, 1), *past = check_numbers(COUNT, 2), *w = check_numbers(C, 3),
          *b = check_numbers(C, 4);
    float *dy = check_numbers(COUNT, 5), *there = check_numbers(COUNT, 6), dx[COUNT], workspace[16 * 2 * C];
    float sum[COUNT], made[COUNT], y[COUNT], y_made[COUNT], mean[ROWS], rstd[ROWS], dw[C], db[C];
    check_run(OPERATION_add_forward, &(struct add_forward){COUNT, x, past, sum, ACTIVATION_NONE}, 2, NULL);
    check_run(OPERATION_layer_norm_forward, &(struct layer_norm_forward){ROWS, C, sum, w, b, y, mean, rstd, NULL, NULL},
              2, NULL);
    check_run(OPERATION_layer_norm_forward,
              &(struct layer_norm_forward){ROWS, C, x, w, b, y_made, mean, rstd, past, made}, 2, NULL);
    cr_expect_eq(memcmp(sum, made, sizeof sum), 0);
    cr_expect_eq(memcmp(y, y_made, sizeof y), 0);
    struct layer_norm_backward back = {ROWS, C, sum, w, mean, rstd, dy, dx, dw, db, workspace, false, false};
    check_run(OPERATION_layer_norm_backward, &back, 2, NULL);
    back.dx = there;
    back.add = true;
    float *expected = check_numbers(COUNT, 6);
    check_run(OPERATION_axpy, &(struct axpy){COUNT, 1.0f, dx, expected}, 2, NULL);
    check_run(OPERATION_layer_norm_backward, &back, 2, NULL);
    cr_expect_eq(memcmp(there, expected, sizeof dx), 0);
    free(x), free(past), free(w), free(b), free(dy), free(there), free(expected);
}

Test(sequence, embedding_adds_token_and_position)
{
    enum { B = 2, T = 3, C = 5, V = 4 };
    float *token = check_numbers(V * C, 1), *position = check_numbers(T * C, 2), y[B * T * C];
    int32_t tokens[B * T] = {3, 0, 1, 2, 2, 3};
    check_run(OPERATION_embedding_forward, &(struct embedding_forward){B, T, C, V, tokens, token, position, y}, 2,
              NULL);
    for (int i = 0; i < B * T * C; i++)
        cr_assert_eq(y[i], token[tokens[i / C] * C + i % C] + position[i / C % T * C + i % C]);
    free(token), free(position);
}

Test(sequence, cross_entropy_counts_loss_and_hits)
{
    enum { ROWS = 35, CLASSES = 21 };
    float *logits = check_numbers(ROWS * CLASSES, 1), *d = check_numbers(ROWS * CLASSES, 2);
    float *start = check_numbers(ROWS * CLASSES, 3), *expected = check_numbers(ROWS * CLASSES, 4);
    int32_t targets[ROWS];
    double workspace[2 * ROWS], loss = 0;
    int64_t correct = 0;
    for (int r = 0; r < ROWS; r++) {
        const float *row = logits + r * CLASSES;
        int best = 0;
        double sum = 0;
        targets[r] = r % CLASSES;
        for (int j = 0; j < CLASSES; j++) {
            sum += exp((double)row[j]);
            best = row[j] > row[best] ? j : best;
        }
        for (int j = 0; j < CLASSES; j++)
            expected[r * CLASSES + j] = (float)(0.25 * (exp((double)row[j]) / sum - (j == targets[r])));
        loss += log(sum) - (double)row[targets[r]];
        correct += best == targets[r];
    }
    struct loss_sums sums;
    struct softmax_cross_entropy op = {ROWS, CLASSES, logits, targets, 0.25f, d, workspace, &sums, 0, NULL, 0};
    check_everywhere(OPERATION_softmax_cross_entropy, &op, d, start, expected, ROWS * CLASSES, 1e-6f);
    cr_assert_float_eq(sums.loss, loss, 1e-5);
    cr_assert_eq(sums.correct, correct);
    cr_assert_eq(sums.count, ROWS);
    const double total = sums.loss;
    enum { APART = CLASSES + 3 };
    float *apart = check_numbers(ROWS * APART, 7), *between = check_numbers(ROWS * APART, 7);
    for (int r = 0; r < ROWS; r++) {
        memcpy(apart + r * APART, logits + r * CLASSES, CLASSES * sizeof *apart);
        memcpy(between + r * APART, d + r * CLASSES, CLASSES * sizeof *between);
    }
    op.logits = op.dlogits = apart;
    op.row = APART;
    check_run(OPERATION_softmax_cross_entropy, &op, 2, NULL);
    cr_assert_arr_eq(apart, between, ROWS * APART * sizeof *apart);
    cr_assert_eq(sums.loss, total);
    free(apart), free(between);
    free(logits), free(d), free(start), free(expected);
}

/* More than a thread has room for at a time: the vocabulary that a job may ask for is that wide. In place, then without. */
Test(sequence, cross_entropy_of_millions_of_classes)
{
    enum { ROWS = 2, CLASSES = 3000001 };
    float *logits = check_numbers(ROWS * CLASSES, 1), *d = check_numbers(ROWS * CLASSES, 1);
    float *expected = check_numbers(ROWS * CLASSES, 4);
    int32_t targets[ROWS] = {7, CLASSES - 1};
    double workspace[2 * ROWS], loss = 0;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int j = 0; j < CLASSES; j++)
            sum += exp((double)logits[r * CLASSES + j]);
        for (int j = 0; j < CLASSES; j++)
            expected[r * CLASSES + j] = (float)(1e6 * (exp((double)logits[r * CLASSES + j]) / sum - (j == targets[r])));
        loss += log(sum) - (double)logits[r * CLASSES + targets[r]];
    }
    struct loss_sums sums;
    struct softmax_cross_entropy op = {ROWS, CLASSES, d, targets, 1e6f, d, workspace, &sums, 0, NULL, 0};
    check_run(OPERATION_softmax_cross_entropy, &op, 2, NULL);
    check_close(d, expected, ROWS * CLASSES, 1e-5f);
    cr_assert_float_eq(sums.loss, loss, 1e-4);
    op.logits = logits;
    op.dlogits = NULL;
    sums.loss = 0;
    check_run(OPERATION_softmax_cross_entropy, &op, 2, NULL);
    cr_assert_float_eq(sums.loss, loss, 1e-4);
    free(logits), free(d), free(expected);
}

Test(sequence, gelu_and_tanh_follow_their_formulas)
{
    enum { COUNT = 20001 };
    float *x = check_numbers(COUNT, 1), *y = check_numbers(COUNT, 2), *expected = check_numbers(COUNT, 3);
    for (int i = 0; i < COUNT; i++) {
        double v = (double)(x[i] *= 12);
        expected[i] = (float)(0.5 * v * (1 + tanh(sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v))));
    }
    check_run(OPERATION_gelu_forward, &(struct gelu_forward){COUNT, x, y}, 2, NULL);
    check_close(y, expected, COUNT, 1e-6f);
    for (int i = 0; i < COUNT; i++)
        expected[i] = (float)tanh((double)x[i]);
    check_run(OPERATION_tanh_forward, &(struct tanh_forward){COUNT, x, y}, 2, NULL);
    check_close(y, expected, COUNT, 5e-7f);
    free(x), free(y), free(expected);
}

Test(sequence, pools_take_the_maximum_or_the_mean)
{
    enum { H = 5, W = 7, C = 3, SIZE = 3, STRIDE = 2, PADDING = 1, OH = 3, OW = 4 };
    float *x = check_numbers(H * W * C, 1), most[OH * OW * C], mean[OH * OW * C];
    struct pool_shape shape = {1, H, W, C, SIZE, STRIDE, PADDING, OH, OW};
    check_run(OPERATION_max_pool_forward, &(struct max_pool_forward){shape, x, most}, 2, NULL);
    check_run(OPERATION_average_pool_forward, &(struct average_pool_forward){shape, x, mean}, 2, NULL);
    for (int o = 0; o < OH * OW * C; o++) {
        float best = -2, sum = 0;
        for (int k = 0; k < SIZE * SIZE; k++) {
            int r = o / C / OW * STRIDE - PADDING + k / SIZE, q = o / C % OW * STRIDE - PADDING + k % SIZE;
            if (r < 0 || r >= H || q < 0 || q >= W)
                continue;
            float value = x[(r * W + q) * C + o % C];
            best = value > best ? value : best;
            sum += value;
        }
        cr_assert_eq(most[o], best);
        cr_assert_float_eq(mean[o], sum / 9, 1e-6f);
    }
    free(x);
}

/* Window by window, pixel by pixel; x is a rectifier's output, with many zeros and many equals. */
static void expect_spread(const struct pool_shape *s, const float *x, const float *dy, float *most, float *dx)
{
    memset(dx, 0, (size_t)(s->b * s->h * s->w * s->c) * sizeof *dx);
    for (int64_t o = 0; o < s->b * s->oh * s->ow * s->c; o++) {
        int64_t c = o % s->c, j = o / s->c % s->ow, i = o / s->c / s->ow % s->oh, b = o / s->c / s->ow / s->oh;
        int64_t first = -1;
        for (int64_t k = 0; k < s->size * s->size; k++) {
            int64_t r = i * s->stride - s->padding + k / s->size, q = j * s->stride - s->padding + k % s->size;
            int64_t at = ((b * s->h + r) * s->w + q) * s->c + c;
            if (r >= 0 && r < s->h && q >= 0 && q < s->w && (first < 0 || x[at] > x[first]))
                first = at;
        }
        most[o] = x[first];
        dx[first] += x[first] > 0 ? dy[o] : 0;
    }
}

Test(sequence, a_maximum_gets_what_its_windows_got)
{
    static const struct pool_shape shapes[] = {{2, 7, 8, 35, 2, 2, 0, 3, 4},
                                               {2, 6, 9, 16, 3, 2, 1, 3, 5},
                                               {1, 8, 7, 5, 3, 3, 0, 2, 2},
                                               {3, 5, 5, 32, 2, 1, 0, 4, 4}};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        const struct pool_shape *s = &shapes[n];
        int64_t inputs = s->b * s->h * s->w * s->c, outputs = s->b * s->oh * s->ow * s->c;
        float *x = check_numbers(inputs, 1), *dy = check_numbers(outputs, 2), *y = check_numbers(outputs, 3);
        float *dx = check_numbers(inputs, 4), *most = check_numbers(outputs, 5), *expected = check_numbers(inputs, 6);
        for (int64_t i = 0; i < inputs; i++)
            x[i] = x[i] > 0 ? roundf(x[i] * 4) : 0;
        expect_spread(s, x, dy, most, expected);
        check_run(OPERATION_max_pool_forward, &(struct max_pool_forward){*s, x, y}, 2, NULL);
        cr_assert_arr_eq(y, most, (size_t)outputs * sizeof *y);
        check_run(OPERATION_max_pool_backward, &(struct max_pool_backward){*s, x, y, dy, dx, true}, 2, NULL);
        check_close(dx, expected, inputs, 1e-6f);
        free(x), free(dy), free(y), free(dx), free(most), free(expected);
    }
}

Test(sequence, equal_maxima_give_the_gradient_to_the_first)
{
    float x[4] = {1, 1, 1, 1}, y[1] = {1}, dy[1] = {5}, dx[4] = {9, 9, 9, 9};
    struct pool_shape shape = {1, 2, 2, 1, 2, 2, 0, 1, 1};
    check_run(OPERATION_max_pool_backward, &(struct max_pool_backward){shape, x, y, dy, dx, false}, 1, NULL);
    cr_assert_eq(dx[0], 5.0f);
    cr_assert_eq(dx[1] + dx[2] + dx[3], 0.0f);
}
