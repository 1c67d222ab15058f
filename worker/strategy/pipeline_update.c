/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- one gradient from those of all replicas */

static void combine_range(const struct pipeline *pipeline, const struct graph_bucket *range)
{
    const float *inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    unsigned count = 0;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        for (unsigned i = 0; i < pipeline->shares[s].cover_count; i++)
            inputs[count++] = pipeline->stores[s].gradients[i] + range->offset;
    reduction_plan_combine(pipeline->plan, inputs, pipeline->stores[0].gradients[0] + range->offset,
                           (size_t)range->elements);
}

/* Whether a table is borrowed from another process. */
static bool tables_go_far(const struct pipeline *pipeline)
{
    for (unsigned i = 0; i < pipeline->gradient_count; i++) {
        const struct graph_crossing *gradient = &pipeline->gradients[i];
        if (gradient->table &&
            pipeline_rank_with(pipeline, gradient->from) != pipeline_rank_with(pipeline, gradient->to))
            return true;
    }
    return false;
}

static int exchange_all(struct pipeline *pipeline, struct error *error)
{
    if (pipeline_stores_to_host(pipeline, error) < 0 || pipeline_exchange_gradients(pipeline, error) < 0 ||
        pipeline_exchange_tables(pipeline, error) < 0)
        return -1;
    return pipeline_stores_from_host(pipeline, error);
}

/* Alone: all else stays on the devices. */
static int exchange_tables(struct pipeline *pipeline, struct error *error)
{
    if (pipeline_stores_tables_to_host(pipeline, error) < 0 || pipeline_exchange_tables(pipeline, error) < 0)
        return -1;
    return pipeline_stores_tables_from_host(pipeline, error);
}

static int exchange(struct pipeline *pipeline, struct error *error)
{
    if (pipeline->shape.replicas > 1 && !pipeline_sums_on_devices(pipeline))
        return exchange_all(pipeline, error);
    return tables_go_far(pipeline) ? exchange_tables(pipeline, error) : pipeline_stores_give_tables(pipeline, error);
}

/* The result is in the first share's first gradient. */
int pipeline_reduce(struct pipeline *pipeline, struct error *error)
{
    if (pipeline->shape.size > 1 || pipeline_is_parted(pipeline))
        return exchange(pipeline, error);
    if (pipeline->shape.replicas == 1)
        return 0;
    for (unsigned u = 0; u < pipeline->unit_count; u++)
        for (unsigned r = 0; pipeline->units[u].share == &pipeline->shares[0] && r < pipeline->units[u].range_count;
             r++)
            combine_range(pipeline, &pipeline->units[u].ranges[r]);
    return 0;
}

/* ---- what the step came to */

static int judge(struct pipeline *pipeline, unsigned votes, struct strategy_result *result, struct error *error)
{
    float controls[CREW_SIZE_MAX * REDUCTION_COVER_MAX][CONTROL_VOTES] = {{0}}, sums[CONTROL_VOTES];
    const float *inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    float words[CREW_SIZE_MAX] = {0};
    /* A single process waits for no other, so it reports no time. */
    unsigned word = strategy_vote_word(votes, pipeline->shape.size > 1 ? pipeline_own_ns(pipeline) : 0);
    if (pipeline_exchange_controls(pipeline, word, controls, words, &result->gradient_norm, error) < 0)
        return -1;
    result->gradient_norm /= strategy_loss_scale(&pipeline->base.options);
    for (unsigned i = 0; i < CREW_SIZE_MAX * REDUCTION_COVER_MAX; i++)
        inputs[i] = controls[i];
    reduction_plan_combine(pipeline->plan, inputs, sums, CONTROL_VOTES);
    result->loss = (double)sums[CONTROL_LOSS] / pipeline_target_count(pipeline);
    result->correct = (int64_t)sums[CONTROL_CORRECT];
    strategy_result_votes(result, words, pipeline->shape.size);
    return 0;
}

