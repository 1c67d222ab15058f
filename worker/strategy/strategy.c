/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/strategy.h"

#include <math.h>
#include <string.h>

#include "common/subnormals.h"
#include "worker/device/loss_scale.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/preflight.h"
#include "worker/strategy/strategy_table.h"

static const struct strategy_operations *const table[] = {
    &one_device_strategy, &mirrored_strategy,     &central_storage_strategy, &multi_worker_mirrored_strategy,
    &pipeline_strategy,   &peer_to_peer_strategy,
};

/* A crew of one needs no crew. */
static enum strategy_type effective_type(const struct strategy_options *options, bool in_crew)
{
    bool alone = options->type == STRATEGY_PEER_TO_PEER || options->type == STRATEGY_MULTI_WORKER_MIRRORED;
    if (!alone || in_crew)
        return options->type;
    return options->device_count > 1 ? STRATEGY_MIRRORED : STRATEGY_ONE_DEVICE;
}

static const struct strategy_operations *find_operations(enum strategy_type type)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i]->type == type)
            return table[i];
    return NULL;
}

bool strategy_makes_state(enum strategy_type type, unsigned crew_size, const struct device *device,
                          unsigned device_count)
{
    return type == STRATEGY_PIPELINE && (crew_size > 1 || (device_count > 1 && !device_memory_is_shared(device)));
}

void strategy_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    const struct strategy_operations *operations = find_operations(effective_type(options, options->crew.size > 1));
    if (operations != NULL && operations->memory_plan != NULL)
        operations->memory_plan(options, plans);
}

static void count_vote(struct strategy_result *result, unsigned rank, unsigned votes)
{
    bool saves = (votes & STRATEGY_VOTE_CHECKPOINT) != 0;
    result->leaves[rank] = (votes & STRATEGY_VOTE_LEAVE) != 0;
    result->leaving += result->leaves[rank];
    if (rank == 0)
        result->checkpoint = saves;
    else if (result->checkpoint && !saves) {
        result->checkpoint = false;
        result->checkpoint_held_by = rank;
    }
    result->reform |= (votes & STRATEGY_VOTE_REFORM) != 0;
}

#define OWN_UNIT_NS 100000
#define OWN_UNITS_MAX ((1 << (24 - STRATEGY_VOTE_BITS)) - 1)

unsigned strategy_vote_word(unsigned votes, int64_t own_ns)
{
    int64_t units = (own_ns + OWN_UNIT_NS - 1) / OWN_UNIT_NS; /* 0 is for what was not measured */
    return votes | (unsigned)(units < OWN_UNITS_MAX ? units : OWN_UNITS_MAX) << STRATEGY_VOTE_BITS;
}

static int64_t word_ns(unsigned word)
{
    return (int64_t)(word >> STRATEGY_VOTE_BITS) * OWN_UNIT_NS;
}

void strategy_result_votes(struct strategy_result *result, const float *words, unsigned size)
{
    for (unsigned rank = 0; rank < size; rank++) {
        unsigned word = (unsigned)words[rank];
        count_vote(result, rank, word & ((1 << STRATEGY_VOTE_BITS) - 1));
        result->own_ns[rank] = word_ns(word);
    }
}

void strategy_result_longest(struct strategy_result *result, const float *words, unsigned size)
{
    for (unsigned rank = 0; rank < size; rank++)
        result->longest_ns[rank] = word_ns((unsigned)words[rank]);
}

double strategy_loss_scale(const struct strategy_options *options)
{
    return loss_scaling_factor(&options->state->progress.scaling, graph_precision(options->graph));
}

float strategy_loss_scale_for_passes(const struct strategy_options *options)
{
    return loss_scaling_for_begin_step(&options->state->progress.scaling, graph_precision(options->graph));
}

/* Ranks that learn of the step later get only the norm, so the norm must say that the step was skipped. */
static int judge_scaled(const struct strategy_options *options, struct strategy_result *result, struct error *error)
{
    if (isfinite(result->gradient_norm))
        result->gradient_norm = NAN;
    result->skipped = true;
    if (strategy_loss_scale(options) > LOSS_SCALE_LEAST)
        return 0;
    return error_set(
        error, ERROR_NOT_FINITE,
        "step %lld has loss %g and gradient norm %g although the loss scale is at its minimum: the layers' outputs "
        "exceed float16 (65504); set training.precision to BFloat16, or lower "
        "training.optimizer.learningRate",
        (long long)result->step, fabs(result->loss), fabs(result->gradient_norm));
}

