/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is slower than the rest, told by how long each takes over its part of a
 * step. Members are numbered from 0. A machine without clock, sockets or threads.
 *
 * A member is a straggler once its mean (exponential, over the last few parts) has
 * been more than STRAGGLER_FACTOR times what it should take for STRAGGLER_PARTS
 * parts running, and keeps up again below three quarters of that.
 *
 * What it should take is the median of its kin's means: of those that do the same
 * work. Who has no kin, as a stage of a pipeline, is held against its own past: what
 * it usually takes, learnt from its first STRAGGLER_WINDOW parts on, times how much
 * slower than usually the rest is now (their median), so that a machine on which
 * everybody slows down names nobody. Who was slow from its first part on is not
 * found that way.
 */
#ifndef COXSWAIN_COORDINATION_STRAGGLERS_H
#define COXSWAIN_COORDINATION_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

#define STRAGGLER_FACTOR 2.0
#define STRAGGLER_PARTS 4
#define STRAGGLER_WINDOW 8
/* What is no more than this above what it should be is never named. */
#define STRAGGLER_LEAST_NS 2000000

/* Role, index, its own milliseconds, stragglers_measure, the milliseconds of that, the step. */
#define STRAGGLER_TEXT "%s %u is a straggler: its part of a step takes %.1f ms, %s %.1f ms (step %lld)"

struct stragglers;

/* `kin`: by member, equal numbers do the same work; copied. NULL: all do. */
struct stragglers *stragglers_new(unsigned members, const unsigned *kin);
void stragglers_free(struct stragglers *stragglers);

enum straggler_change { STRAGGLER_AS_BEFORE, STRAGGLER_IS_SLOW, STRAGGLER_KEEPS_UP };
/* A part that took `ns`; 0: it was not measured. After a change: what the member takes on the average, and what it should take. */
enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_due_ns);
/* Whose time a member is held against: "the others'" or "usually". */
const char *stragglers_measure(const struct stragglers *stragglers, unsigned member);
/* It is gone, or another process: what was measured says nothing any more. */
void stragglers_forget(struct stragglers *stragglers, unsigned member);

#endif