static void update_store(const struct pipeline *pipeline, const struct pipeline_store *store, double learning_rate,
                         const struct strategy_result *result)
{
    const struct strategy_options *options = &pipeline->base.options;
    const struct training_state *state = options->state;
    struct state_part part = training_state_part(state, store->part);
    double limit = options->gradient_clip_norm;
    struct optimizer_range range = {
        .elements = part.layout->elements,
        .statistics = part.layout->statistics,
        .parameters = part.parameters,
        .gradients = store->gradients[0],
        .step = result->step - state->progress.scaling.skipped_steps,
        .learning_rate = learning_rate,
        .gradient_scale =
            (limit > 0 ? gradient_clip_factor(result->gradient_norm, limit) : 1.0) / strategy_loss_scale(options),
    };
    memcpy(range.slots, part.slots, sizeof range.slots);
    optimizer_update(store->stream, options->optimizer, &range);
}

static int update(struct pipeline *pipeline, double learning_rate, const struct strategy_result *result,
                  struct error *error)
{
    strategy_leave_boundary(&pipeline->base.options);
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline) && !result->skipped; i++)
        update_store(pipeline, &pipeline->stores[i], learning_rate, result);
    return pipeline_stores_synchronise(pipeline, error);
}

static int take_step(struct pipeline *pipeline, double learning_rate, const struct strategy_result *result,
                     struct error *error)
{
    struct training_progress *progress = &pipeline->base.options.state->progress;
    struct pipeline_verge *verge = &pipeline->verge;
    verge->step = 0;
    if (update(pipeline, learning_rate, result, error) < 0)
        return -1;
    progress->step = result->step;
    loss_scaling_follow(&progress->scaling, graph_precision(pipeline->base.options.graph), result->skipped);
    pipeline_next_position(pipeline, &progress->data_epoch, &progress->examples_consumed);
    verge->measured_step = result->step;
    verge->norm = result->gradient_norm;
    return 0;
}

int pipeline_apply(struct pipeline *pipeline, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                   struct error *error)
{
    struct strategy_result result = {.step = pipeline->base.options.state->progress.step + 1,
                                     .examples = pipeline->examples};
    pipeline->verge.step = result.step;
    pipeline->verge.learning_rate = learning_rate;
    if (judge(pipeline, votes, &result, error) < 0 || strategy_judge(&pipeline->base.options, &result, error) < 0 ||
        take_step(pipeline, learning_rate, &result, error) < 0)
        return -1;
    *ret_result = result;
    return 0;
}

/* ---- a step that others have applied */

/* The words of each rank: whether it is on the verge of the world's step, whether it knows that step's norm, and the norm. */
enum verge_word { VERGE_STANDS, VERGE_KNOWS, VERGE_NORM, VERGE_WORDS };

static const double *find_norm(const double *words, unsigned size)
{
    for (unsigned rank = 0; rank < size; rank++)
        if (words[rank * VERGE_WORDS + VERGE_KNOWS] > 0)
            return &words[rank * VERGE_WORDS + VERGE_NORM];
    return NULL;
}

int pipeline_catch_up(struct pipeline *pipeline, struct world *world, struct error *error)
{
    struct strategy *base = &pipeline->base;
    const struct pipeline_verge *verge = &pipeline->verge;
    double words[CREW_SIZE_MAX * VERGE_WORDS] = {0}, *own = words + (size_t)world->rank * VERGE_WORDS;
    if (world->source != WORLD_SOURCE_PEER)
        return 0;
    own[VERGE_STANDS] = base->holds_state && verge->step == world->step;
    own[VERGE_KNOWS] = base->holds_state && verge->measured_step == world->step;
    own[VERGE_NORM] = own[VERGE_KNOWS] > 0 ? verge->norm : 0;
    if (pipeline_exchange_sum(pipeline, words, world->size * VERGE_WORDS, error) < 0)
        return -1;
    const double *norm = find_norm(words, world->size);
    for (unsigned rank = 0; norm && rank < world->size; rank++)
        world->receives[rank] &= !(words[rank * VERGE_WORDS + VERGE_STANDS] > 0);
    if (norm == NULL || !(own[VERGE_STANDS] > 0))
        return 0;
    const struct strategy_result result = {.step = world->step, .gradient_norm = *norm, .skipped = !isfinite(*norm)};
    return take_step(pipeline, verge->learning_rate, &result, error);
}
