/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/unit/worker/device/operation_check.h"

static const int64_t shapes[][3] = {{1, 1, 1},    {7, 19, 301}, {13, 65, 17},    {128, 10, 33},
                                    {250, 70, 9}, {6, 64, 600}, {300, 130, 100}, {130, 300, 70}};
#define SHAPES (sizeof shapes / sizeof *shapes)

Test(dense, forward_is_the_product_plus_bias_rectified)
{
    for (size_t s = 0; s < SHAPES; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        float *x = check_numbers(m * k, 1), *w = check_numbers(n * k, 2), *b = check_numbers(n, 3);
        float *y = check_numbers(m * n, 4), *start = check_numbers(m * n, 5), *expected = check_numbers(m * n, 6);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = (double)b[j];
                for (int64_t p = 0; p < k; p++)
                    sum += (double)x[i * k + p] * (double)w[j * k + p];
                expected[i * n + j] = sum > 0 ? (float)sum : 0;
            }
        struct dense_forward op = {m, n, k, x, w, b, y, .activation = ACTIVATION_RELU};
        check_everywhere(OPERATION_dense_forward, &op, y, start, expected, m * n, 2e-5f);
        free(x), free(w), free(b), free(y), free(start), free(expected);
    }
}

Test(dense, backward_data_is_zero_behind_a_rectifier)
{
    for (size_t s = 0; s < SHAPES; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        float *dy = check_numbers(m * n, 1), *w = check_numbers(n * k, 2), *mask = check_numbers(m * k, 3);
        float *dx = check_numbers(m * k, 4), *start = check_numbers(m * k, 5), *expected = check_numbers(m * k, 6);
        for (int64_t i = 0; i < m; i++)
            for (int64_t p = 0; p < k; p++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += (double)dy[i * n + j] * (double)w[j * k + p];
                expected[i * k + p] = mask[i * k + p] > 0 ? (float)sum : 0;
            }
        struct dense_backward_data op = {m, n, k, dy, w, mask, .dx = dx};
        check_everywhere(OPERATION_dense_backward_data, &op, dx, start, expected, m * k, 2e-5f);
        free(dy), free(w), free(mask), free(dx), free(start), free(expected);
    }
}

Test(dense, backward_weight_adds_the_finished_gradient)
{
    for (size_t s = 0; s < SHAPES; s++)
        for (int accumulate = 0; accumulate <= 1; accumulate++) {
            int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            float *dy = check_numbers(m * n, 1), *x = check_numbers(m * k, 2), *db = check_numbers(n, 3);
            float *dw = check_numbers(n * k, 4), *start = check_numbers(n * k, 5), *expected = check_numbers(n * k, 6);
            for (int64_t j = 0; j < n; j++)
                for (int64_t p = 0; p < k; p++) {
                    double sum = 0;
                    for (int64_t i = 0; i < m; i++)
                        sum += (double)dy[i * n + j] * (double)x[i * k + p];
                    expected[j * k + p] = (float)sum + (accumulate ? start[j * k + p] : 0);
                }
            struct dense_backward_weight op = {m, n, k, dy, x, dw, db, .accumulate = accumulate};
            check_everywhere(OPERATION_dense_backward_weight, &op, dw, start, expected, n * k, 2e-5f);
            free(dy), free(x), free(db), free(dw), free(start), free(expected);
        }
}

/* Copies the rows of a packed matrix to rows with gaps. */
static void spread(const float *packed, int64_t rows, int64_t columns, int64_t row, float *apart)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(apart + i * row, packed + i * columns, (size_t)columns * sizeof *apart);
}

