/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies a generation: the crew (the pods that train one job together) from one change of its membership to the
 * next. Each message, connection and step belongs to a generation.
 *
 * Generations are ordered by the job's attempt (how often the whole crew has started), then by the incarnation of the
 * chief, which leads the crew (the operator gives each new pod a higher incarnation), then by a counter that the chief
 * raises at every change of membership. Whatever belongs to a lower generation than the crew's is refused.
 */
#ifndef COXSWAIN_COMM_GENERATION_H
#define COXSWAIN_COMM_GENERATION_H

#include <stdint.h>

struct generation {
    uint32_t attempt;
    uint32_t incarnation;
    uint32_t counter;
};

/* Returns a negative number, 0 or a positive number if `a` is lower than, equal to or higher than `b`. */
static inline int generation_compare(struct generation a, struct generation b)
{
    if (a.attempt != b.attempt)
        return a.attempt < b.attempt ? -1 : 1;
    if (a.incarnation != b.incarnation)
        return a.incarnation < b.incarnation ? -1 : 1;
    return a.counter < b.counter ? -1 : a.counter > b.counter;
}

/* Compares the chiefs of two generations: only attempt and incarnation. */
static inline int generation_compare_chiefs(struct generation a, struct generation b)
{
    a.counter = b.counter;
    return generation_compare(a, b);
}

/* "attempt 1, incarnation 5, generation 3", for messages. */
#define GENERATION_FORMAT "attempt %u, incarnation %u, generation %u"
#define GENERATION_ARGUMENTS(g) (g).attempt, (g).incarnation, (g).counter

#endif
