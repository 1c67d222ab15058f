/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* Most arenas hold a job's few strings, and there may be ten thousand jobs: begin small. */
#define FIRST_BLOCK_BYTES 480
#define BLOCK_BYTES 1024
#define ALIGNMENT alignof(max_align_t)

struct arena_block {
    struct arena_block *older;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_push(struct arena *arena, size_t needed)
{
    size_t usual = arena->newest ? BLOCK_BYTES : FIRST_BLOCK_BYTES;
    size_t capacity = needed > usual ? needed : usual;
    struct arena_block *block = memory_allocate(1, sizeof *block + capacity);
    block->capacity = capacity;
    block->older = arena->newest;
    arena->newest = block;
    return block;
}

void *arena_allocate(struct arena *arena, size_t count, size_t size)
{
    if (size > 0 && count > (SIZE_MAX / 2) / size)
        return memory_allocate(count, size); /* cannot be had; ends the program in words */
    size_t needed = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_block *block = arena->newest;
    if (block == NULL || needed > block->capacity - block->used)
        block = block_push(arena, needed);
    void *memory = block->bytes + block->used;
    block->used += needed;
    return memory;
}

char *arena_copy_string(struct arena *arena, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(arena_allocate(arena, size, 1), text, size);
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
    size_t bytes = 0;
    for (const struct arena_block *block = arena->newest; block; block = block->older)
        bytes += sizeof *block + block->capacity;
    return bytes;
}
