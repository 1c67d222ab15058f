/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/local_rounds.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/data/sampler.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/replica_set.h"
#include "worker/strategy/round_pace.h"

#define RATE_DEFAULT 0.7
#define MOMENTUM_DEFAULT 0.9

/* The words that ranks exchange at the end of a round. From ROUND_VOTES on, each rank has one word, then one more for its longest step. */
enum round_word { ROUND_LOSS, ROUND_NORM, ROUND_CORRECT, ROUND_EXAMPLES, ROUND_STEPS, ROUND_VOTES };
#define ROUND_WORDS_MAX (ROUND_VOTES + 2 * CREW_SIZE_MAX)

/* The parameters, then the optimizer's slots. */
#define VECTORS_MAX (1 + OPTIMIZER_SLOTS_MAX)

struct local_rounds {
    struct strategy_options options;
    struct training_state *state; /* as of the last round's end, but for what `own` shares with it */
    struct training_state own;    /* the same arrays; its progress runs ahead within a round */
    int64_t steps;
    double rate, momentum;
    struct device_stream *stream;
    struct replica_set *replicas; /* this rank's devices: a crew of their own between two exchanges */
    unsigned shards, first, end;

    unsigned vector_count;
    float *vectors[VECTORS_MAX];  /* where the round goes on, in the state */
    float *start[VECTORS_MAX];    /* their values at its start */
    float *exchange[VECTORS_MAX]; /* what the ranks add up */
    enum device_memory place;     /* of these: the device's with `sums`, else shared memory */
    struct crew_communicator *devices;
    struct device_sums *sums;    /* NULL: over the group */
    struct strategy_device lone; /* for them */
    float *velocity;             /* LOCAL_ROUNDS_SLOT */
    float words[ROUND_WORDS_MAX];
    atomic_bool away; /* the vectors may be others than at the start */
};

/* ---------------------------------------------------------------- flat vectors */

static int64_t elements(const struct local_rounds *rounds)
{
    return rounds->state->layout.elements;
}

static void copy(struct local_rounds *rounds, const float *from, float *to)
{
    device_copy(rounds->stream,
                &(struct copy){.bytes = elements(rounds) * (int64_t)sizeof(float), .from = from, .to = to});
}

static void add(struct local_rounds *rounds, double factor, const float *x, float *y)
{
    device_axpy(rounds->stream, &(struct axpy){.count = elements(rounds), .factor = (float)factor, .x = x, .y = y});
}

static void scale(struct local_rounds *rounds, double factor, float *x)
{
    device_scale(rounds->stream, &(struct scale){.count = elements(rounds), .factor = (float)factor, .x = x});
}

/* ---------------------------------------------------------------- a step alone */

static int64_t own_examples(const struct local_rounds *rounds, int64_t batch)
{
    int64_t from, last;
    sampler_shard(batch, rounds->shards, rounds->first, &from);
    int64_t count = sampler_shard(batch, rounds->shards, rounds->end - 1, &last);
    return last + count - from;
}

/* Passes divide by the whole batch; here the mean is over this rank's own part. Its sum is in the first contribution, from which
 * replica_set_apply takes it. */
static int take_own_mean(struct local_rounds *rounds, double factor, float controls[CONTROL_VOTES], struct error *error)
{
    const float *sums = replica_set_controls(rounds->replicas)[0];
    if (replica_set_reduce(rounds->replicas, error) < 0 || replica_set_synchronise(rounds->replicas, error) < 0)
        return -1;
    scale(rounds, factor, (float *)replica_set_gradients(rounds->replicas)[0]);
    controls[CONTROL_LOSS] = sums[CONTROL_LOSS] * (float)factor;
    controls[CONTROL_CORRECT] = sums[CONTROL_CORRECT];
    controls[CONTROL_COUNT] = sums[CONTROL_COUNT] * (float)factor;
    return device_stream_synchronise(rounds->stream, error);
}

