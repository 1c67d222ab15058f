/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the arithmetic (instruction set) with which all members of a crew can compute, so that they produce the same
 * bits. The coordinator applies it when members join and before each generation.
 *
 * Arithmetics are named as device_arithmetic names them. A processor supports its best one and all
 * below that (avx512 > avx2 > portable); a GPU supports only its own. The results of an exported program
 * (docs/programs.md) also depend on its number of threads. In that case the name ends in a slash and the
 * number ("avx512/4"), and members with different numbers have no arithmetic in common.
 */
#ifndef COXSWAIN_COORDINATION_ARITHMETIC_H
#define COXSWAIN_COORDINATION_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>

#define ARITHMETIC_MAX 16 /* bytes of a name, its terminating zero included */

/* Returns the length of the name without the number of threads. */
size_t arithmetic_length(const char *name);
/* Returns the number of threads in the name; 0: there is none. */
int arithmetic_threads(const char *name);
/* Returns whether a device whose best arithmetic is `best` does not support `wanted`. */
bool arithmetic_is_lacking(const char *best, const char *wanted);
/* Returns the best arithmetic that both devices support; NULL if there is none. The result is
 * `one` or `other`. */
const char *arithmetic_in_common(const char *one, const char *other);

#endif
