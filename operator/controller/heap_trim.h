/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns unused heap memory to the kernel at regular intervals; main.c starts this on the
 * operator's event loop. After a burst, such as ten thousand jobs created at once or a list of all
 * pods, the C library keeps the freed memory for later allocations, which may never come, and the
 * operator's resident memory would stay that large.
 */
#ifndef COXSWAIN_CONTROLLER_HEAP_TRIM_H
#define COXSWAIN_CONTROLLER_HEAP_TRIM_H

#include "common/event_loop.h"

struct heap_trim;

/* Trims the heap every `period_ms` while the loop runs, until heap_trim_end. */
struct heap_trim *heap_trim_start(struct event_loop *loop, int64_t period_ms);
/* Stops and frees `trim`; NULL is allowed. */
void heap_trim_end(struct heap_trim *trim);

#endif