static int take_step(struct local_rounds *rounds, struct error *error)
{
    const struct strategy_options *options = &rounds->options;
    int64_t batch, step = rounds->own.progress.step + 1;
    float controls[CONTROL_VOTES];
    struct strategy_result result;
    if (options->crew.member != NULL)
        member_set_step(options->crew.member, step);
    if (replica_set_start_passes(rounds->replicas, &batch, error) < 0 ||
        replica_set_finish_passes(rounds->replicas, 0, 0, error) < 0)
        return -1;
    int64_t own = own_examples(rounds, batch);
    if (own == 0) { /* nothing is learnt from none: momentum and decay would go on with a gradient of 0 */
        replica_set_advance(rounds->replicas, step, false);
        return 0;
    }
    if (take_own_mean(rounds, (double)batch / (double)own, controls, error) < 0 ||
        replica_set_apply(rounds->replicas, options->calls.learning_rate(options->calls.context, step), controls, 0,
                          &result, error) < 0)
        return -1;
    rounds->words[ROUND_LOSS] += (float)(result.loss * (double)own);
    rounds->words[ROUND_CORRECT] += (float)result.correct;
    rounds->words[ROUND_EXAMPLES] += (float)own;
    rounds->words[ROUND_STEPS]++;
    rounds->words[ROUND_NORM] += (float)result.gradient_norm;
    return 0;
}

/* ---------------------------------------------------------------- a round */

/* The other devices learn here of what the crew, a checkpoint or a round that failed has made of the state. */
static int begin(struct local_rounds *rounds, struct error *error)
{
    rounds->own.progress = rounds->state->progress;
    strategy_hold_step(
        &rounds->options); /* the host's copy of the state is filled for the others, which a save reads */
    if (replica_set_spread(rounds->replicas, error) < 0)
        return -1;
    memset(rounds->words, 0, sizeof(rounds->words));
    for (unsigned i = 0; i < rounds->vector_count; i++)
        copy(rounds, rounds->vectors[i], rounds->start[i]);
    if (device_stream_synchronise(rounds->stream, error) < 0)
        return -1;
    atomic_store(&rounds->away, true);
    strategy_release_step(&rounds->options);
    return 0;
}

void local_rounds_rewind(struct local_rounds *rounds)
{
    struct training_state *state = rounds->state;
    if (!atomic_load(&rounds->away))
        return;
    state->parameters = rounds->start[0];
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        state->slots[i] = rounds->start[1 + i];
    if (state->host.stream != NULL)
        return;
    state->host.parameters = state->parameters;
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        state->host.slots[i] = state->slots[i];
}

/* Back to the start; only a device that has failed can prevent it, and then nothing of it is used again. */
static void roll_back(struct local_rounds *rounds)
{
    replica_set_settle(rounds->replicas);
    if (rounds->options.calls.before_change != NULL)
        rounds->options.calls.before_change(rounds->options.calls.context);
    for (unsigned i = 0; i < rounds->vector_count; i++)
        copy(rounds, rounds->start[i], rounds->vectors[i]);
    (void)device_stream_synchronise(rounds->stream, NULL);
}

/* How far this rank has gone, and its slots, each as often as it has seen examples. */
static int fill_exchange(struct local_rounds *rounds, struct error *error)
{
    copy(rounds, rounds->start[0], rounds->exchange[0]);
    add(rounds, -1, rounds->vectors[0], rounds->exchange[0]);
    for (unsigned i = 1; i < rounds->vector_count; i++)
        copy(rounds, rounds->vectors[i], rounds->exchange[i]);
    for (unsigned i = 0; i < rounds->vector_count; i++)
        scale(rounds, (double)rounds->words[ROUND_EXAMPLES], rounds->exchange[i]);
    return device_stream_synchronise(rounds->stream, error);
}

static unsigned round_words(unsigned size)
{
    return ROUND_VOTES + 2 * size;
}

