/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <criterion/criterion.h>

#define MS 1000000

static int64_t own, others;
static struct stragglers *stragglers;

static void open_for(unsigned count)
{
    stragglers = stragglers_new(count, NULL);
}

static void close_all(void)
{
    if (stragglers)
        stragglers_free(stragglers);
}

TestSuite(stragglers, .fini = close_all);

/* A step of three members, the last of which takes `ns`: what changes for it. */
static enum straggler_change step(int64_t ns)
{
    cr_assert(stragglers_add(stragglers, 0, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    cr_assert(stragglers_add(stragglers, 1, 12 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    return stragglers_add(stragglers, 2, ns, &own, &others);
}

Test(stragglers, one_that_is_ten_times_slower_is_named_within_a_few_steps_once)
{
    open_for(3);
    unsigned named = 0, after = 0;
    for (unsigned i = 0; i < 30; i++)
        cr_assert(step(11 * MS) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 1; i <= 20; i++)
        if (step(110 * MS) == STRAGGLER_IS_SLOW) {
            named++;
            after = i;
        }
    cr_expect(named == 1 && after <= 10, "named %u times, after %u steps", named, after);
    unsigned well = 0;
    for (unsigned i = 0; i < 20; i++)
        well += step(11 * MS) == STRAGGLER_KEEPS_UP;
    cr_expect(well == 1 && own < 15 * MS && others == 10 * MS);
}

Test(stragglers, one_slow_step_or_a_small_difference_names_nobody)
{
    open_for(2);
    for (unsigned i = 0; i < 50; i++) {
        cr_expect(stragglers_add(stragglers, 0, 1 * MS / 4, &own, &others) == STRAGGLER_AS_BEFORE);
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE, "0.75 ms");
    }
    cr_expect(stragglers_add(stragglers, 1, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
}

Test(stragglers, a_successor_begins_anew)
{
    open_for(3);
    for (unsigned i = 0; i < 3; i++)
        step(110 * MS);
    stragglers_forget(stragglers, 2);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(step(11 * MS) == STRAGGLER_AS_BEFORE);
}

Test(stragglers, the_one_that_was_found_first_stays_as_long_as_it_is_slow)
{
    struct straggler found;
    open_for(5);
    cr_assert_not(stragglers_find(stragglers, &found));
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned member = 0; member < 3; member++)
            stragglers_add(stragglers, member, 10 * MS, &own, &others);
        stragglers_add(stragglers, 3, i < 30 ? 100 * MS : 10 * MS, &own, &others);
        stragglers_add(stragglers, 4, i < 10 ? 10 * MS : 300 * MS, &own, &others);
        if (i == 9 || i == 25)
            cr_expect(stragglers_find(stragglers, &found) && found.member == 3, "step %u: member %u", i, found.member);
    }
    stragglers_forget(stragglers, 3);
    cr_assert(stragglers_find(stragglers, &found));
    cr_expect(found.member == 4 && found.own_ns == 300 * MS && found.due_ns == 10 * MS);
    stragglers_forget(stragglers, 4);
    cr_expect_not(stragglers_find(stragglers, &found));
}

#define ROUND 20 /* steps between two meetings */

/* A round of two members, the second of which takes `ns` in each step and `more` in one of them: what changes for it. */
static enum straggler_change meet(int64_t ns, int64_t more)
{
    int64_t usual = 10 * MS;
    cr_assert(stragglers_add_steps(stragglers, 0, ROUND, usual, usual, &own, &others) == STRAGGLER_AS_BEFORE);
    return stragglers_add_steps(stragglers, 1, ROUND, ns, ns + more, &own, &others);
}

Test(stragglers, with_local_steps_one_is_named_when_they_next_meet)
{
    open_for(2);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(meet(11 * MS, 0) == STRAGGLER_AS_BEFORE);
    cr_expect(meet(100 * MS, 0) == STRAGGLER_IS_SLOW);
    cr_expect(own == 100 * MS && others == 10 * MS, "%lld, %lld: not those of a step", (long long)own,
              (long long)others);
    cr_expect(meet(11 * MS, 0) == STRAGGLER_KEEPS_UP);
}

Test(stragglers, one_slow_step_of_a_round_names_nobody)
{
    open_for(2);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(meet(11 * MS, i == 5 ? 2000 * MS : 0) == STRAGGLER_AS_BEFORE);
}

/* ---- on random times: members take `usual` milliseconds for a step, multiplied by `load` */

#define MEMBERS_MAX 6
#define STEPS 400

struct scene {
    unsigned count;
    const double *usual;
    const unsigned *kin;
    double noise; /* relative; each part takes up to this much more or less time */
    double (*load)(unsigned member, unsigned step);
};

struct outcome {
    unsigned named[MEMBERS_MAX], again[MEMBERS_MAX];       /* how often */
    unsigned named_at[MEMBERS_MAX], again_at[MEMBERS_MAX]; /* the last time */
};

static double draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 24) * 2 - 1;
}

static void note(struct outcome *outcome, unsigned member, unsigned step, enum straggler_change change)
{
    outcome->named[member] += change == STRAGGLER_IS_SLOW;
    outcome->again[member] += change == STRAGGLER_KEEPS_UP;
    if (change == STRAGGLER_IS_SLOW)
        outcome->named_at[member] = step;
    if (change == STRAGGLER_KEEPS_UP)
        outcome->again_at[member] = step;
}

static struct outcome play(const struct scene *scene, unsigned seed)
{
    struct stragglers *crew = stragglers_new(scene->count, scene->kin);
    struct outcome outcome = {{0}, {0}, {0}, {0}};
    for (unsigned step = 1; step <= STEPS; step++)
        for (unsigned member = 0; member < scene->count; member++) {
            int64_t took, due;
            double ms = scene->usual[member] * (1 + scene->noise * draw(&seed)) * scene->load(member, step);
            note(&outcome, member, step, stragglers_add(crew, member, (int64_t)(ms * MS), &took, &due));
        }
    stragglers_free(crew);
    return outcome;
}

static const double equal[] = {20, 20, 20, 20}, stages[] = {5, 60, 12, 31};
static const unsigned apart[] = {0, 1, 2, 3}, twins[] = {0, 1, 0, 1};

/* Workers of equal parts, a pipeline of four stages, and two replicas of two stages. */
static const struct scene crews[] = {{.count = 4, .usual = equal},
                                     {.count = 4, .usual = stages, .kin = apart},
                                     {.count = 4, .usual = (const double[]){5, 60, 5, 60}, .kin = twins}};
#define CREWS (sizeof crews / sizeof *crews)
#define SEEDS 20

static struct outcome play_crew(unsigned crew, double noise, double (*load)(unsigned, unsigned), unsigned seed)
{
    struct scene scene = crews[crew];
    scene.noise = noise;
    scene.load = load;
    return play(&scene, seed);
}

static unsigned total(const unsigned *counts)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < MEMBERS_MAX; i++)
        sum += counts[i];
    return sum;
}

