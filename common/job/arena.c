/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* Most arenas hold a job's few strings, and there may be ten thousand jobs: begin small, and grow by a part of what is
 * there. With its header, and the C library's, the first block takes 512 bytes, and the second 256. */
#define FIRST_BLOCK_BYTES 472
#define BLOCK_BYTES_MIN 216
#define GROWTH 4
#define ALIGNMENT alignof(max_align_t)

/* Strings, which need no alignment, are put at its end. */
struct arena_block {
    struct arena_block *older;
    size_t used, end; /* what is free lies between them */
    size_t total;     /* bytes of this block and all older ones */
    alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_push(struct arena *arena, size_t needed)
{
    struct arena_block *older = arena->newest;
    size_t usual = older ? older->total / GROWTH : FIRST_BLOCK_BYTES;
    size_t least = usual > BLOCK_BYTES_MIN ? usual : BLOCK_BYTES_MIN;
    size_t capacity = needed > least ? needed : least;
    struct arena_block *block = memory_allocate(1, sizeof *block + capacity);
    block->older = older;
    block->end = capacity;
    block->total = sizeof *block + capacity + (older ? older->total : 0);
    arena->newest = block;
    return block;
}

static struct arena_block *block_with(struct arena *arena, size_t bytes)
{
    struct arena_block *block = arena->newest;
    return block && bytes <= block->end - block->used ? block : block_push(arena, bytes);
}

void *arena_allocate(struct arena *arena, size_t count, size_t size)
{
    if (size > 0 && count > (SIZE_MAX / 2) / size)
        return memory_allocate(count, size); /* cannot be had; ends the program in words */
    size_t needed = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_block *block = block_with(arena, needed);
    void *memory = block->bytes + block->used;
    block->used += needed;
    return memory;
}

char *arena_copy_string(struct arena *arena, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t size = strlen(text) + 1;
    struct arena_block *block = block_with(arena, size);
    block->end -= size;
    return memcpy(block->bytes + block->end, text, size);
}

void arena_release(struct arena *arena)
{
    while (arena->newest) {
        struct arena_block *block = arena->newest;
        arena->newest = block->older;
        free(block);
    }
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->newest ? arena->newest->total : 0;
}
