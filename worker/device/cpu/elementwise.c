/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that compute each element from the elements at the same index: the
 * team gets runs of CPU_RUN elements.
 */
#include "worker/device/bfloat16.h"
#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/vector_math.h"
#include "worker/device/float16.h"

CPU_VECTORISED static void relu_forward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct relu_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] <= 0 ? 0 : x[i];
}

void cpu_relu_forward(const struct cpu_call *call, const struct relu_forward *op)
{
    team_run(call->team, cpu_runs(op->count), relu_forward_piece, op);
}

CPU_VECTORISED static void relu_backward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct relu_backward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *y = op->y + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    for (int64_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

void cpu_relu_backward(const struct cpu_call *call, const struct relu_backward *op)
{
    team_run(call->team, cpu_runs(op->count), relu_backward_piece, op);
}

CPU_VECTORISED static void gelu_forward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct gelu_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++) {
        float inside = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]); /* sqrt(2 / pi) */
        y[i] = 0.5f * x[i] * (1.0f + vector_tanh(inside));
    }
}

void cpu_gelu_forward(const struct cpu_call *call, const struct gelu_forward *op)
{
    team_run(call->team, cpu_runs(op->count), gelu_forward_piece, op);
}

CPU_VECTORISED static void gelu_backward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct gelu_backward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    for (int64_t i = 0; i < count; i++) {
        float square = x[i] * x[i];
        float t = vector_tanh(0.7978845608f * (x[i] + 0.044715f * x[i] * square));
        float inside = 0.7978845608f * (1.0f + 3.0f * 0.044715f * square);
        dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * inside);
    }
}

void cpu_gelu_backward(const struct cpu_call *call, const struct gelu_backward *op)
{
    team_run(call->team, cpu_runs(op->count), gelu_backward_piece, op);
}

CPU_VECTORISED static void tanh_forward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct tanh_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] = vector_tanh(x[i]);
}

void cpu_tanh_forward(const struct cpu_call *call, const struct tanh_forward *op)
{
    team_run(call->team, cpu_runs(op->count), tanh_forward_piece, op);
}

CPU_VECTORISED static void tanh_backward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct tanh_backward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *y = op->y + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    for (int64_t i = 0; i < count; i++)
        dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

void cpu_tanh_backward(const struct cpu_call *call, const struct tanh_backward *op)
{
    team_run(call->team, cpu_runs(op->count), tanh_backward_piece, op);
}

CPU_VECTORISED static void add_forward_piece(const void *context, int64_t piece, void *scratch)
{
    const struct add_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *a = op->a + first, *b = op->b + first;
    float *y = op->y + first;
    if (op->activation == ACTIVATION_RELU)
        for (int64_t i = 0; i < count; i++)
            y[i] = a[i] + b[i] <= 0 ? 0 : a[i] + b[i];
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = a[i] + b[i];
}

void cpu_add_forward(const struct cpu_call *call, const struct add_forward *op)
{
    team_run(call->team, cpu_runs(op->count), add_forward_piece, op);
}

CPU_VECTORISED static void fill_piece(const void *context, int64_t piece, void *scratch)
{
    const struct fill *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    float *x = op->x + first;
    for (int64_t i = 0; i < count; i++)
        x[i] = op->value;
}

void cpu_fill(const struct cpu_call *call, const struct fill *op)
{
    team_run(call->team, cpu_runs(op->count), fill_piece, op);
}

CPU_VECTORISED static void scale_piece(const void *context, int64_t piece, void *scratch)
{
    const struct scale *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    float *x = op->x + first;
    for (int64_t i = 0; i < count; i++)
        x[i] *= op->factor;
}

void cpu_scale(const struct cpu_call *call, const struct scale *op)
{
    team_run(call->team, cpu_runs(op->count), scale_piece, op);
}

CPU_VECTORISED static void axpy_piece(const void *context, int64_t piece, void *scratch)
{
    const struct axpy *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] += op->factor * x[i];
}

void cpu_axpy(const struct cpu_call *call, const struct axpy *op)
{
    team_run(call->team, cpu_runs(op->count), axpy_piece, op);
}

CPU_VECTORISED static void merge_vectors_piece(const void *context, int64_t piece, void *scratch)
{
    const struct merge_vectors *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    for (int pair = 0; pair < op->pair_count; pair++) {
        float *into = op->pairs[pair].into + first;
        const float *from = op->pairs[pair].from + first;
        for (int64_t i = 0; i < count; i++)
            into[i] += from[i];
    }
}

void cpu_merge_vectors(const struct cpu_call *call, const struct merge_vectors *op)
{
    team_run(call->team, cpu_runs(op->count), merge_vectors_piece, op);
}

CPU_VECTORISED static void round_bfloat16_piece(const void *context, int64_t piece, void *scratch)
{
    const struct round_bfloat16 *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] = bfloat16_round(x[i]);
}

void cpu_round_bfloat16(const struct cpu_call *call, const struct round_bfloat16 *op)
{
    team_run(call->team, cpu_runs(op->count), round_bfloat16_piece, op);
}

CPU_VECTORISED static void round_float16_piece(const void *context, int64_t piece, void *scratch)
{
    const struct round_float16 *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] = float16_round(x[i]);
}

void cpu_round_float16(const struct cpu_call *call, const struct round_float16 *op)
{
    team_run(call->team, cpu_runs(op->count), round_float16_piece, op);
}
