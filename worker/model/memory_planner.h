/* SPDX-License-Identifier: Apache-2.0
 *
 * Places blocks in one arena by when they live: blocks whose times do not meet
 * may share memory. Greedy, largest first, lowest offset that fits (as in
 * Pisarchyk and Lee 2020).
 */
#ifndef COXSWAIN_MODEL_MEMORY_PLANNER_H
#define COXSWAIN_MODEL_MEMORY_PLANNER_H

#include <stdint.h>

struct memory_block {
    int64_t bytes;
    int first, last; /* steps at which it holds a value, both included */
    int64_t offset;  /* the answer: a multiple of 64 */
};

/* Sets every offset; returns the arena's size. */
int64_t memory_planner_place(struct memory_block *blocks, unsigned count);

#endif
