/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/attention.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/cpu/vector_math.h"

struct job {
    const struct gemm_kernel *gemm;
    const struct attention_forward *op;
};

/* Row q of the block: softmax over keys 0 .. first + q, zero behind. Worked out to the end of a lane's width, since what is
 * left over would go one by one. */
CPU_VECTORISED static void softmax_rows(float *scores, int64_t first, int64_t rows, int64_t keys, float scale,
                                        float *logsumexp)
{
    for (int64_t q = 0; q < rows; q++) {
        float *row = scores + q * keys;
        int64_t seen = first + q + 1, end = attention_end(seen, keys);
        for (int64_t k = seen; k < end; k++)
            row[k] = -INFINITY;
        float maximum = lanes_maximum(row, end);
        for (int64_t k = 0; k < end; k++)
            row[k] = vector_exp((row[k] - maximum) * scale);
        for (int64_t k = seen; k < keys; k++)
            row[k] = 0;
        float sum = lanes_sum(row, end), share = 1.0f / sum;
        for (int64_t k = 0; k < end; k++)
            row[k] *= share;
        logsumexp[q] = maximum * scale + logf(sum);
    }
}

static void run_head(const void *context, int64_t piece, void *scratch)
{
    const struct job *job = context;
    const struct attention_forward *op = job->op;
    struct attention_head head = attention_head(op->t, op->c, op->heads, piece);
    float *scores = (float *)scratch + GEMM_SCRATCH_BYTES / sizeof(float);
    int64_t block = attention_rows(op->t, 2);
    for (int64_t first = op->first; first < op->t; first += block) {
        int64_t rows = op->t - first < block ? op->t - first : block, keys = first + rows;
        gemm_serial(job->gemm,
                    &(struct gemm){.m = rows,
                                   .n = keys,
                                   .k = head.width,
                                   .a = op->qkv + head.query + first * head.qkv_row,
                                   .a_row = head.qkv_row,
                                   .a_k = 1,
                                   .b = op->qkv + head.key,
                                   .b_k = 1,
                                   .b_column = head.qkv_row,
                                   .c = scores,
                                   .c_row = keys},
                    scratch);
        softmax_rows(scores, first, rows, keys, head.scale, op->logsumexp + piece * op->t + first);
        gemm_serial(job->gemm,
                    &(struct gemm){.m = rows,
                                   .n = head.width,
                                   .k = keys,
                                   .a = scores,
                                   .a_row = keys,
                                   .a_k = 1,
                                   .b = op->qkv + head.value,
                                   .b_k = head.qkv_row,
                                   .b_column = 1,
                                   .c = op->y + head.output + first * head.output_row,
                                   .c_row = head.output_row},
                    scratch);
    }
}

void cpu_attention_forward(const struct cpu_call *call, const struct attention_forward *op)
{
    struct job job = {call->kernel, op};
    team_run(call->team, op->b * op->heads, run_head, &job);
}
