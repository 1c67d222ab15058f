/* SPDX-License-Identifier: Apache-2.0
 *
 * A burst (ten thousand jobs created at once, a list of all pods) leaves the heap full
 * of holes, which the C library keeps: by it they would be reused, but nobody may come.
 * Their whole pages go back to the system every now and then.
 */
#ifndef COXSWAIN_CONTROLLER_HEAP_TRIM_H
#define COXSWAIN_CONTROLLER_HEAP_TRIM_H

#include "common/event_loop.h"

struct heap_trim;

/* As long as the loop runs, and until it is ended. */
struct heap_trim *heap_trim_start(struct event_loop *loop, int64_t period_ms);
void heap_trim_end(struct heap_trim *trim);

#endif
