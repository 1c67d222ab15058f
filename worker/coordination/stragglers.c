/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/memory.h"

#define WEIGHT 0.3
/* The usual time falls at once to that of a faster step, and rises by this part of a slower one. */
#define RISE 0.01

struct part {
    double own_ns, due_ns;
    bool slow;
};

struct member_pace {
    unsigned kin;
    bool has_kin;
    double mean_ns;                      /* 0: none measured */
    double last_ns;                      /* when all slow down at once, the mean is late to tell */
    double usual_ns;                     /* 0: not known yet */
    struct part parts[STRAGGLER_WINDOW]; /* a ring */
    uint64_t measured;
    bool named, told;
    uint64_t times;  /* named */
    double named_ns; /* what it has taken since it was named last */
};

struct stragglers {
    unsigned count;
    struct member_pace *members;
    double *sorted;
    unsigned found; /* by stragglers_find */
    char again[48];
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

/* Returns the lower median, so that of two other members one may be slow; 0 if there are no values. */
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
            stragglers->sorted[count++] = fmax(other->mean_ns, other->last_ns);
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

static void note_part(struct member_pace *pace, double own_ns, double due_ns)
{
    struct part *part = &pace->parts[pace->measured++ % STRAGGLER_WINDOW];
    part->own_ns = own_ns;
    part->due_ns = due_ns > 0 ? due_ns : own_ns; /* until the time that is due is known */
    part->slow = own_ns > STRAGGLER_FACTOR * part->due_ns && own_ns - part->due_ns > STRAGGLER_PART_NS;
    pace->last_ns = own_ns;
    pace->mean_ns += (pace->mean_ns > 0 ? WEIGHT : 1.0) * (own_ns - pace->mean_ns);
}

/* By what is not slow alone, and from the newest parts, half as many as the verdict has. */
static void learn_usual(struct stragglers *stragglers, struct member_pace *pace, bool slow)
{
    if (pace->measured < STRAGGLER_LEARNT || slow || pace->named)
        return;
    for (unsigned i = 0; i < STRAGGLER_LEARNT; i++)
        stragglers->sorted[i] = pace->parts[(pace->measured - 1 - i) % STRAGGLER_WINDOW].own_ns;
    double now = median(stragglers->sorted, STRAGGLER_LEARNT);
    double step = pace->usual_ns > 0 ? (now < pace->usual_ns ? WEIGHT : RISE) : 1;
    pace->usual_ns += step * (now - pace->usual_ns);
}

/* The window as one part: means, and how many of its parts are slow. */
struct record {
    double own_ns, due_ns, lost_ns;
    unsigned slow;
};

static struct record summarise(const struct member_pace *pace)
{
    struct record record = {0};
    unsigned count = pace->measured < STRAGGLER_WINDOW ? (unsigned)pace->measured : STRAGGLER_WINDOW;
    for (unsigned i = 0; i < count; i++) {
        record.own_ns += pace->parts[i].own_ns / count;
        record.due_ns += pace->parts[i].due_ns / count;
        record.slow += pace->parts[i].slow;
    }
    record.lost_ns = (record.own_ns - record.due_ns) * count;
    return record;
}

static bool is_straggler(const struct record *record)
{
    double factor = record->own_ns / record->due_ns;
    bool often = record->slow >= STRAGGLER_PARTS && factor > STRAGGLER_FACTOR;
    bool in_bursts = record->slow >= STRAGGLER_BURSTS && factor > STRAGGLER_BURST_FACTOR;
    return (often || in_bursts) && record->lost_ns > STRAGGLER_LOST_NS;
}

static bool keeps_up(const struct record *record)
{
    return record->own_ns < STRAGGLER_FACTOR * 3 / 4 * record->due_ns || record->lost_ns < STRAGGLER_LOST_NS / 2.0;
}

/* The first time, and then at doubling counts; what is left out, once it has lasted. */
static enum straggler_change note_slow(struct member_pace *pace)
{
    pace->named = true;
    pace->named_ns = 0;
    pace->times++;
    pace->told = (pace->times & (pace->times - 1)) == 0;
    return pace->told ? STRAGGLER_IS_SLOW : STRAGGLER_AS_BEFORE;
}

static enum straggler_change note_still_slow(struct member_pace *pace, double ns)
{
    pace->named_ns += ns;
    if (pace->told || pace->named_ns < STRAGGLER_UNTOLD_NS)
        return STRAGGLER_AS_BEFORE;
    pace->told = true;
    return STRAGGLER_IS_SLOW;
}

static enum straggler_change note_recovery(struct member_pace *pace)
{
    pace->named = false;
    return pace->told ? STRAGGLER_KEEPS_UP : STRAGGLER_AS_BEFORE;
}

static void add_part(struct stragglers *stragglers, struct member_pace *pace, double own_ns, double due_ns)
{
    note_part(pace, own_ns, due_ns);
    learn_usual(stragglers, pace, pace->parts[(pace->measured - 1) % STRAGGLER_WINDOW].slow);
}

enum straggler_change stragglers_add_steps(struct stragglers *stragglers, unsigned member, int64_t steps, int64_t ns,
                                           int64_t longest_ns, int64_t *ret_own_ns, int64_t *ret_due_ns)
{
    struct member_pace *pace = &stragglers->members[member];
    if (ns <= 0)
        return STRAGGLER_AS_BEFORE;
    double due_ns = due(stragglers, member);
    add_part(stragglers, pace, (double)(steps > 1 ? longest_ns : ns), due_ns);
    for (int64_t i = 1; i < steps && i < STRAGGLER_WINDOW; i++)
        add_part(stragglers, pace, (double)ns, due_ns);
    struct record record = summarise(pace);
    *ret_own_ns = (int64_t)record.own_ns;
    *ret_due_ns = (int64_t)record.due_ns;
    if (!pace->named && is_straggler(&record))
        return note_slow(pace);
    if (pace->named && keeps_up(&record))
        return note_recovery(pace);
    return pace->named ? note_still_slow(pace, (double)ns * (double)(steps > 1 ? steps : 1)) : STRAGGLER_AS_BEFORE;
}

enum straggler_change stragglers_add(struct stragglers *stragglers, unsigned member, int64_t ns, int64_t *ret_own_ns,
                                     int64_t *ret_due_ns)
{
    return stragglers_add_steps(stragglers, member, 1, ns, ns, ret_own_ns, ret_due_ns);
}

const char *stragglers_again(struct stragglers *stragglers, unsigned member)
{
    uint64_t times = stragglers->members[member].times;
    if (times < 2)
        return "";
    snprintf(stragglers->again, sizeof stragglers->again, ", named %llu times", (unsigned long long)times);
    return stragglers->again;
}

const char *stragglers_measure(const struct stragglers *stragglers, unsigned member)
{
    return stragglers->members[member].has_kin ? "the others'" : "usually";
}

static struct straggler describe(const struct stragglers *stragglers, unsigned member)
{
    struct record record = summarise(&stragglers->members[member]);
    return (struct straggler){.member = member, .own_ns = (int64_t)record.own_ns, .due_ns = (int64_t)record.due_ns};
}

/* Returns the straggler that loses the most time; any member if there is none. */
static unsigned find_worst(const struct stragglers *stragglers)
{
    unsigned worst = 0;
    int64_t most = INT64_MIN;
    for (unsigned i = 0; i < stragglers->count; i++) {
        if (!stragglers->members[i].named)
            continue;
        struct straggler one = describe(stragglers, i);
        if (one.own_ns - one.due_ns > most) {
            most = one.own_ns - one.due_ns;
            worst = i;
        }
    }
    return worst;
}

bool stragglers_find(struct stragglers *stragglers, struct straggler *ret_straggler)
{
    if (!stragglers->members[stragglers->found].named)
        stragglers->found = find_worst(stragglers);
    if (!stragglers->members[stragglers->found].named)
        return false;
    *ret_straggler = describe(stragglers, stragglers->found);
    return true;
}

void stragglers_forget(struct stragglers *stragglers, unsigned member)
{
    struct member_pace *pace = &stragglers->members[member];
    *pace = (struct member_pace){.kin = pace->kin, .has_kin = pace->has_kin};
}
