/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/check.h"

/* Only an emulated GPU has it (tests/gpu/emulated/block.h). */
__attribute__((weak)) uint64_t emulated_exchanges(void);

#define TOKENS 640

static uint64_t exchanges_with_table(struct side *gpu, int64_t vocabulary)
{
    struct error error = ERROR_INIT;
    const int32_t *tokens = side_tokens(gpu, TOKENS, 100, 1);
    const float *dy = side_numbers(gpu, TOKENS, 2);
    float *table = side_output(gpu, vocabulary), *positions = side_output(gpu, TOKENS);
    const uint64_t before = emulated_exchanges();
    device_embedding_backward(gpu->stream, &(struct embedding_backward){1, TOKENS, 1, vocabulary, tokens, dy, table,
                                                                        positions, false, false});
    must(device_stream_synchronise(gpu->stream, &error), &error);
    const uint64_t exchanged = emulated_exchanges() - before;
    side_clear(gpu);
    return exchanged;
}

/* Warps read 32 tokens at a time and exchange them. */
void check_work(struct side *gpu)
{
    if (!emulated_exchanges)
        return;
    const uint64_t small = exchanges_with_table(gpu, 100), large = exchanges_with_table(gpu, 3000);
    verdict(small == large, "embedding_backward goes through the tokens as often for any table",
            "%llu words exchanged for 100 rows, %llu for 3000", (unsigned long long)small, (unsigned long long)large);
}
