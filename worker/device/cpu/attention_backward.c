/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/attention.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/cpu/vector_math.h"

struct job {
    const struct gemm_kernel *gemm;
    const struct attention_backward *op;
};

/* Query rows [first, first + rows) of one head against keys [0, first + rows). */
struct query_block {
    const struct job *job;
    struct attention_head head;
    int64_t first, rows, keys;
    float *weights, *dscores; /* [rows, keys] */
    const float *logsumexp;   /* of the first row */
    void *scratch;
};

/* Scores become softmax weights P; dP becomes dS = P (dP - sum(dy y)) / sqrt(width). */
CPU_VECTORISED static void score_gradients(const struct query_block *block)
{
    const struct attention_head *head = &block->head;
    const struct attention_backward *op = block->job->op;
    for (int64_t q = 0; q < block->rows; q++) {
        int64_t seen = block->first + q + 1, at = head->output + (block->first + q) * head->output_row;
        int64_t end = attention_end(seen, block->keys);
        float *restrict p = block->weights + q * block->keys, *restrict ds = block->dscores + q * block->keys;
        float dot = lanes_dot(op->dy + at, op->y + at, head->width), lse = block->logsumexp[q];
        for (int64_t k = 0; k < end; k++) {
            p[k] = vector_exp(p[k] * head->scale - lse);
            ds[k] = p[k] * (ds[k] - dot) * head->scale;
        }
        for (int64_t k = seen; k < block->keys; k++)
            p[k] = ds[k] = 0;
    }
}

/* to[rows,keys] = from[rows,width] (offset `row`) times the transpose of keys or values (offset `column`). */
static void against_all(const struct query_block *block, const float *from, int64_t from_row, int64_t column, float *to)
{
    gemm_serial(block->job->gemm,
                &(struct gemm){.m = block->rows,
                               .n = block->keys,
                               .k = block->head.width,
                               .a = from,
                               .a_row = from_row,
                               .a_k = 1,
                               .b = block->job->op->qkv + column,
                               .b_k = 1,
                               .b_column = block->head.qkv_row,
                               .c = to,
                               .c_row = block->keys},
                block->scratch);
}

/* to[keys,width] += scores[rows,keys]^T from[rows,width] */
static void add_to_all(const struct query_block *block, const float *scores, const float *from, int64_t from_row,
                       float *to)
{
    gemm_serial(block->job->gemm,
                &(struct gemm){.m = block->keys,
                               .n = block->head.width,
                               .k = block->rows,
                               .a = scores,
                               .a_row = 1,
                               .a_k = block->keys,
                               .b = from,
                               .b_k = from_row,
                               .b_column = 1,
                               .c = to,
                               .c_row = block->head.qkv_row,
                               .accumulate = true},
                block->scratch);
}

static void run_block(const struct query_block *block)
{
    const struct attention_head *head = &block->head;
    const struct attention_backward *op = block->job->op;
    int64_t query = head->query + block->first * head->qkv_row;
    const float *dy = op->dy + head->output + block->first * head->output_row;
    against_all(block, op->qkv + query, head->qkv_row, head->key, block->weights);
    against_all(block, dy, head->output_row, head->value, block->dscores);
    score_gradients(block);
    gemm_serial(block->job->gemm,
                &(struct gemm){.m = block->rows,
                               .n = head->width,
                               .k = block->keys,
                               .a = block->dscores,
                               .a_row = block->keys,
                               .a_k = 1,
                               .b = op->qkv + head->key,
                               .b_k = head->qkv_row,
                               .b_column = 1,
                               .c = op->dqkv + query,
                               .c_row = head->qkv_row},
                block->scratch);
    add_to_all(block, block->dscores, op->qkv + query, head->qkv_row, op->dqkv + head->key);
    add_to_all(block, block->weights, dy, head->output_row, op->dqkv + head->value);
}

static void run_head(const void *context, int64_t piece, void *scratch)
{
    const struct job *job = context;
    const struct attention_backward *op = job->op;
    struct query_block block = {.job = job, .head = attention_head(op->t, op->c, op->heads, piece), .scratch = scratch};
    for (int64_t t = 0; t < op->t; t++) {
        memset(op->dqkv + block.head.key + t * block.head.qkv_row, 0, (size_t)block.head.width * sizeof(float));
        memset(op->dqkv + block.head.value + t * block.head.qkv_row, 0, (size_t)block.head.width * sizeof(float));
    }
    int64_t step = attention_rows(op->t, 2);
    for (block.first = 0; block.first < op->t; block.first += step) {
        block.rows = op->t - block.first < step ? op->t - block.first : step;
        block.keys = block.first + block.rows;
        block.weights = (float *)scratch + GEMM_SCRATCH_BYTES / sizeof(float);
        block.dscores = block.weights + block.rows * block.keys;
        block.logsumexp = op->logsumexp + piece * op->t + block.first;
        run_block(&block);
    }
}

void cpu_attention_backward(const struct cpu_call *call, const struct attention_backward *op)
{
    struct job job = {call->kernel, op};
    team_run(call->team, op->b * op->heads, run_head, &job);
}
