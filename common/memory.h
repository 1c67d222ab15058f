/* SPDX-License-Identifier: Apache-2.0
 *
 * Small allocations that do not fail: if no memory is left, the program prints one line and exits with code 70, because no caller could
 * do better. Memory whose size depends on outside input or on a model comes from a `buffer` (which has a maximum size) or a planned arena
 * instead; these report ERROR_TOO_LARGE or ERROR_NO_SPACE.
 */
#ifndef COXSWAIN_COMMON_MEMORY_H
#define COXSWAIN_COMMON_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory for `count` elements of `size` bytes; release with free(). */
void *memory_allocate(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));

/* Like realloc for `count` elements of `size` bytes; new bytes are not zeroed. */
void *memory_resize(void *old, size_t count, size_t size) __attribute__((returns_nonnull, warn_unused_result));

/* Returns a copy of `text`, or NULL if `text` is NULL; release with free(). */
char *memory_copy_string(const char *text);

/* Returns a NUL-terminated copy of the first `length` bytes of `text`; release with free(). */
char *memory_copy_bytes(const char *text, size_t length) __attribute__((returns_nonnull));

/* Formats a new string like printf; release with free(). */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

#endif