static int add_up_on_devices(struct local_rounds *rounds, struct collective *group, unsigned size, struct error *error)
{
    const float *words = rounds->words;
    for (unsigned i = 0; i < rounds->vector_count; i++)
        if (device_sums_start_vector(rounds->sums, rounds->devices, rounds->exchange[i], error) < 0)
            return -1;
    if (collective_all_reduce(group, &words, rounds->words, round_words(size), error) < 0)
        return -1;
    return device_sums_wait(rounds->sums, rounds->devices, error);
}

static int add_up(struct local_rounds *rounds, struct collective *group, unsigned size, struct error *error)
{
    if (rounds->sums != NULL)
        return add_up_on_devices(rounds, group, size, error);
    collective_ticket tickets[VECTORS_MAX + 1];
    for (unsigned i = 0; i < rounds->vector_count; i++)
        tickets[i] = collective_all_reduce_start(group, (const float *const *)&rounds->exchange[i], rounds->exchange[i],
                                                 (size_t)elements(rounds));
    const float *words = rounds->words;
    tickets[rounds->vector_count] = collective_all_reduce_start(group, &words, rounds->words, round_words(size));
    for (unsigned i = 0; i <= rounds->vector_count; i++)
        if (collective_wait(group, tickets[i], error) < 0)
            return -1;
    return 0;
}

/* Running statistics are no variables of an optimizer: their mean is what the crew goes on with. */
static void average_statistics(struct local_rounds *rounds)
{
    int64_t count = rounds->state->layout.statistics;
    if (count == 0)
        return;
    device_copy(
        rounds->stream,
        &(struct copy){.bytes = count * (int64_t)sizeof(float), .from = rounds->start[0], .to = rounds->vectors[0]});
    device_axpy(rounds->stream,
                &(struct axpy){.count = count, .factor = -1, .x = rounds->exchange[0], .y = rounds->vectors[0]});
}

/* Nesterov as Sutskever et al. (2013) have it: v = momentum v + d, p = start - rate (d + momentum v), d the mean change. */
static int take_outer_step(struct local_rounds *rounds, struct error *error)
{
    double share = 1 / fmax(1, (double)rounds->words[ROUND_EXAMPLES]);
    scale(rounds, share, rounds->exchange[0]);
    scale(rounds, rounds->momentum, rounds->velocity);
    add(rounds, 1, rounds->exchange[0], rounds->velocity);
    copy(rounds, rounds->start[0], rounds->vectors[0]);
    add(rounds, -rounds->rate, rounds->exchange[0], rounds->vectors[0]);
    add(rounds, -rounds->rate * rounds->momentum, rounds->velocity, rounds->vectors[0]);
    average_statistics(rounds);
    for (unsigned i = 1; i < rounds->vector_count; i++) {
        copy(rounds, rounds->exchange[i], rounds->vectors[i]);
        scale(rounds, share, rounds->vectors[i]);
    }
    return device_stream_synchronise(rounds->stream, error);
}

static void read_words(const struct local_rounds *rounds, const struct world *world, struct strategy_result *result)
{
    const float *words = rounds->words;
    *result = (struct strategy_result){.step = rounds->own.progress.step,
                                       .examples = llrint((double)words[ROUND_EXAMPLES]),
                                       .loss = (double)words[ROUND_LOSS] / fmax(1, (double)words[ROUND_EXAMPLES]),
                                       .gradient_norm = (double)words[ROUND_NORM] / fmax(1, (double)words[ROUND_STEPS]),
                                       .correct = llrint((double)words[ROUND_CORRECT]),
                                       .own_steps = rounds->own.progress.step - rounds->state->progress.step};
    strategy_result_votes(result, words + ROUND_VOTES, world->size);
    strategy_result_longest(result, words + ROUND_VOTES + world->size, world->size);
}

/* This rank's, to `end`. */
static int take_steps(struct local_rounds *rounds, int64_t end, struct round_pace *pace, struct error *error)
{
    while (rounds->own.progress.step < end) {
        int64_t started_ns = clock_monotonic_ns();
        if (take_step(rounds, error) < 0)
            return -1;
        round_pace_add_step(pace, clock_monotonic_ns() - started_ns);
    }
    return 0;
}