int strategy_judge(const struct strategy_options *options, struct strategy_result *result, struct error *error)
{
    result->skipped = false;
    if (isfinite(result->loss) && isfinite(result->gradient_norm))
        return 0;
    if (graph_precision(options->graph) == PRECISION_FLOAT16)
        return judge_scaled(options, result, error);
    bool loss_is_finite = isfinite(result->loss);
    return error_set(error, ERROR_NOT_FINITE,
                     "the %s of step %lld is %g; lower training.optimizer.learningRate, lengthen the warm-up or set "
                     "training.gradientClipNorm",
                     loss_is_finite ? "gradient norm" : "loss", (long long)result->step,
                     fabs(loss_is_finite ? result->gradient_norm : result->loss)); /* nan, not -nan */
}

int strategy_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    subnormals_flush(); /* this thread and the collectives' sum what the device computes */
    const struct strategy_operations *operations =
        find_operations(effective_type(options, options->crew.member != NULL));
    struct strategy *strategy;
    if (operations == NULL)
        return error_set(error, ERROR_UNSUPPORTED,
                         "internal error: strategy %s is not one that a trainer can open; please report it",
                         strategy_type_name(options->type));
    if (operations->open(options, &strategy, error) < 0)
        return -1;
    strategy->operations = operations;
    *ret_strategy = strategy;
    return 0;
}

void strategy_close(struct strategy *strategy)
{
    if (strategy != NULL)
        strategy->operations->close(strategy);
}

void strategy_hold_step(const struct strategy_options *options)
{
    if (options->calls.leaves_boundary)
        options->calls.leaves_boundary(options->calls.context);
}

void strategy_release_step(const struct strategy_options *options)
{
    if (options->calls.at_boundary)
        options->calls.at_boundary(options->calls.context);
}

void strategy_leave_boundary(const struct strategy_options *options)
{
    strategy_hold_step(options);
    if (options->calls.before_change)
        options->calls.before_change(options->calls.context);
}

void strategy_stand_at_boundary(struct strategy *strategy)
{
    if (strategy->operations->stand_at_boundary != NULL)
        strategy->operations->stand_at_boundary(strategy);
}

/* All are NULL in a strategy without them. */
static const struct strategy_crew_operations *crew_operations(const struct strategy *strategy)
{
    static const struct strategy_crew_operations none;
    return strategy->operations->crew != NULL ? strategy->operations->crew : &none;
}

void strategy_break_off(struct strategy *strategy)
{
    const struct strategy_crew_operations *crew = crew_operations(strategy);
    if (crew->break_off != NULL)
        crew->break_off(strategy);
}

bool strategy_is_whole(const struct strategy *strategy)
{
    return strategy->holds_state &&
           (strategy->operations->is_whole == NULL || strategy->operations->is_whole(strategy));
}

static void announce_change(const struct strategy *strategy)
{
    if (strategy->options.calls.before_change)
        strategy->options.calls.before_change(strategy->options.calls.context);
}

int strategy_reform(struct strategy *strategy, struct error *error)
{
    announce_change(strategy);
    return strategy->operations->reform(strategy, error);
}

int strategy_step(struct strategy *strategy, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                  struct error *error)
{
    strategy->reform_is_planned = false;
    strategy->steps_abandoned = 0;
    if (strategy->operations->step(strategy, learning_rate, votes, ret_result, error) < 0)
        return -1;
    strategy->reform_is_planned = ret_result->reform;
    return 0;
}

int strategy_settle(struct strategy *strategy, struct error *error)
{
    return strategy->operations->settle != NULL ? strategy->operations->settle(strategy, error) : 0;
}

int64_t strategy_step_before(const struct strategy *strategy)
{
    if (strategy->operations->step_before != NULL)
        return strategy->operations->step_before(strategy);
    return strategy->options.state->progress.step - 1;
}

int64_t strategy_steps_abandoned(const struct strategy *strategy)
{
    return strategy->steps_abandoned;
}

bool strategy_is_loose(const struct strategy *strategy)
{
    return strategy->operations->loose != NULL;
}

