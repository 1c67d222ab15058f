/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is slower than the rest, told by how long each takes over its part of a
 * step. Members are numbered from 0. A machine without clock, sockets or threads.
 *
 * A member is judged by its last STRAGGLER_WINDOW parts. It is a straggler once they have taken more than
 * STRAGGLER_FACTOR times what they should, and STRAGGLER_PARTS of them did so each on its own: one that is ten times
 * slower is named after four parts. Who is slow in bursts, as one whose processor is taken away most of the time, has few
 * slow parts, but such as outweigh all others: STRAGGLER_BURSTS of them do where all took more than
 * STRAGGLER_BURST_FACTOR times what they should. One slow part alone names nobody. It keeps up again below three quarters of
 * STRAGGLER_FACTOR.
 *
 * What it should take is the median of its kin's means, or last parts where these are
 * longer: of those that do the same work. Who has no kin, as a stage of a pipeline, is held against its own past: what
 * it usually takes, learnt from its first STRAGGLER_LEARNT parts on, times how much
 * slower than usually the rest is now (their median), so that a machine on which
 * everybody slows down names nobody. Who was slow from its first part on is not
 * found that way.
 *
 * Where members meet only every so many steps (local steps), a step is a part all the same: the longest of them one, the
 * others each as long as their mean. So one that is slow in all is named when they next meet, and one slow step names nobody.
 *
 * Who is named over and over is told of the first time, and then at doubling counts, so that steps of a millisecond flood no log.
 * In between it is told of once its parts since then have taken STRAGGLER_UNTOLD_NS: who was slow for moments now and then, and then for
 * good, is heard of.
 */
#ifndef COXSWAIN_COORDINATION_STRAGGLERS_H
#define COXSWAIN_COORDINATION_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

#define STRAGGLER_WINDOW 16
#define STRAGGLER_LEARNT 8
#define STRAGGLER_FACTOR 2.0
#define STRAGGLER_PARTS 4
#define STRAGGLER_BURST_FACTOR 3.0
#define STRAGGLER_BURSTS 2
/* A part that takes no more than this above what it should is not slow, and who has lost no more than that in a window is no
 * straggler: a processor that was lent out for a moment is nobody's fault. */
#define STRAGGLER_PART_NS 2000000
#define STRAGGLER_LOST_NS 50000000
#define STRAGGLER_UNTOLD_NS 5e9

/* Role, index, its own milliseconds, stragglers_measure, the milliseconds of that, stragglers_again, the step. */
#define STRAGGLER_TEXT "%s %u is a straggler: its part of a step takes %.1f ms, %s %.1f ms%s (step %lld)"

struct stragglers;

/* `kin`: by member, equal numbers do the same work; copied. NULL: all do. */
struct stragglers *stragglers_new(unsigned members, const unsigned *kin);
void stragglers_free(struct stragglers *stragglers);

enum straggler_change { STRAGGLER_AS_BEFORE, STRAGGLER_IS_SLOW, STRAGGLER_KEEPS_UP };
/* A part that took `ns`; 0: it was not measured. After a change: what the member takes on the average, and what it should take.
 * A change that is not to be told is none. */
enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_due_ns);
/* `steps` parts at once, the longest of which took `longest_ns` and the others `ns` on the average; 0 or 1: one part, of `ns`. */
enum straggler_change stragglers_add_steps(struct stragglers *stragglers, unsigned member, int64_t steps, int64_t ns,
                                           int64_t longest_ns, int64_t *ret_own_ns, int64_t *ret_due_ns);
/* Whose time a member is held against: "the others'" or "usually". */
const char *stragglers_measure(const struct stragglers *stragglers, unsigned member);
/* "", or how often it has been named; until the next call. */
const char *stragglers_again(struct stragglers *stragglers, unsigned member);
/* It is gone, or another process: what was measured says nothing any more. */
void stragglers_forget(struct stragglers *stragglers, unsigned member);

#endif
