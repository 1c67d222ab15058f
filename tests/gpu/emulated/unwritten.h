/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory as a GPU gives it, with something in it: all bits are set, so that a
 * number which nobody has written is none.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_UNWRITTEN_H
#define COXSWAIN_TESTS_GPU_EMULATED_UNWRITTEN_H

#include <stddef.h>

/* At a multiple of `alignment`, a power of two and of a pointer's size, 4096 at most; NULL: there is none. Freed with the same number
 * of bytes. */
void *unwritten_new(size_t alignment, size_t bytes);
void unwritten_free(void *memory, size_t bytes);

#endif
