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

enum arithmetic_part arithmetic_difference(const char *one, const char *other)
{
    int part = 0;
    for (; part < ARITHMETIC_PARTS; part++) {
        one += strcspn(one, "/"), other += strcspn(other, "/");
        one += *one != '\0', other += *other != '\0';
        size_t length = strcspn(one, "/");
        if (length != strcspn(other, "/") || memcmp(one, other, length) != 0)
            break;
    }
    return (enum arithmetic_part)part;
}

const char *arithmetic_difference_words(enum arithmetic_part part)
{
    static const char *const words[ARITHMETIC_PARTS] = {
        [ARITHMETIC_THREADS] = "another number of threads",
        [ARITHMETIC_PROCESSOR] = "another kind of processor, TPU or GPU",
        [ARITHMETIC_PLUGIN] = "another PJRT plugin",
        [ARITHMETIC_SETTINGS] = "another XLA_FLAGS or LIBTPU_INIT_ARGS",
    };
    return words[part];
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
    if (arithmetic_difference(best, wanted) != ARITHMETIC_PARTS)
        return true;
    return has < RANKED && asked < RANKED ? has > asked : strcmp(best, wanted) != 0;
}

const char *arithmetic_in_common(const char *one, const char *other)
{
    if (!arithmetic_is_lacking(one, other))
        return other;
    return arithmetic_is_lacking(other, one) ? NULL : one;
}
