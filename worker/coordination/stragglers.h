/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the members of a crew that are slower than the rest, from how long each takes over its part of a step (the work
 * that it does itself, without waiting for others). The chief logs what it finds: the training loop for synchronous
 * strategies, the dispatcher for parameter servers. There is no clock, socket or thread in it. Members are numbered
 * from 0.
 *
 * A member is judged by its last STRAGGLER_WINDOW parts. It is a straggler if
 * - these parts together took more than STRAGGLER_FACTOR times the expected time, and at least
 *   STRAGGLER_PARTS of them were slow individually (a member that is ten times slower is reported
 *   after four parts); or
 * - they took more than STRAGGLER_BURST_FACTOR times the expected time, and at least
 *   STRAGGLER_BURSTS of them were slow. This finds a member that is slow in bursts, for example
 *   because another process often uses its processor: it has few slow parts, but these take longer
 *   than all its others together.
 * One slow part alone is not enough. A straggler has recovered when its parts take less than three
 * quarters of STRAGGLER_FACTOR times the expected time, or when it hardly loses time any more.
 *
 * The expected time is the median over the members that do the same work (its kin) of their mean,
 * or of their last part if that took longer. A member without kin, such as a stage of a pipeline,
 * is compared with its own usual time, which is known after STRAGGLER_LEARNT parts. That time is
 * multiplied by the median slowdown of the other members, so that nobody is reported when the whole
 * machine slows down. A member without kin that was slow from its first part is not found.
 *
 * With local steps, members report only once a round, but each step still counts as one part: the
 * longest by itself, the others with their mean. So a member that is slow in all steps is reported
 * at the end of the round, and one slow step does not make a straggler.
 *
 * A member that becomes a straggler repeatedly is reported the first time and then at doubling
 * counts, so that short steps do not flood the log. In between, it is reported if it remains a
 * straggler while its parts take STRAGGLER_UNTOLD_NS in all.
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
/* A part is slow only if it exceeds the expected time by more than STRAGGLER_PART_NS, and a
 * member is a straggler only if it loses more than STRAGGLER_LOST_NS in a window: short
 * preemptions do not count. */
#define STRAGGLER_PART_NS 2000000
#define STRAGGLER_LOST_NS 50000000
#define STRAGGLER_UNTOLD_NS 5e9

/* Arguments: role, index, the member's own milliseconds, stragglers_measure, the expected
 * milliseconds, stragglers_again, the step. */
#define STRAGGLER_TEXT "%s %u is a straggler: its part of a step takes %.1f ms, %s %.1f ms%s (step %lld)"

struct stragglers;

/* Creates the statistics of `members` members. Members with equal numbers in `kin` (copied) do
 * the same work; NULL: all of them do. */
struct stragglers *stragglers_new(unsigned members, const unsigned *kin);
void stragglers_free(struct stragglers *stragglers);

enum straggler_change { STRAGGLER_AS_BEFORE, STRAGGLER_IS_SLOW, STRAGGLER_KEEPS_UP };
/* Adds a part that took `ns`; ignores it if `ns` is 0 (not measured). Returns a change only if
 * it is to be reported. *ret_own_ns and *ret_due_ns are then the mean time of the member's parts
 * and the expected time. */
enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_due_ns);
/* Adds `steps` parts, of which the longest took `longest_ns` and the others `ns` on average. If
 * `steps` is 0 or 1, adds one part of `ns`. */
enum straggler_change stragglers_add_steps(struct stragglers *stragglers, unsigned member, int64_t steps, int64_t ns,
                                           int64_t longest_ns, int64_t *ret_own_ns, int64_t *ret_due_ns);
/* Returns what the member is compared with: "the others'" or "usually". */
const char *stragglers_measure(const struct stragglers *stragglers, unsigned member);
/* Returns "", or text that says how often the member has been a straggler; valid until the next
 * call. */
const char *stragglers_again(struct stragglers *stragglers, unsigned member);
/* A member that is slow now, and its mean time and the expected time. */
struct straggler {
    unsigned member;
    int64_t own_ns, due_ns;
};
/* Returns whether a member is a straggler now, whether it was reported or not: the one that the last call returned if it
 * still is one, else the one that loses the most time. */
bool stragglers_find(struct stragglers *stragglers, struct straggler *ret_straggler);
/* Discards a member's measurements, because it has left or another process has taken its place. */
void stragglers_forget(struct stragglers *stragglers, unsigned member);

#endif
