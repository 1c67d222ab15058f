/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/memory_planner.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/scope.h"

#define ALIGNMENT 64

static int larger_first(const void *left, const void *right)
{
    const struct memory_block *a = *(struct memory_block *const *)left, *b = *(struct memory_block *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool meet(const struct memory_block *a, const struct memory_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t end_of(const struct memory_block *block)
{
    return block->offset + (block->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The lowest offset at which `block` hits none of the `placed` ones that live at the same time. */
static int64_t lowest_offset(struct memory_block *const *placed, unsigned count, struct memory_block *block)
{
    block->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i = 0; i < count; i++)
            if (meet(placed[i], block) && placed[i]->offset < end_of(block) && block->offset < end_of(placed[i])) {
                block->offset = end_of(placed[i]);
                moved = true;
            }
    }
    return block->offset;
}

int64_t memory_planner_place(struct memory_block *blocks, unsigned count)
{
    SCOPED_FREE struct memory_block **order = memory_allocate(count + 1, sizeof *order);
    for (unsigned i = 0; i < count; i++)
        order[i] = &blocks[i];
    qsort(order, count, sizeof(struct memory_block *), larger_first);
    int64_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        lowest_offset(order, i, order[i]);
        if (end_of(order[i]) > size)
            size = end_of(order[i]);
    }
    return size;
}
