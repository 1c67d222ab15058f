/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over many numbers: compiled for each instruction set, chosen at load
 * time. No contraction to fused multiply-add happens in them (ISO C semantics),
 * so their bits are the same everywhere.
 */
#ifndef COXSWAIN_COMMON_VECTORISED_H
#define COXSWAIN_COMMON_VECTORISED_H

/* Not under the thread sanitizer, which is not ready yet when the choice is made. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_ADDRESS__)
/* GCC 12 keeps 64-byte vectors unaligned on the stack with which the sanitizer finds uses after a return. */
#define VECTORISED __attribute__((target_clones("avx2", "default"), optimize("O3")))
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define VECTORISED
#endif

#endif
