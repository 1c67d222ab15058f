/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <criterion/criterion.h>

#define MS 1000000

static int64_t own, others;

/* A step of three members, the last of which takes `ns`: what changes for it. */
static enum straggler_change step(struct stragglers *stragglers, int64_t ns)
{
    cr_assert(stragglers_add(stragglers, 0, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    cr_assert(stragglers_add(stragglers, 1, 12 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    return stragglers_add(stragglers, 2, ns, &own, &others);
}

Test(stragglers, one_that_is_ten_times_slower_is_named_within_a_few_steps_once)
{
    struct stragglers *stragglers = stragglers_new(3, NULL);
    unsigned named = 0, after = 0;
    for (unsigned i = 0; i < 30; i++)
        cr_assert(step(stragglers, 11 * MS) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 1; i <= 20; i++)
        if (step(stragglers, 110 * MS) == STRAGGLER_IS_SLOW) {
            named++;
            after = i;
        }
    cr_expect(named == 1 && after <= 10, "named %u times, after %u steps", named, after);
    unsigned well = 0;
    for (unsigned i = 0; i < 20; i++)
        well += step(stragglers, 11 * MS) == STRAGGLER_KEEPS_UP;
    cr_expect(well == 1 && own < 15 * MS && others == 10 * MS);
    stragglers_free(stragglers);
}

Test(stragglers, one_slow_step_or_a_small_difference_names_nobody)
{
    struct stragglers *stragglers = stragglers_new(2, NULL);
    for (unsigned i = 0; i < 50; i++) {
        cr_expect(stragglers_add(stragglers, 0, 1 * MS / 4, &own, &others) == STRAGGLER_AS_BEFORE);
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE, "0.75 ms");
    }
    cr_expect(stragglers_add(stragglers, 1, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    stragglers_free(stragglers);
}

Test(stragglers, a_successor_begins_anew)
{
    struct stragglers *stragglers = stragglers_new(3, NULL);
    for (unsigned i = 0; i < 3; i++)
        step(stragglers, 110 * MS);
    stragglers_forget(stragglers, 2);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(step(stragglers, 11 * MS) == STRAGGLER_AS_BEFORE);
    stragglers_free(stragglers);
}

#define ROUND 20 /* steps between two meetings */

/* A round of two members, the second of which takes `ns` in each step and `more` in one of them: what changes for it. */
static enum straggler_change meet(struct stragglers *stragglers, int64_t ns, int64_t more)
{
    int64_t usual = 10 * MS;
    cr_assert(stragglers_add_steps(stragglers, 0, ROUND, usual, usual, &own, &others) == STRAGGLER_AS_BEFORE);
    return stragglers_add_steps(stragglers, 1, ROUND, ns, ns + more, &own, &others);
}

Test(stragglers, with_local_steps_one_is_named_when_they_next_meet)
{
    struct stragglers *stragglers = stragglers_new(2, NULL);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(meet(stragglers, 11 * MS, 0) == STRAGGLER_AS_BEFORE);
    cr_expect(meet(stragglers, 100 * MS, 0) == STRAGGLER_IS_SLOW);
    cr_expect(own == 100 * MS && others == 10 * MS, "%lld, %lld: not those of a step", (long long)own,
              (long long)others);
    cr_expect(meet(stragglers, 11 * MS, 0) == STRAGGLER_KEEPS_UP);
    stragglers_free(stragglers);
}

Test(stragglers, one_slow_step_of_a_round_names_nobody)
{
    struct stragglers *stragglers = stragglers_new(2, NULL);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(meet(stragglers, 11 * MS, i == 5 ? 2000 * MS : 0) == STRAGGLER_AS_BEFORE);
    stragglers_free(stragglers);
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
    struct stragglers *stragglers = stragglers_new(scene->count, scene->kin);
    struct outcome outcome = {{0}, {0}, {0}, {0}};
    for (unsigned step = 1; step <= STEPS; step++)
        for (unsigned member = 0; member < scene->count; member++) {
            int64_t took, due;
            double ms = scene->usual[member] * (1 + scene->noise * draw(&seed)) * scene->load(member, step);
            note(&outcome, member, step, stragglers_add(stragglers, member, (int64_t)(ms * MS), &took, &due));
        }
    stragglers_free(stragglers);
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

/* Times differ by a factor of two from one step to the next. */
Test(stragglers, noise_names_nobody)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.4, nothing, seed);
            cr_expect_eq(total(outcome.named), 0, "crew %u, seed %u", crew, seed);
        }
}

#define SLOW_FROM 100
#define SLOW_UNTIL 200

static double one_slow(unsigned member, unsigned step)
{
    return member == 1 && step >= SLOW_FROM && step < SLOW_UNTIL ? 10 : 1;
}

Test(stragglers, one_of_any_crew_is_named_within_20_steps_and_when_it_keeps_up_again)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.4, one_slow, seed);
            cr_expect(outcome.named[1] == 1 && total(outcome.named) == 1, "crew %u, seed %u: %u of %u", crew, seed,
                      outcome.named[1], total(outcome.named));
            cr_expect(outcome.named_at[1] >= SLOW_FROM && outcome.named_at[1] < SLOW_FROM + 20, "crew %u: step %u",
                      crew, outcome.named_at[1]);
            cr_expect(outcome.again[1] == 1 && outcome.again_at[1] >= SLOW_UNTIL &&
                          outcome.again_at[1] < SLOW_UNTIL + 20,
                      "crew %u: step %u", crew, outcome.again_at[1]);
        }
}

