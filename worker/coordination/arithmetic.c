/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/arithmetic.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"

/* Processors' arithmetics, best first. A processor that supports one also supports those after it. */
static const char *const ranked[] = {"avx512", "avx2", "portable"};
#define RANKED (sizeof ranked / sizeof *ranked)

size_t arithmetic_length(const char *name)
{
    return strcspn(name, "/");
}

int arithmetic_threads(const char *name)
{
    const char *slash = strchr(name, '/');
    long threads = slash != NULL ? strtol(slash + 1, NULL, 10) : 0;
    return threads > 0 && threads <= COMPUTE_THREADS_MAX ? (int)threads : 0;
}

static size_t rank_of(const char *name)
{
    size_t rank = 0, length = arithmetic_length(name);
    while (rank < RANKED && (strlen(ranked[rank]) != length || memcmp(ranked[rank], name, length) != 0))
        rank++;
    return rank;
}

bool arithmetic_is_lacking(const char *best, const char *wanted)
{
    size_t has = rank_of(best), asked = rank_of(wanted);
    if (arithmetic_threads(best) != arithmetic_threads(wanted))
        return true;
    return has < RANKED && asked < RANKED ? has > asked : strcmp(best, wanted) != 0;
}

const char *arithmetic_in_common(const char *one, const char *other)
{
    if (!arithmetic_is_lacking(one, other))
        return other;
    return arithmetic_is_lacking(other, one) ? NULL : one;
}
