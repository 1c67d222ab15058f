/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/crew_evaluation.h"

#include <stdlib.h>

#include "common/memory.h"

#define BLOCK_EXAMPLES 256
#define BLOCKS_MAX 1024

enum { SUM_LOSS, SUM_CORRECT, SUM_COUNT, SUMS_PER_BLOCK };

/* Blocks grow with the data, so that what is exchanged stays small. */
static int64_t block_examples(int64_t count)
{
    int64_t examples = BLOCK_EXAMPLES;
    while (count > examples * BLOCKS_MAX)
        examples *= 2;
    return examples;
}

static int evaluate_block(struct trainer *trainer, int64_t first, int64_t count, double sums[SUMS_PER_BLOCK],
                          struct error *error)
{
    const struct evaluation_examples examples = {.dataset = trainer->validation, .first = first, .count = count};
    struct loss_sums block;
    int result = strategy_evaluates(trainer->strategy)
                     ? strategy_evaluate(trainer->strategy, trainer->validation, first, count, &block, error)
                     : evaluation_run(trainer->graph, trainer->device, trainer->stream, trainer->state.parameters,
                                      &examples, &block, error);
    if (result < 0)
        return -1;
    sums[SUM_LOSS] = block.loss;
    sums[SUM_CORRECT] = (double)block.correct;
    sums[SUM_COUNT] = (double)block.count;
    return 0;
}

static int evaluate_own_blocks(struct trainer *trainer, int64_t examples, int64_t block, double *values,
                               struct error *error)
{
    unsigned part = 0, parts = 1;
    if (!strategy_is_loose(trainer->strategy))
        strategy_evaluation_part(trainer->strategy, &part, &parts);
    int64_t stride = block * parts;
    for (int64_t first = block * part; first < examples; first += stride) {
        int64_t count = examples - first < block ? examples - first : block;
        if (evaluate_block(trainer, first, count, values + first / block * SUMS_PER_BLOCK, error) < 0)
            return error_wrap(error, "evaluation");
    }
    return 0;
}

int crew_evaluate(struct trainer *trainer, struct loss_sums *ret_sums, struct error *error)
{
    if (strategy_settle(trainer->strategy, error) < 0)
        return -1;
    int64_t examples = dataset_count(trainer->validation);
    int64_t block = block_examples(examples), blocks = (examples + block - 1) / block;
    SCOPED_FREE double *values = memory_allocate((size_t)blocks * SUMS_PER_BLOCK, sizeof *values);
    if (evaluate_own_blocks(trainer, examples, block, values, error) < 0)
        return -1;
    if (!strategy_is_loose(trainer->strategy) &&
        strategy_sum(trainer->strategy, values, (unsigned)(blocks * SUMS_PER_BLOCK), error) < 0)
        return -1;
    struct loss_sums sums = {0};
    for (int64_t i = 0; i < blocks; i++) {
        sums.loss += values[i * SUMS_PER_BLOCK + SUM_LOSS];
        sums.correct += (int64_t)values[i * SUMS_PER_BLOCK + SUM_CORRECT];
        sums.count += (int64_t)values[i * SUMS_PER_BLOCK + SUM_COUNT];
    }
    *ret_sums = sums;
    return 0;
}
