/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

static void embed_example(const void *context, int64_t example, void *scratch)
{
    const struct embedding_forward *op = context;
    (void)scratch;
    for (int64_t t = 0; t < op->t; t++) {
        int64_t at = example * op->t + t;
        const float *token = op->token + op->tokens[at] * op->c, *position = op->position + t * op->c;
        for (int64_t i = 0; i < op->c; i++)
            op->y[at * op->c + i] = token[i] + position[i];
    }
}

void cpu_embedding_forward(const struct cpu_call *call, const struct embedding_forward *op)
{
    for (int64_t i = 0; i < op->b * op->t; i++)
        if (op->tokens[i] < 0 || op->tokens[i] >= op->vocabulary) {
            error_set(call->error, ERROR_INVALID, "token %d at position %lld is outside 0..%lld", op->tokens[i],
                      (long long)(i % op->t), (long long)op->vocabulary - 1);
            return;
        }
    team_run(call->team, op->b, embed_example, op);
}