static double nothing(unsigned member, unsigned step)
{
    (void)member, (void)step;
    return 1;
}

#define ALL MEMBERS_MAX
#define FOR_EVER (STEPS + 1)
#define ANY 99

/* Each one alone, or all, takes `factor` times its time in one step of `every`: how often it is named, and keeps up again, each
 * time within 20 steps. Nobody else is named. */
static const struct slowness {
    const char *name;
    unsigned member, from, until, every;
    double factor, noise;
    unsigned first_seed, last_seed, least, most, again;
} slownesses[] = {
    {"times differ by a factor of two from step to step", ALL, 0, 0, 1, 1, 0.4, 1, SEEDS, 0, 0, 0},
    {"one is slow for a while", 1, 100, 200, 1, 10, 0.4, 1, SEEDS, 1, 1, 1},
    {"in bursts, a tenth of its time: one part waits for all", 1, 100, FOR_EVER, 3, 28, 0.2, 1, SEEDS, 1, STEPS, ANY},
    {"its processor is lent out for good, half a second at a time", 1, 100, FOR_EVER, 6, 45, 0.2, 1, SEEDS, 1, 1, 0},
    {"all slow down", ALL, 100, 200, 1, 10, 0.3, 1, SEEDS, 0, 0, 0},
    {"one part of fifty: a page fault, a checkpoint", 1, 101, FOR_EVER, 50, 6, 0.2, 1, SEEDS, 0, 0, 0},
    {"its work has grown: it stays named while it is slow", 1, 100, FOR_EVER, 1, 3, 0.2, 3, 3, 1, 1, 0},
};
static const struct slowness *slowness;

static double slowed(unsigned member, unsigned step)
{
    bool is_slow = (slowness->member == ALL || slowness->member == member) && step >= slowness->from &&
                   step < slowness->until && step % slowness->every == 0;
    return is_slow ? slowness->factor : 1;
}

static void expect_named_in_time(unsigned crew, unsigned seed)
{
    struct outcome outcome = play_crew(crew, slowness->noise, slowed, seed);
    unsigned named = outcome.named[1], again = outcome.again[1];
    cr_expect(named >= slowness->least && named <= slowness->most && total(outcome.named) == named,
              "%s: crew %u, seed %u: %u of %u", slowness->name, crew, seed, named, total(outcome.named));
    cr_expect(slowness->again == ANY || again == slowness->again, "%s: crew %u, seed %u: %u times again",
              slowness->name, crew, seed, again);
    if (slowness->most == 1 && slowness->factor >= 10)
        cr_expect(outcome.named_at[1] >= slowness->from && outcome.named_at[1] < slowness->from + 20,
                  "%s: crew %u: step %u", slowness->name, crew, outcome.named_at[1]);
    if (slowness->again == 1)
        cr_expect(outcome.again_at[1] >= slowness->until && outcome.again_at[1] < slowness->until + 20,
                  "%s: crew %u: again in step %u", slowness->name, crew, outcome.again_at[1]);
}

