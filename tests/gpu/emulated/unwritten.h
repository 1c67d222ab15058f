/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is not zero, like a GPU's: all bits are set, so that a number is NaN until it is written.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_UNWRITTEN_H
#define COXSWAIN_TESTS_GPU_EMULATED_UNWRITTEN_H

#include <stddef.h>

/* Allocates at a multiple of `alignment`, a power of two and of a pointer's size, at most 4096. Returns NULL if memory runs out. Free it
 * with the same number of bytes. */
void *unwritten_new(size_t alignment, size_t bytes);
void unwritten_free(void *memory, size_t bytes);

#endif
