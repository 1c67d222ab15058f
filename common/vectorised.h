/* SPDX-License-Identifier: Apache-2.0
 *
 * VECTORISED marks a function that loops over many numbers. GCC compiles it for AVX-512, AVX2 and plain x86-64, and the dynamic linker
 * chooses one when the program is loaded. All give the same bits, since -ffp-contract=off forbids fused multiply-add.
 */
#ifndef COXSWAIN_COMMON_VECTORISED_H
#define COXSWAIN_COMMON_VECTORISED_H

/* Empty under the thread sanitizer, which is not initialised yet when the linker chooses. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_ADDRESS__)
/* No AVX-512: GCC 12 misaligns 64-byte vectors on the stack that the address sanitizer uses to find uses after return. */
#define VECTORISED __attribute__((target_clones("avx2", "default"), optimize("O3")))
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define VECTORISED
#endif

#endif