Test(stragglers, those_that_are_slow_and_no_others_are_named_in_any_crew)
{
    for (slowness = slownesses; slowness < slownesses + sizeof slownesses / sizeof *slownesses; slowness++)
        for (unsigned crew = 0; crew < CREWS; crew++)
            for (unsigned seed = slowness->first_seed; seed <= slowness->last_seed; seed++)
                expect_named_in_time(crew, seed);
}

static const double brief[] = {1, 1, 1, 1};

/* A processor of a busy machine, lent to others for 10 ms: of steps of a millisecond many have one such. */
static double lent_out(unsigned member, unsigned step)
{
    return (step * 7 + member * 3) % 5 == 0 ? 10 : 1;
}

Test(stragglers, steps_of_a_millisecond_name_nobody_on_a_busy_machine)
{
    struct scene scene = {.count = 4, .usual = brief, .noise = 0.3, .load = lent_out};
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        cr_expect_eq(total(play(&scene, seed).named), 0, "seed %u", seed);
}

/* Slow for 20 steps of 40, ever again. */
static double on_and_off(unsigned member, unsigned step)
{
    return member == 1 && step % 40 < 20 ? 10 : 1;
}

Test(stragglers, a_repeated_straggler_is_reported_at_doubling_counts)
{
    struct outcome outcome = play_crew(0, 0.2, on_and_off, 1);
    cr_expect(outcome.named[1] == 4 && total(outcome.named) == 4, "told %u times of %d", outcome.named[1], STEPS / 40);
    cr_expect_eq(outcome.again[1], 4);
}

/* Slow for a moment twice; the third time is not told of at once, and has no end. */
Test(stragglers, a_member_that_was_briefly_slow_and_then_stays_slow_is_reported)
{
    open_for(3);
    for (unsigned times = 1; times <= 2; times++) {
        unsigned told = 0;
        for (unsigned i = 0; i < 10; i++)
            told += step(110 * MS) == STRAGGLER_IS_SLOW;
        cr_assert_eq(told, 1);
        for (unsigned i = 0; i < 20; i++)
            step(11 * MS);
    }
    unsigned told = 0;
    for (unsigned i = 0; i < 200; i++)
        told += step(110 * MS) == STRAGGLER_IS_SLOW;
    cr_expect_eq(told, 1);
    cr_expect_str_eq(stragglers_again(stragglers, 2), ", named 3 times");
}

/* The same one at a time: how often it was. */
Test(stragglers, a_line_says_how_often_it_was)
{
    open_for(3);
    cr_expect_str_empty(stragglers_again(stragglers, 2));
    for (unsigned times = 1; times <= 2; times++) {
        enum straggler_change change = STRAGGLER_AS_BEFORE;
        for (unsigned i = 0; i < 20 && change != STRAGGLER_IS_SLOW; i++)
            change = step(110 * MS);
        cr_expect_eq(change, STRAGGLER_IS_SLOW);
        cr_expect_str_eq(stragglers_again(stragglers, 2), times == 1 ? "" : ", named 2 times");
        for (unsigned i = 0; i < 20; i++)
            step(11 * MS);
    }
}

/* A stage may take a twelfth of another's time without being a straggler. If the stages' kinds are unknown, the slowest is named. */
Test(stragglers, unequal_stages_are_not_held_against_each_other)
{
    struct scene scene = {.count = 4, .usual = stages, .load = nothing};
    cr_expect_gt(total(play(&scene, 1).named), 0);
    scene.kin = apart;
    cr_expect_eq(total(play(&scene, 1).named), 0);
}

static double slow_from_the_start(unsigned member, unsigned step)
{
    (void)step;
    return member == 1 ? 10 : 1;
}

/* Its twin in the other replica shows it; a stage without one has no past to be held against. */
Test(stragglers, a_stage_that_was_never_faster_is_named_by_its_twin_alone)
{
    cr_expect_eq(play_crew(2, 0.2, slow_from_the_start, 1).named[1], 1);
    cr_expect_eq(total(play_crew(1, 0.2, slow_from_the_start, 1).named), 0);
}

Test(stragglers, what_was_not_measured_says_nothing)
{
    open_for(2);
    int64_t took, due;
    for (int i = 0; i < 20; i++) {
        cr_expect(stragglers_add(stragglers, 0, 0, &took, &due) == STRAGGLER_AS_BEFORE);
        cr_expect(stragglers_add(stragglers, 1, 50 * MS, &took, &due) == STRAGGLER_AS_BEFORE);
    }
}
