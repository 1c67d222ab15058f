/* SPDX-License-Identifier: Apache-2.0
 *
 * The generation of a crew: which formation of the crew a message, a connection or a
 * step belongs to. Ordered by attempt (the job's), then incarnation (the chief's), then
 * a counter that the chief raises at every change of membership.
 * Whatever is lower than what the crew has agreed on is refused everywhere.
 */
#ifndef COXSWAIN_COMM_GENERATION_H
#define COXSWAIN_COMM_GENERATION_H

#include <stdint.h>

struct generation {
    uint32_t attempt;
    uint32_t incarnation;
    uint32_t counter;
};

/* Negative, 0 or positive, as a is lower than, equal to or higher than b. */
static inline int generation_compare(struct generation a, struct generation b)
{
    if (a.attempt != b.attempt)
        return a.attempt < b.attempt ? -1 : 1;
    if (a.incarnation != b.incarnation)
        return a.incarnation < b.incarnation ? -1 : 1;
    return a.counter < b.counter ? -1 : a.counter > b.counter;
}

/* The same for the chiefs that named them, whatever they have counted. */
static inline int generation_compare_chiefs(struct generation a, struct generation b)
{
    a.counter = b.counter;
    return generation_compare(a, b);
}

/* "attempt 1, incarnation 5, generation 3", for messages. */
#define GENERATION_FORMAT "attempt %u, incarnation %u, generation %u"
#define GENERATION_ARGUMENTS(g) (g).attempt, (g).incarnation, (g).counter

#endif
