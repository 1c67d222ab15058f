/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the arithmetic (instruction set) with which all members of a crew can compute, so that they produce the same
 * bits. The coordinator applies it when members join and before each generation.
 *
 * Arithmetics are named as device_arithmetic names them. A processor supports its best one and all
 * below that (avx512 > avx2 > portable); a GPU supports only its own. Where XLA computes the model
 * (docs/programs.md), the bits also depend on its code. In that case further parts follow the device's
 * name, each behind a slash: the number of threads (0: on TPUs and GPUs), and digests of what the processor can
 * do or the kind of TPU or GPU, of the plugin, and of the compilers' settings ("avx512/4/5a0c…/…/…").
 * Members that differ in one of these have no arithmetic in common.
 */
#ifndef COXSWAIN_COORDINATION_ARITHMETIC_H
#define COXSWAIN_COORDINATION_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>

#define ARITHMETIC_MAX 64 /* bytes of a name, its terminating zero included */

/* The parts of a name behind the device's. */
enum arithmetic_part {
    ARITHMETIC_THREADS,
    ARITHMETIC_PROCESSOR,
    ARITHMETIC_PLUGIN,
    ARITHMETIC_SETTINGS,
    ARITHMETIC_PARTS, /* how many */
};

/* Returns the length of the device's name. */
size_t arithmetic_length(const char *name);
/* Returns the number of threads in the name; 0: there is none. */
int arithmetic_threads(const char *name);
/* Returns the first part in which the names differ; ARITHMETIC_PARTS: in none. */
enum arithmetic_part arithmetic_difference(const char *one, const char *other);
/* Returns words for a part that differs, which "than the crew's" may follow: "another PJRT plugin". */
const char *arithmetic_difference_words(enum arithmetic_part part);
/* Returns whether a device whose best arithmetic is `best` does not support `wanted`. */
bool arithmetic_is_lacking(const char *best, const char *wanted);
/* Returns the best arithmetic that both devices support; NULL if there is none. The result is
 * `one` or `other`. */
const char *arithmetic_in_common(const char *one, const char *other);

#endif