/* A tenth of its time, in bursts: some parts as ever, then one that waits for all. */
static double in_bursts(unsigned member, unsigned step)
{
    if (member != 1 || step < SLOW_FROM)
        return 1;
    return step % 3 == 0 ? 28 : 1;
}

Test(stragglers, one_that_is_slow_in_bursts_is_named_within_20_steps)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.2, in_bursts, seed);
            cr_expect(outcome.named[1] >= 1 && total(outcome.named) == outcome.named[1], "crew %u, seed %u", crew,
                      seed);
        }
}

/* Its processor is lent out for good, half a second at a time: each time its steps are by themselves again, as many as fit. */
static double in_long_bursts(unsigned member, unsigned step)
{
    if (member != 1 || step < SLOW_FROM)
        return 1;
    return step % 6 == 0 ? 45 : 1;
}

Test(stragglers, one_that_stands_still_now_and_then_is_named_within_20_steps_and_once)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.2, in_long_bursts, seed);
            cr_expect(outcome.named[1] == 1 && total(outcome.named) == 1 && outcome.again[1] == 0,
                      "crew %u, seed %u: %u of %u, %u times well", crew, seed, outcome.named[1], total(outcome.named),
                      outcome.again[1]);
            cr_expect(outcome.named_at[1] >= SLOW_FROM && outcome.named_at[1] < SLOW_FROM + 20, "crew %u: step %u",
                      crew, outcome.named_at[1]);
        }
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
    struct stragglers *stragglers = stragglers_new(3, NULL);
    for (unsigned times = 1; times <= 2; times++) {
        unsigned told = 0;
        for (unsigned i = 0; i < 10; i++)
            told += step(stragglers, 110 * MS) == STRAGGLER_IS_SLOW;
        cr_assert_eq(told, 1);
        for (unsigned i = 0; i < 20; i++)
            step(stragglers, 11 * MS);
    }
    unsigned told = 0;
    for (unsigned i = 0; i < 200; i++)
        told += step(stragglers, 110 * MS) == STRAGGLER_IS_SLOW;
    cr_expect_eq(told, 1);
    cr_expect_str_eq(stragglers_again(stragglers, 2), ", named 3 times");
    stragglers_free(stragglers);
}

/* The same one at a time: how often it was. */
Test(stragglers, a_line_says_how_often_it_was)
{
    struct stragglers *stragglers = stragglers_new(3, NULL);
    cr_expect_str_empty(stragglers_again(stragglers, 2));
    for (unsigned times = 1; times <= 2; times++) {
        enum straggler_change change = STRAGGLER_AS_BEFORE;
        for (unsigned i = 0; i < 20 && change != STRAGGLER_IS_SLOW; i++)
            change = step(stragglers, 110 * MS);
        cr_expect_eq(change, STRAGGLER_IS_SLOW);
        cr_expect_str_eq(stragglers_again(stragglers, 2), times == 1 ? "" : ", named 2 times");
        for (unsigned i = 0; i < 20; i++)
            step(stragglers, 11 * MS);
    }
    stragglers_free(stragglers);
}

static double all_slow(unsigned member, unsigned step)
{
    (void)member;
    return step >= SLOW_FROM && step < SLOW_UNTIL ? 10 : 1;
}

Test(stragglers, where_all_slow_down_nobody_is_named)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.3, all_slow, seed);
            cr_expect_eq(total(outcome.named), 0, "crew %u, seed %u", crew, seed);
        }
}

static double a_spell(unsigned member, unsigned step)
{
    return member == 1 && step % 50 == 0 && step > SLOW_FROM ? 6 : 1;
}

/* One part of fifty: a page fault, a checkpoint. */
Test(stragglers, a_short_slow_spell_names_nobody)
{
    for (unsigned crew = 0; crew < CREWS; crew++)
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            struct outcome outcome = play_crew(crew, 0.2, a_spell, seed);
            cr_expect_eq(total(outcome.named), 0, "crew %u, seed %u", crew, seed);
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

/* Its work has grown for good: that is usual one day, but a straggler stays named while it is one. */
static double slow_for_good(unsigned member, unsigned step)
{
    return member == 1 && step >= SLOW_FROM ? 3 : 1;
}

Test(stragglers, a_straggler_stays_named)
{
    for (unsigned crew = 0; crew < CREWS; crew++) {
        struct outcome outcome = play_crew(crew, 0.2, slow_for_good, 3);
        cr_expect(outcome.named[1] == 1 && outcome.again[1] == 0, "crew %u: %u, %u", crew, outcome.named[1],
                  outcome.again[1]);
    }
}

Test(stragglers, what_was_not_measured_says_nothing)
{
    struct stragglers *stragglers = stragglers_new(2, NULL);
    int64_t took, due;
    for (int i = 0; i < 20; i++) {
        cr_expect(stragglers_add(stragglers, 0, 0, &took, &due) == STRAGGLER_AS_BEFORE);
        cr_expect(stragglers_add(stragglers, 1, 50 * MS, &took, &due) == STRAGGLER_AS_BEFORE);
    }
    stragglers_free(stragglers);
}
