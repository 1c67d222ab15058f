/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): a hash of short texts
 * for tables and seeds. Not cryptographic, and not safe against chosen collisions.
 */
#ifndef COXSWAIN_FNV1A_H
#define COXSWAIN_FNV1A_H

#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)

/* `start`: FNV1A_START, or a seed of one's own. */
static inline uint64_t fnv1a(uint64_t start, const char *text)
{
    uint64_t hash = start;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
