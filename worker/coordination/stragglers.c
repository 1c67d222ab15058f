/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <stdlib.h>

#include "common/memory.h"

#define WEIGHT 0.3
#define AGAIN_FACTOR (STRAGGLER_FACTOR * 3 / 4)

struct member_pace {
    double mean_ns; /* 0: none measured */
    unsigned slow;  /* parts running */
    bool named;
};

struct stragglers {
    unsigned count;
    struct member_pace *members;
    double *sorted;
};

struct stragglers *stragglers_new(unsigned members)
{
    struct stragglers *stragglers = memory_allocate(1, sizeof *stragglers);
    stragglers->count = members;
    stragglers->members = memory_allocate(members, sizeof *stragglers->members);
    stragglers->sorted = memory_allocate(members, sizeof *stragglers->sorted);
    return stragglers;
}

void stragglers_free(struct stragglers *stragglers)
{
    if (stragglers == NULL)
        return;
    free(stragglers->members);
    free(stragglers->sorted);
    free(stragglers);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 0: nobody else was measured. Of an even number the lower one, so that of two others one may be slow. */
static double median_of_others(const struct stragglers *stragglers, unsigned member)
{
    unsigned count = 0;
    for (unsigned i = 0; i < stragglers->count; i++)
        if (i != member && stragglers->members[i].mean_ns > 0)
            stragglers->sorted[count++] = stragglers->members[i].mean_ns;
    qsort(stragglers->sorted, count, sizeof *stragglers->sorted, compare);
    return count > 0 ? stragglers->sorted[(count - 1) / 2] : 0;
}

enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_others_ns)
{
    struct member_pace *pace = &stragglers->members[member];
    double sample = ns > 0 ? (double)ns : 1;
    pace->mean_ns += (pace->mean_ns > 0 ? WEIGHT : 1.0) * (sample - pace->mean_ns);
    double others = median_of_others(stragglers, member), own = pace->mean_ns;
    bool slow = others > 0 && own > STRAGGLER_FACTOR * others && own - others > STRAGGLER_LEAST_NS;
    pace->slow = slow ? pace->slow + 1 : 0;
    *ret_own_ns = (int64_t)own;
    *ret_others_ns = (int64_t)others;
    if (!pace->named && pace->slow >= STRAGGLER_PARTS) {
        pace->named = true;
        return STRAGGLER_IS_SLOW;
    }
    if (pace->named && (own < AGAIN_FACTOR * others || own - others < STRAGGLER_LEAST_NS)) {
        pace->named = false;
        return STRAGGLER_KEEPS_UP;
    }
    return STRAGGLER_AS_BEFORE;
}

void stragglers_forget(struct stragglers *stragglers, unsigned member)
{
    stragglers->members[member] = (struct member_pace){0};
}
