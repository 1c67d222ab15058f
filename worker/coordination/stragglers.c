/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define WEIGHT 0.3
#define AGAIN_FACTOR (STRAGGLER_FACTOR * 3 / 4)
/* What is usual follows a faster member at once, and a slower one by so much a part. */
#define RISE 0.01

struct member_pace {
    unsigned kin;
    bool has_kin;
    double mean_ns;  /* 0: none measured */
    double usual_ns; /* 0: not known yet */
    double window[STRAGGLER_WINDOW];
    unsigned parts; /* measured */
    unsigned slow;  /* parts running */
    bool named;
};

struct stragglers {
    unsigned count;
    struct member_pace *members;
    double *sorted;
};

static bool finds_kin(const struct stragglers *stragglers, unsigned member)
{
    for (unsigned i = 0; i < stragglers->count; i++)
        if (i != member && stragglers->members[i].kin == stragglers->members[member].kin)
            return true;
    return false;
}

struct stragglers *stragglers_new(unsigned members, const unsigned *kin)
{
    struct stragglers *stragglers = memory_allocate(1, sizeof *stragglers);
    stragglers->count = members;
    stragglers->members = memory_allocate(members, sizeof *stragglers->members);
    stragglers->sorted = memory_allocate(members + STRAGGLER_WINDOW, sizeof *stragglers->sorted);
    for (unsigned i = 0; kin && i < members; i++)
        stragglers->members[i].kin = kin[i];
    for (unsigned i = 0; i < members; i++)
        stragglers->members[i].has_kin = kin == NULL || finds_kin(stragglers, i);
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

/* Of an even number the lower one, so that of two others one may be slow. 0: of none. */
static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return count > 0 ? values[(count - 1) / 2] : 0;
}

static double median_of_kin(const struct stragglers *stragglers, unsigned member)
{
    unsigned count = 0;
    for (unsigned i = 0; i < stragglers->count; i++) {
        const struct member_pace *other = &stragglers->members[i];
        if (i != member && other->kin == stragglers->members[member].kin && other->mean_ns > 0)
            stragglers->sorted[count++] = other->mean_ns;
    }
    return median(stragglers->sorted, count);
}

/* How much slower than usually the others are, at least 1. */
static double slowness_of_others(const struct stragglers *stragglers, unsigned member)
{
    unsigned count = 0;
    for (unsigned i = 0; i < stragglers->count; i++)
        if (i != member && stragglers->members[i].usual_ns > 0)
            stragglers->sorted[count++] = stragglers->members[i].mean_ns / stragglers->members[i].usual_ns;
    double slowness = median(stragglers->sorted, count);
    return slowness > 1 ? slowness : 1;
}

static double due(const struct stragglers *stragglers, unsigned member)
{
    const struct member_pace *pace = &stragglers->members[member];
    if (pace->has_kin)
        return median_of_kin(stragglers, member);
    return pace->usual_ns > 0 ? pace->usual_ns * slowness_of_others(stragglers, member) : 0;
}

static void note_part(struct member_pace *pace, double sample)
{
    pace->mean_ns += (pace->mean_ns > 0 ? WEIGHT : 1.0) * (sample - pace->mean_ns);
    pace->window[pace->parts++ % STRAGGLER_WINDOW] = sample;
}

/* By what is not slow alone. */
static void learn_usual(struct stragglers *stragglers, struct member_pace *pace)
{
    if (pace->parts < STRAGGLER_WINDOW || pace->slow > 0 || pace->named)
        return;
    memcpy(stragglers->sorted, pace->window, sizeof pace->window);
    double now = median(stragglers->sorted, STRAGGLER_WINDOW);
    double step = pace->usual_ns > 0 ? (now < pace->usual_ns ? WEIGHT : RISE) : 1;
    pace->usual_ns += step * (now - pace->usual_ns);
}

enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_due_ns)
{
    struct member_pace *pace = &stragglers->members[member];
    if (ns <= 0)
        return STRAGGLER_AS_BEFORE;
    note_part(pace, (double)ns);
    double should = due(stragglers, member), own = pace->mean_ns;
    bool slow = should > 0 && own > STRAGGLER_FACTOR * should && own - should > STRAGGLER_LEAST_NS;
    pace->slow = slow ? pace->slow + 1 : 0;
    learn_usual(stragglers, pace);
    *ret_own_ns = (int64_t)own;
    *ret_due_ns = (int64_t)should;
    if (!pace->named && pace->slow >= STRAGGLER_PARTS) {
        pace->named = true;
        return STRAGGLER_IS_SLOW;
    }
    if (pace->named && (own < AGAIN_FACTOR * should || own - should < STRAGGLER_LEAST_NS)) {
        pace->named = false;
        return STRAGGLER_KEEPS_UP;
    }
    return STRAGGLER_AS_BEFORE;
}

const char *stragglers_measure(const struct stragglers *stragglers, unsigned member)
{
    return stragglers->members[member].has_kin ? "the others'" : "usually";
}

void stragglers_forget(struct stragglers *stragglers, unsigned member)
{
    struct member_pace *pace = &stragglers->members[member];
    *pace = (struct member_pace){.kin = pace->kin, .has_kin = pace->has_kin};
}
