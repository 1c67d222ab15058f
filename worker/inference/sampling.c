/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/sampling.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/philox.h"
#include "common/scope.h"

struct candidate {
    float logit;
    int32_t token;
};

static int most_probable_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit < b->logit ? 1 : -1;
    return (a->token > b->token) - (a->token < b->token);
}

static int32_t most_probable(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* In [0, 1), with 53 bits. */
static double draw(uint64_t seed, int64_t number)
{
    struct philox_words words = philox(seed, (uint64_t)number, 0);
    return (double)(((uint64_t)words.word[0] << 32 | words.word[1]) >> 11) * 0x1p-53;
}

static int32_t choose_among(const struct candidate *candidates, int64_t count, double temperature, double random)
{
    double sum = 0, passed = 0;
    for (int64_t i = 0; i < count; i++)
        sum += exp(((double)candidates[i].logit - (double)candidates[0].logit) / temperature);
    for (int64_t i = 0; i < count; i++) {
        passed += exp(((double)candidates[i].logit - (double)candidates[0].logit) / temperature);
        if (random * sum < passed)
            return candidates[i].token;
    }
    return candidates[0].token;
}

int32_t sampling_choose(const struct sampling *sampling, const float *logits, int64_t count, int64_t number)
{
    if (sampling->temperature <= 0)
        return most_probable(logits, count);
    SCOPED_FREE struct candidate *candidates = memory_allocate((size_t)count, sizeof *candidates);
    for (int64_t i = 0; i < count; i++)
        candidates[i] = (struct candidate){logits[i], (int32_t)i};
    qsort(candidates, (size_t)count, sizeof *candidates, most_probable_first);
    int64_t among = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
    return choose_among(candidates, among, sampling->temperature, draw(sampling->seed, number));
}
