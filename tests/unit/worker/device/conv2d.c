/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/device/operation_check.h"

/* b h w c o kernel stride padding */
static const int64_t cases[][8] = {
    {2, 7, 9, 1, 5, 3, 1, 0},    {3, 8, 8, 3, 17, 3, 1, 1},   {2, 9, 10, 2, 3, 3, 2, 1},   {1, 6, 6, 4, 70, 5, 1, 2},
    {19, 5, 5, 16, 32, 3, 1, 0}, {2, 7, 7, 3, 4, 1, 2, 0},    {1, 80, 80, 24, 8, 3, 1, 1}, {2, 9, 7, 4, 32, 3, 2, 1},
    {1, 12, 12, 8, 16, 3, 3, 0}, {1, 11, 13, 3, 48, 2, 3, 1}, {2, 15, 15, 6, 16, 7, 2, 3}, {1, 6, 35, 16, 33, 3, 1, 1},
    {1, 5, 5, 2, 3, 5, 1, 4},    {1, 6, 6, 2, 16, 3, 1, 3},   {1, 6, 7, 2, 3, 3, 2, 4},
};
#define CASES (sizeof cases / sizeof *cases)

static struct conv2d_shape shape_of(const int64_t *v)
{
    struct conv2d_shape s = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], 0, 0};
    s.oh = (s.h + 2 * s.padding - s.kernel) / s.stride + 1;
    s.ow = (s.w + 2 * s.padding - s.kernel) / s.stride + 1;
    return s;
}

/* Visits every (output element, input element, weight element) of a convolution. */
typedef void visit(void *context, int64_t y, int64_t x, int64_t w);
static void each_product(const struct conv2d_shape *s, visit *visitor, void *context)
{
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t i = 0; i < s->oh; i++)
            for (int64_t j = 0; j < s->ow; j++)
                for (int64_t kh = 0; kh < s->kernel; kh++)
                    for (int64_t kw = 0; kw < s->kernel; kw++) {
                        int64_t r = i * s->stride + kh - s->padding, q = j * s->stride + kw - s->padding;
                        if (r < 0 || r >= s->h || q < 0 || q >= s->w)
                            continue;
                        for (int64_t o = 0; o < s->o; o++)
                            for (int64_t c = 0; c < s->c; c++)
                                visitor(context, ((b * s->oh + i) * s->ow + j) * s->o + o,
                                        ((b * s->h + r) * s->w + q) * s->c + c,
                                        ((o * s->c + c) * s->kernel + kh) * s->kernel + kw);
                    }
}

struct operands {
    float *x, *w, *y, *start, *expected, *workspace, *bias;
    int64_t xs, ws, ys;
    struct conv2d_shape shape;
};

static struct operands operands_of(const int64_t *values)
{
    struct operands a = {.shape = shape_of(values)};
    const struct conv2d_shape *s = &a.shape;
    a.xs = s->b * s->h * s->w * s->c;
    a.ws = s->o * s->c * s->kernel * s->kernel;
    a.ys = s->b * s->oh * s->ow * s->o;
    int64_t most = a.xs + a.ws + a.ys;
    a.x = check_numbers(a.xs, 1);
    a.w = check_numbers(a.ws, 2);
    a.y = check_numbers(a.ys, 3);
    a.start = check_numbers(most, 4);
    a.expected = calloc((size_t)most, sizeof *a.expected);
    a.workspace = check_numbers(conv2d_workspace(s), 5);
    a.bias = check_numbers(s->o, 6);
    return a;
}

static void operands_free(struct operands *a)
{
    free(a->x), free(a->w), free(a->y), free(a->start), free(a->expected), free(a->workspace), free(a->bias);
}

static void add_forward(void *context, int64_t y, int64_t x, int64_t w)
{
    struct operands *a = context;
    a->expected[y] += a->x[x] * a->w[w];
}

static void add_data(void *context, int64_t y, int64_t x, int64_t w)
{
    struct operands *a = context;
    a->expected[x] += a->y[y] * a->w[w];
}

static void add_weight(void *context, int64_t y, int64_t x, int64_t w)
{
    struct operands *a = context;
    a->expected[w] += a->y[y] * a->x[x];
}

Test(conv2d, forward_agrees_with_the_definition)
{
    for (size_t i = 0; i < CASES; i++) {
        struct operands a = operands_of(cases[i]);
        for (int64_t y = 0; y < a.ys; y++)
            a.expected[y] = a.bias[y % a.shape.o];
        each_product(&a.shape, add_forward, &a);
        struct conv2d_forward op = {a.shape, a.x, a.w, a.bias, a.y, a.workspace, ACTIVATION_NONE, false};
        check_everywhere(OPERATION_conv2d_forward, &op, a.y, a.start, a.expected, a.ys, 1e-4f);
        operands_free(&a);
    }
}

Test(conv2d, backward_data_agrees_with_the_definition)
{
    for (size_t i = 0; i < CASES; i++) {
        struct operands a = operands_of(cases[i]);
        each_product(&a.shape, add_data, &a);
        struct conv2d_backward_data op = {a.shape, a.y, a.w, NULL, a.x, a.workspace, false};
        check_everywhere(OPERATION_conv2d_backward_data, &op, a.x, a.start, a.expected, a.xs, 1e-4f);
        operands_free(&a);
    }
}

/* The rectifier behind a convolution, and in front of it on the way back. */
Test(conv2d, zeros_are_those_of_the_rectifiers)
{
    for (size_t i = 0; i < CASES; i++) {
        struct operands a = operands_of(cases[i]);
        for (int64_t y = 0; y < a.ys; y++)
            a.expected[y] = a.bias[y % a.shape.o];
        each_product(&a.shape, add_forward, &a);
        for (int64_t y = 0; y < a.ys; y++)
            a.expected[y] = a.expected[y] > 0 ? a.expected[y] : 0;
        struct conv2d_forward ahead = {a.shape, a.x, a.w, a.bias, a.y, a.workspace, ACTIVATION_RELU, false};
        check_everywhere(OPERATION_conv2d_forward, &ahead, a.y, a.start, a.expected, a.ys, 1e-4f);
        memset(a.expected, 0, (size_t)a.xs * sizeof *a.expected);
        each_product(&a.shape, add_data, &a);
        float *mask = check_numbers(a.xs, 7);
        for (int64_t x = 0; x < a.xs; x++)
            a.expected[x] = mask[x] > 0 ? a.expected[x] : 0;
        struct conv2d_backward_data back = {a.shape, a.y, a.w, mask, a.x, a.workspace, false};
        check_everywhere(OPERATION_conv2d_backward_data, &back, a.x, a.start, a.expected, a.xs, 1e-4f);
        free(mask);
        operands_free(&a);
    }
}

Test(conv2d, backward_weight_agrees_with_the_definition)
{
    for (size_t i = 0; i < CASES; i++) {
        struct operands a = operands_of(cases[i]);
        each_product(&a.shape, add_weight, &a);
        struct conv2d_backward_weight op = {a.shape, a.y, a.x, a.w, a.bias, a.workspace, false, false};
        check_everywhere(OPERATION_conv2d_backward_weight, &op, a.w, a.start, a.expected, a.ws, 2e-3f);
        float *sums = calloc((size_t)a.shape.o, sizeof *sums);
        for (int64_t y = 0; y < a.ys; y++)
            sums[y % a.shape.o] += a.y[y];
        check_close(a.bias, sums, a.shape.o, 2e-3f);
        free(sums);
        operands_free(&a);
    }
}
