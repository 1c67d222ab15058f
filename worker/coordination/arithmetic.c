/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/arithmetic.h"

#include <stddef.h>
#include <string.h>

/* Processors' arithmetics, best first. A processor that supports one also supports those after it. */
static const char *const ranked[] = {"avx512", "avx2", "portable"};
#define RANKED (sizeof ranked / sizeof *ranked)

static size_t rank_of(const char *word)
{
    size_t rank = 0;
    while (rank < RANKED && strcmp(ranked[rank], word) != 0)
        rank++;
    return rank;
}

bool arithmetic_is_lacking(const char *best, const char *wanted)
{
    size_t has = rank_of(best), asked = rank_of(wanted);
    return has < RANKED && asked < RANKED ? has > asked : strcmp(best, wanted) != 0;
}

const char *arithmetic_in_common(const char *one, const char *other)
{
    if (!arithmetic_is_lacking(one, other))
        return other;
    return arithmetic_is_lacking(other, one) ? NULL : one;
}
