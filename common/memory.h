/* SPDX-License-Identifier: Apache-2.0
 *
 * Small allocations that cannot fail: when the machine has no memory for a few
 * bytes, the program says so in one line and ends (exit code 70), because no
 * caller could do better. Whatever is sized by outside input or by a model goes
 * through `buffer` (which has a ceiling) or a planned arena, and reports
 * ERROR_TOO_LARGE or ERROR_NO_SPACE instead.
 */
#ifndef COXSWAIN_COMMON_MEMORY_H
#define COXSWAIN_COMMON_MEMORY_H

#include <stddef.h>

/* Zeroed memory for `count` elements of `size` bytes; release with free(). */
void *memory_allocate(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));

/* Like realloc for `count` elements of `size` bytes; new bytes are not zeroed. */
void *memory_resize(void *old, size_t count, size_t size) __attribute__((returns_nonnull, warn_unused_result));

/* A copy of `text`, or NULL when `text` is NULL; release with free(). */
char *memory_copy_string(const char *text);

/* A copy of the first `length` bytes of `text`, NUL-terminated; release with free(). */
char *memory_copy_bytes(const char *text, size_t length) __attribute__((returns_nonnull));

/* printf into a new string; release with free(). */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

#endif