/* Whether they lie packed or apart: the same bits, and nobody writes what is between. */
Test(dense, rows_may_lie_apart)
{
    for (size_t s = 0; s < SHAPES; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], row = n + 3;
        float *x = check_numbers(m * k, 1), *w = check_numbers(n * k, 2), *b = check_numbers(n, 3);
        float *y = check_numbers(m * n, 4), *apart = check_numbers(m * row, 5), *expected = check_numbers(m * row, 5);
        float *dx = check_numbers(m * k, 6), *dx_apart = check_numbers(m * k, 7);
        float *dw = check_numbers(n * k, 8), *dw_apart = check_numbers(n * k, 9);
        float *db = check_numbers(n, 10), *db_apart = check_numbers(n, 11);
        struct dense_forward forward = {m, n, k, x, w, b, y, .activation = ACTIVATION_RELU};
        check_run(OPERATION_dense_forward, &forward, 2, NULL);
        forward.y = apart, forward.y_row = row;
        check_run(OPERATION_dense_forward, &forward, 2, NULL);
        spread(y, m, n, row, expected);
        cr_assert_arr_eq(apart, expected, (size_t)(m * row) * sizeof *apart);
        struct dense_backward_data data = {m, n, k, y, w, .dx = dx};
        check_run(OPERATION_dense_backward_data, &data, 2, NULL);
        data.dy = apart, data.dx = dx_apart, data.dy_row = row;
        check_run(OPERATION_dense_backward_data, &data, 2, NULL);
        cr_assert_arr_eq(dx_apart, dx, (size_t)(m * k) * sizeof *dx);
        struct dense_backward_weight weight = {m, n, k, y, x, dw, db, .accumulate = false};
        check_run(OPERATION_dense_backward_weight, &weight, 2, NULL);
        weight.dy = apart, weight.dweight = dw_apart, weight.dbias = db_apart, weight.dy_row = row;
        check_run(OPERATION_dense_backward_weight, &weight, 2, NULL);
        cr_assert_arr_eq(dw_apart, dw, (size_t)(n * k) * sizeof *dw);
        cr_assert_arr_eq(db_apart, db, (size_t)n * sizeof *db);
        free(x), free(w), free(b), free(y), free(apart), free(expected), free(dx), free(dx_apart);
        free(dw), free(dw_apart), free(db), free(db_apart);
    }
}

Test(dense, accumulated_shards_have_the_bits_of_added_gradients)
{
    enum { M = 300, N = 290, K = 70 };
    float *dy = check_numbers(M * N, 1), *x = check_numbers(M * K, 2), *parts = check_numbers(2 * N * K, 3);
    float *sum = check_numbers(N * K, 4), *bias = check_numbers(N, 5);
    for (int shard = 0; shard < 2; shard++) {
        struct dense_backward_weight alone = {M / 2,
                                              N,
                                              K,
                                              dy + shard * M / 2 * N,
                                              x + shard * M / 2 * K,
                                              parts + shard * N * K,
                                              bias,
                                              .accumulate = false};
        check_run(OPERATION_dense_backward_weight, &alone, 1, NULL);
        struct dense_backward_weight added = alone;
        added.dweight = sum;
        added.accumulate = shard > 0;
        check_run(OPERATION_dense_backward_weight, &added, 2, NULL);
    }
    for (int i = 0; i < N * K; i++)
        cr_assert_eq(sum[i], parts[i] + parts[N * K + i]);
    free(dy), free(x), free(parts), free(sum), free(bias);
}

Test(dense, no_examples_give_zero_gradients)
{
    float dw[6] = {1, 2, 3, 4, 5, 6}, db[2] = {7, 8}, none[1] = {0};
    struct dense_backward_weight op = {0, 2, 3, none, none, dw, db, .accumulate = false};
    check_run(OPERATION_dense_backward_weight, &op, 2, NULL);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(dw[i], 0.0f);
    cr_assert_eq(db[0], 0.0f);
}

/* A GELU within a product has the bits of a separate operation. */
Test(dense, gelus_and_their_way_back_are_part_of_products)
{
    enum { M = 13, N = 24, K = 17 };
    float *x = check_numbers(M * K, 1), *w = check_numbers(N * K, 2), *b = check_numbers(N, 3);
    float *y = check_numbers(M * N, 4), *gelu = check_numbers(M * N, 5), *apart = check_numbers(M * N, 6);
    float *dy = check_numbers(M * N, 7), *dx = check_numbers(M * K, 8), *dx_apart = check_numbers(M * K, 9);
    struct dense_forward forward = {M, N, K, x, w, b, y, .gelu = gelu};
    struct dense_backward_data backward = {M, N, K, dy, w, NULL, .dx = dx, .gelu_input = x};
    struct dense_backward_data product = {M, N, K, dy, w, NULL, .dx = dx_apart};
    check_run(OPERATION_dense_forward, &forward, 1, NULL);
    check_run(OPERATION_gelu_forward, &(struct gelu_forward){M * N, y, apart}, 1, NULL);
    cr_expect_arr_eq(gelu, apart, M * N * sizeof(float));
    check_run(OPERATION_dense_backward_data, &backward, 1, NULL);
    check_run(OPERATION_dense_backward_data, &product, 1, NULL);
    check_run(OPERATION_gelu_backward, &(struct gelu_backward){M * K, x, dx_apart, dx_apart}, 1, NULL);
    cr_expect_arr_eq(dx, dx_apart, M * K * sizeof(float));
    free(x), free(w), free(b), free(y), free(gelu), free(apart), free(dy), free(dx), free(dx_apart);
}