static int run(struct local_rounds *rounds, struct collective *group, const struct world *world, unsigned votes,
               struct error *error)
{
    const struct strategy_options *options = &rounds->options;
    struct round_pace pace = {0};
    int64_t end = (rounds->own.progress.step / rounds->steps + 1) * rounds->steps;
    if (options->total_steps != NULL && end > *options->total_steps)
        end = *options->total_steps;
    if (take_steps(rounds, end, &pace, error) < 0)
        return -1;
    char label[48];
    snprintf(label, sizeof(label), "the round to step %lld", (long long)end);
    collective_set_label(group, label);
    round_pace_add_freeze(&pace, collective_take_frozen_ns(group) + crew_communicator_take_frozen_ns(rounds->devices));
    rounds->words[ROUND_VOTES + world->rank] = (float)strategy_vote_word(
        options->calls.votes != NULL ? options->calls.votes(options->calls.context) : votes, round_pace_mean_ns(&pace));
    rounds->words[ROUND_VOTES + world->size + world->rank] = (float)strategy_vote_word(0, pace.longest_ns);
    if (fill_exchange(rounds, error) < 0)
        return -1;
    return add_up(rounds, group, world->size, error);
}

int local_rounds_run(struct local_rounds *rounds, struct collective *group, const struct world *world, unsigned votes,
                     struct strategy_result *ret_result, int64_t *abandoned, struct error *error)
{
    if (begin(rounds, error) < 0)
        return -1;
    if (run(rounds, group, world, votes, error) < 0) {
        *abandoned = rounds->own.progress.step - rounds->state->progress.step;
        roll_back(rounds);
        atomic_store(&rounds->away, false);
        return -1;
    }
    strategy_leave_boundary(&rounds->options); /* a rank without examples has changed nothing before */
    if (take_outer_step(rounds, error) < 0)
        return -1;
    read_words(rounds, world, ret_result);
    rounds->state->progress = rounds->own.progress;
    atomic_store(&rounds->away, false);
    return 0;
}

int64_t local_rounds_begin(const struct local_rounds *rounds, int64_t step)
{
    return step > 0 ? (step - 1) / rounds->steps * rounds->steps : 0;
}

/* ---------------------------------------------------------------- life cycle */

/* Options for the steps within a round, in which no other rank takes part: boundaries of the state are the rounds', and the rank's
 * devices need not sum by NCCL. */
static struct strategy_options options_alone(struct local_rounds *rounds)
{
    struct strategy_options options = rounds->options;
    options.state = &rounds->own;
    options.crew.member = NULL;
    options.calls.leaves_boundary = options.calls.at_boundary = NULL;
    if (options.crew.collective == COLLECTIVE_NCCL)
        options.crew.collective = COLLECTIVE_AUTO;
    return options;
}

int local_rounds_fit(struct local_rounds *rounds, unsigned shards, unsigned first, unsigned end, struct error *error)
{
    const struct strategy_options options = options_alone(rounds);
    replica_set_free(rounds->replicas);
    rounds->replicas = NULL;
    rounds->shards = shards;
    rounds->first = first;
    rounds->end = end;
    return replica_set_new(&options, VARIABLES_MIRRORED, shards, first, end, &rounds->replicas, error);
}

static int allocate(struct local_rounds *rounds, enum device_memory kind, float **ret_vector, struct error *error)
{
    void *memory;
    if (device_allocate(rounds->options.device, kind, (size_t)elements(rounds) * sizeof(float), &memory, error) < 0)
        return error_wrap(error, "local steps");
    *ret_vector = memory;
    return 0;
}

static int place_exchange(struct local_rounds *rounds, enum device_memory place, struct error *error)
{
    for (unsigned i = 0; i < rounds->vector_count; i++) {
        if (rounds->exchange[i] != NULL && rounds->place == place)
            continue;
        device_free(rounds->options.device, rounds->exchange[i]);
        rounds->exchange[i] = NULL;
        if (allocate(rounds, place, &rounds->exchange[i], error) < 0)
            return -1;
    }
    rounds->place = place;
    return 0;
}

