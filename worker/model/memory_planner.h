/* SPDX-License-Identifier: Apache-2.0
 *
 * Places memory blocks in one arena, for graph_plan.c: blocks that are not live at the same time may share
 * memory. The planner is greedy: largest block first, at the lowest offset that fits (Pisarchyk and Lee 2020).
 */
#ifndef COXSWAIN_MODEL_MEMORY_PLANNER_H
#define COXSWAIN_MODEL_MEMORY_PLANNER_H

#include <stdint.h>

struct memory_block {
    int64_t bytes;
    int first, last; /* the steps between which it is live, both included */
    int64_t offset;  /* result: a multiple of 64 */
};

/* Sets every offset. Returns the arena's size. */
int64_t memory_planner_place(struct memory_block *blocks, unsigned count);

#endif
