/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is slower than the rest, told by how long each takes over its part of a
 * step. Members are numbered from 0. A machine without clock, sockets or threads.
 *
 * A member is a straggler once its mean (exponential, over the last few parts) has
 * been more than STRAGGLER_FACTOR times the median of the others' for
 * STRAGGLER_PARTS parts running, and keeps up again below three quarters of that.
 */
#ifndef COXSWAIN_COORDINATION_STRAGGLERS_H
#define COXSWAIN_COORDINATION_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

#define STRAGGLER_FACTOR 2.0
#define STRAGGLER_PARTS 4
/* What is no more than this above the others' is never named. */
#define STRAGGLER_LEAST_NS 2000000

/* Role, index, milliseconds of its own and of the others', the step. */
#define STRAGGLER_TEXT "%s %u is a straggler: its part of a step takes %.1f ms, the others' %.1f ms (step %lld)"

struct stragglers;

struct stragglers *stragglers_new(unsigned members);
void stragglers_free(struct stragglers *stragglers);

enum straggler_change { STRAGGLER_AS_BEFORE, STRAGGLER_IS_SLOW, STRAGGLER_KEEPS_UP };
/* A part that took `ns`. After a change: what the member takes, and the others, on the average. */
enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_others_ns);
/* It is gone, or another process: what was measured says nothing any more. */
void stragglers_forget(struct stragglers *stragglers, unsigned member);

#endif