int strategy_average_begin(struct strategy *strategy, struct error *error)
{
    if (!strategy_is_loose(strategy))
        return 0;
    announce_change(strategy);
    return strategy->operations->loose->average_begin(strategy, error);
}

void strategy_average_end(struct strategy *strategy)
{
    if (!strategy_is_loose(strategy))
        return;
    announce_change(strategy);
    strategy->operations->loose->average_end(strategy);
}

unsigned strategy_averaged(const struct strategy *strategy, unsigned *ret_of)
{
    *ret_of = 0;
    return strategy_is_loose(strategy) ? strategy->operations->loose->averaged(strategy, ret_of) : 0;
}

int64_t strategy_finished(const struct strategy *strategy, unsigned seat)
{
    return strategy_is_loose(strategy) ? strategy->operations->loose->finished(strategy, seat) : 0;
}

int strategy_sum(struct strategy *strategy, double *values, unsigned count, struct error *error)
{
    return strategy->operations->sum(strategy, values, count, error);
}

int strategy_preflight(struct strategy *strategy, const char *fault, struct preflight_figures *ret_figures,
                       struct error *error)
{
    const struct strategy_options *options = &strategy->options;
    const struct strategy_device alone = {.device = options->device};
    unsigned size = strategy->world.size, rank = strategy->world.rank;
    const struct strategy_crew_operations *crew = crew_operations(strategy);
    struct collective *group = crew->group != NULL ? crew->group(strategy) : NULL;
    memset(ret_figures, 0, CREW_SIZE_MAX * sizeof *ret_figures);
    if (preflight_measure(options->devices ? options->devices : &alone, options->devices ? options->device_count : 1,
                          fault, &ret_figures[rank], error) < 0 ||
        preflight_measure_links(group, rank, size, &ret_figures[rank], error) < 0)
        return -1;
    return strategy_sum(strategy, (double *)ret_figures, size * (unsigned)(sizeof *ret_figures / sizeof(double)),
                        error);
}

int strategy_share(struct strategy *strategy, void *bytes, size_t length, struct error *error)
{
    return strategy->operations->share(strategy, bytes, length, error);
}

void strategy_await_delivery(struct strategy *strategy)
{
    const struct strategy_crew_operations *crew = crew_operations(strategy);
    if (crew->await_delivery != NULL)
        crew->await_delivery(strategy);
}

int strategy_meet(struct strategy *strategy, struct error *error)
{
    const struct strategy_crew_operations *crew = crew_operations(strategy);
    return crew->meet != NULL ? crew->meet(strategy, error) : 0;
}

bool strategy_evaluates(const struct strategy *strategy)
{
    return strategy->operations->model != NULL;
}

int strategy_evaluate(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                      struct loss_sums *ret_sums, struct error *error)
{
    return strategy->operations->model->evaluate(strategy, dataset, first, count, ret_sums, error);
}

void strategy_evaluation_part(const struct strategy *strategy, unsigned *ret_index, unsigned *ret_count)
{
    *ret_index = strategy->world.rank;
    *ret_count = strategy->world.size;
    if (strategy->operations->model != NULL)
        strategy->operations->model->evaluation_part(strategy, ret_index, ret_count);
}

unsigned strategy_writers(const struct strategy *strategy)
{
    const struct strategy_crew_operations *crew = crew_operations(strategy);
    return crew->writers != NULL ? crew->writers(strategy) : 1;
}

bool strategy_has_gathered_model(const struct strategy *strategy)
{
    return strategy->operations->model == NULL;
}

int strategy_gather(struct strategy *strategy, float *whole, struct error *error)
{
    return strategy->operations->model->gather(strategy, whole, error);
}

unsigned strategy_kin(const struct strategy *strategy, unsigned rank)
{
    return strategy->operations->model != NULL ? strategy->operations->model->kin(strategy, rank) : 0;
}

int strategy_describe(struct strategy *strategy, struct buffer *text, struct error *error)
{
    return strategy->operations->model != NULL ? strategy->operations->model->describe(strategy, text, error) : 0;
}

const unsigned *strategy_stages(const struct strategy *strategy, unsigned *ret_layers)
{
    return strategy->operations->model != NULL ? strategy->operations->model->stages(strategy, ret_layers) : NULL;
}

const struct world *strategy_world(const struct strategy *strategy)
{
    return &strategy->world;
}
