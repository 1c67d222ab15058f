/* SPDX-License-Identifier: Apache-2.0
 *
 * A bump allocator for values that are released together, such as the strings and lists of one parsed TrainingJob: arena_release frees
 * everything, and nothing can be freed singly. An arena begins as {0}. The struct may be moved with memcpy but not copied, since a second
 * copy would release the same memory.
 */
#ifndef COXSWAIN_JOB_ARENA_H
#define COXSWAIN_JOB_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *newest;
};

/* Zeroed, aligned for any type. */
void *arena_allocate(struct arena *arena, size_t count, size_t size);
char *arena_copy_string(struct arena *arena, const char *text); /* NULL for NULL */
void arena_release(struct arena *arena);
/* Returns how many bytes the arena holds, for accounting of caches. */
size_t arena_bytes(const struct arena *arena);

#endif