static int allocate_all(struct local_rounds *rounds, struct error *error)
{
    if (device_stream_new(rounds->options.device, &rounds->stream, error) < 0)
        return -1;
    for (unsigned i = 0; i < rounds->vector_count; i++)
        if (allocate(rounds, MEMORY_DEVICE, &rounds->start[i], error) < 0)
            return -1;
    return place_exchange(rounds, MEMORY_SHARED, error);
}

int local_rounds_join(struct local_rounds *rounds, struct crew_communicator *devices, const struct world *world,
                      struct error *error)
{
    bool there = crew_communicator_is_there(devices);
    device_sums_free(rounds->sums);
    rounds->sums = NULL;
    rounds->devices = devices;
    rounds->lone = (struct strategy_device){rounds->options.device, rounds->options.graph};
    const struct device_sums_options sums = {.devices = &rounds->lone,
                                             .device_count = 1,
                                             .rank = world->rank,
                                             .size = world->size,
                                             .shards = world->size,
                                             .elements = elements(rounds),
                                             .in_any_order = rounds->options.sums.in_any_order};
    if (place_exchange(rounds, there ? MEMORY_DEVICE : MEMORY_SHARED, error) < 0)
        return -1;
    return there ? device_sums_new(&sums, &rounds->sums, error) : 0;
}

int local_rounds_settle(struct local_rounds *rounds, struct error *error)
{
    return rounds == NULL ? 0 : device_sums_settle(rounds->sums, error);
}

static double given_or(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

int local_rounds_new(const struct strategy_options *options, struct local_rounds **ret_rounds, struct error *error)
{
    struct training_state *state = options->state;
    struct local_rounds *rounds = memory_allocate(1, sizeof(*rounds));
    *rounds = (struct local_rounds){.options = *options,
                                    .state = state,
                                    .own = *state,
                                    .steps = options->spec->local_steps,
                                    .rate = given_or(options->spec->outer_learning_rate, RATE_DEFAULT),
                                    .momentum = given_or(options->spec->outer_momentum, MOMENTUM_DEFAULT),
                                    .vector_count = 1 + state->optimizer_slots,
                                    .vectors = {state->parameters},
                                    .velocity = state->slots[state->slot_count - 1]};
    rounds->own.slot_count = state->optimizer_slots; /* the velocity is no business of the optimizer */
    rounds->own.slots[state->optimizer_slots] = NULL;
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        rounds->vectors[1 + i] = state->slots[i];
    if (allocate_all(rounds, error) < 0) {
        local_rounds_free(rounds);
        return -1;
    }
    *ret_rounds = rounds;
    return 0;
}

/* Two copies of each vector that is averaged: as the round began, and as it is exchanged, by the host before there are others to
 * exchange it with. The outer velocity is the state's. */
void local_rounds_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    int64_t vectors = 1 + optimizer_slot_count(options->optimizer);
    int64_t bytes = vectors * graph_layout(options->graph)->elements * (int64_t)sizeof(float);
    memory_plans_of(plans, options->device)->bytes[MEMORY_EXCHANGE] += bytes;
    plans->host.bytes[MEMORY_EXCHANGE] += bytes;
    if (device_memory_is_shared(options->device))
        return;
    plans->device.bytes[MEMORY_STREAMS] += device_stream_bytes(options->device);
    if (options->sums.communicator != NULL)
        plans->device.bytes[MEMORY_EXCHANGE] += bytes;
}

void local_rounds_free(struct local_rounds *rounds)
{
    if (rounds == NULL)
        return;
    device_sums_free(rounds->sums);
    replica_set_free(rounds->replicas);
    if (rounds->stream != NULL)
        device_stream_free(rounds->stream);
    for (unsigned i = 0; i < rounds->vector_count; i++) {
        device_free(rounds->options.device, rounds->start[i]);
        device_free(rounds->options.device, rounds->exchange[i]);
    }
    free(rounds);
}
