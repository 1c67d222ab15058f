/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/exact_values.h"
#include "worker/strategy/pipeline_parts.h"

void pipeline_add_ranks(const void *context, const float *const *inputs, float *result, size_t elements)
{
    const struct pipeline_shape *shape = context;
    for (size_t i = 0; i < elements; i++) {
        float sum = inputs[0][i];
        for (unsigned rank = 1; rank < shape->size; rank++)
            sum += inputs[rank][i];
        result[i] = sum;
    }
}

static int add_up(struct pipeline *pipeline, float *values, size_t count, struct error *error)
{
    const float *contributions[1] = {values};
    if (pipeline->shape.size == 1)
        return 0;
    return collective_all_reduce(pipeline->group, contributions, values, count, error);
}

/* Everybody's values side by side, added rank by rank. */
int pipeline_exchange_sum(struct pipeline *pipeline, double *values, unsigned count, struct error *error)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    size_t total = exact_values_floats(count, shape->size);
    SCOPED_FREE float *places = memory_allocate(total + 1, sizeof *places);
    exact_values_put(values, count, shape->rank, places);
    if (add_up(pipeline, places, total, error) < 0)
        return -1;
    exact_values_sum(places, count, shape->size, values);
    return 0;
}

/* ---------------------------------------------------------------- gradients of the same stages */

/* The processes that hold the same stages, and how a vector is dealt to them. */
struct circle {
    unsigned first, step, count, own; /* ranks first, first + step, …; `own` is our number among them */
    int64_t elements;
};

static struct circle circle_of(const struct pipeline *pipeline)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    const struct parameter_layout *layout = &pipeline->base.options.state->layout;
    unsigned span = pipeline_span_of(shape);
    return (struct circle){.first = shape->rank % span,
                           .step = span,
                           .count = shape->size / span,
                           .own = shape->rank / span,
                           .elements = layout->elements - layout->copies};
}

static int64_t chunk_start(const struct circle *circle, unsigned owner)
{
    return circle->elements * owner / circle->count;
}

static size_t chunk_bytes(const struct circle *circle, unsigned owner)
{
    return (size_t)(chunk_start(circle, owner + 1) - chunk_start(circle, owner)) * sizeof(float);
}

/* Contributions of one member: those of its replicas, in their order. */
static unsigned contributions_of(const struct pipeline *pipeline, unsigned member)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pipeline->share_count; i++)
        count += reduction_plan_contributions(pipeline->plan, member * pipeline->share_count + i);
    return count;
}

static unsigned list_own(const struct pipeline *pipeline, int64_t offset, const float **ret_inputs)
{
    unsigned count = 0;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        for (unsigned i = 0; i < pipeline->shares[s].cover_count; i++)
            ret_inputs[count++] = pipeline->shares[s].host_gradients[i] + offset;
    return count;
}

struct exchange {
    struct pipeline *pipeline;
    struct circle circle;
    struct transfer *transfers;
    unsigned started;
    float *staging;
};

static struct transfer *next_transfer(struct exchange *exchange)
{
    return &exchange->transfers[exchange->started++];
}

static void send_contributions(struct exchange *exchange)
{
    const struct circle *circle = &exchange->circle;
    const float *own[REDUCTION_COVER_MAX * STAGES_MAX];
    for (unsigned i = 1; i < circle->count; i++) {
        unsigned member = (circle->own + i) % circle->count;
        unsigned count = list_own(exchange->pipeline, chunk_start(circle, member), own);
        for (unsigned k = 0; k < count; k++)
            transfer_send_start(exchange->pipeline->group, circle->first + member * circle->step, CHANNEL_CONTRIBUTION,
                                own[k], chunk_bytes(circle, member), next_transfer(exchange));
    }
}

/* Fills `inputs` with all contributions to our chunk, in the order of the replicas. */
static int receive_contributions(struct exchange *exchange, const float **inputs, struct error *error)
{
    const struct circle *circle = &exchange->circle;
    size_t bytes = chunk_bytes(circle, circle->own);
    float *place = exchange->staging;
    for (unsigned member = 0; member < circle->count; member++) {
        if (member == circle->own) {
            inputs += list_own(exchange->pipeline, chunk_start(circle, member), inputs);
            continue;
        }
        for (unsigned k = contributions_of(exchange->pipeline, member); k > 0; k--, place += bytes / sizeof(float)) {
            *inputs++ = place;
            if (transfer_receive(exchange->pipeline->group, circle->first + member * circle->step, CHANNEL_CONTRIBUTION,
                                 place, bytes, error) < 0)
                return -1;
        }
    }
    return 0;
}

static int share_results(struct exchange *exchange, struct error *error)
{
    const struct circle *circle = &exchange->circle;
    float *gradient = exchange->pipeline->shares[0].host_gradients[0];
    for (unsigned i = 1; i < circle->count; i++) {
        unsigned member = (circle->own + i) % circle->count;
        transfer_send_start(exchange->pipeline->group, circle->first + member * circle->step, CHANNEL_RESULT,
                            gradient + chunk_start(circle, circle->own), chunk_bytes(circle, circle->own),
                            next_transfer(exchange));
    }
    for (unsigned i = 1; i < circle->count; i++) {
        unsigned member = (circle->own + i) % circle->count;
        if (transfer_receive(exchange->pipeline->group, circle->first + member * circle->step, CHANNEL_RESULT,
                             gradient + chunk_start(circle, member), chunk_bytes(circle, member), error) < 0)
            return -1;
    }
    return 0;
}

/* Each member sums the chunk that it owns; an own contribution is not overwritten before its owner has it. */
static int exchange_chunks(struct exchange *exchange, struct error *error)
{
    struct pipeline *pipeline = exchange->pipeline;
    const struct circle *circle = &exchange->circle;
    const float *inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    send_contributions(exchange);
    if (receive_contributions(exchange, inputs, error) < 0)
        return -1;
    int64_t start = chunk_start(circle, circle->own);
    reduction_plan_combine(pipeline->plan, inputs, pipeline->shares[0].host_gradients[0] + start,
                           (size_t)(chunk_start(circle, circle->own + 1) - start));
    if (share_results(exchange, error) < 0)
        return -1;
    for (unsigned i = 0; i < exchange->started; i++)
        if (transfer_wait(pipeline->group, &exchange->transfers[i], error) < 0)
            return -1;
    return 0;
}

int pipeline_exchange_gradients(struct pipeline *pipeline, struct error *error)
{
    struct exchange exchange = {.pipeline = pipeline, .circle = circle_of(pipeline)};
    unsigned others = exchange.circle.count - 1, most = 0;
    for (unsigned member = 0; member < exchange.circle.count; member++)
        most += member != exchange.circle.own ? contributions_of(pipeline, member) : 0;
    unsigned transfers = others * (contributions_of(pipeline, exchange.circle.own) + 1);
    exchange.transfers = memory_allocate(transfers + 1, sizeof *exchange.transfers);
    exchange.staging =
        memory_allocate(most * (chunk_bytes(&exchange.circle, exchange.circle.own) / sizeof(float)) + 1, sizeof(float));
    int result = exchange_chunks(&exchange, error);
    for (unsigned i = 0; i < transfers; i++)
        transfer_release(&exchange.transfers[i]);
    free(exchange.transfers);
    free(exchange.staging);
    return result;
}

/* ---------------------------------------------------------------- borrowed tables */

unsigned pipeline_rank_with(const struct pipeline *pipeline, unsigned part)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    unsigned span = pipeline_span_of(shape);
    return shape->rank / span * span + pipeline->partition.stage_of_part[part] / shape->devices % span;
}

/* A layer's table is its first tensor. */
static float *table_gradient(const struct pipeline *pipeline, unsigned layer)
{
    const struct parameter_layout *layout = &pipeline->base.options.state->layout;
    unsigned t = 0;
    while (layout->tensors[t].layer != layer)
        t++;
    return pipeline->shares[0].host_gradients[0] + layout->tensors[t].offset;
}

static int exchange_table(struct pipeline *pipeline, const struct graph_crossing *table, struct error *error)
{
    unsigned own = pipeline->shape.rank, holder = pipeline_rank_with(pipeline, table->to),
             borrower = pipeline_rank_with(pipeline, table->from);
    size_t bytes = (size_t)table->elements * sizeof(float);
    struct transfer transfer = {0};
    if (holder == borrower || (own != holder && own != borrower))
        return 0;
    float *gradient = table_gradient(pipeline, table->layer);
    if (own == borrower)
        return transfer_receive(pipeline->group, holder, CHANNEL_TABLE, gradient, bytes, error);
    transfer_send_start(pipeline->group, borrower, CHANNEL_TABLE, gradient, bytes, &transfer);
    int result = transfer_wait(pipeline->group, &transfer, error);
    transfer_release(&transfer);
    return result;
}

int pipeline_exchange_tables(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline->gradient_count; i++)
        if (pipeline->gradients[i].table && exchange_table(pipeline, &pipeline->gradients[i], error) < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- the gradient's norm */

/* The norm is a sum over fixed blocks of the whole model's trained parameters. A block in a single stage is summed there, by the first
 * replica; the pieces of a block in several stages are combined by all ranks. */
struct block_run { /* consecutive blocks, in a store here */
    unsigned store;
    int64_t block, count, offset, elements;
};
struct block_piece { /* of a block that is put together */
    unsigned store;
    int64_t local, shared, elements;
};
struct pipeline_blocks {
    int64_t elements, count; /* trained ones of the whole model; blocks */
    struct block_run *runs;
    struct block_piece *pieces;
    int64_t *spread; /* the blocks that are put together, in order */
    unsigned run_count, piece_count, spread_count;
    double *sums;        /* shared memory, like the next */
    float *spread_parts; /* the elements of those that are put together */
};

/* The whole model's tensors, split ones slice by slice. */
static struct parameter_piece *list_pieces(const struct pipeline *pipeline, unsigned *ret_count)
{
    const struct graph *graph = pipeline->base.options.graph;
    *ret_count = graph_parameter_pieces(graph, NULL);
    struct parameter_piece *pieces = memory_allocate(*ret_count + 1, sizeof *pieces);
    graph_parameter_pieces(graph, pieces);
    return pieces;
}

static unsigned span_member(const struct pipeline *pipeline, const struct parameter_piece *piece)
{
    unsigned stage = pipeline->partition.stage_of[piece->layer];
    return stage / pipeline->shape.devices % pipeline_span_of(&pipeline->shape);
}

/* Which stage holds each block; -1: several. */
static int *find_holders(const struct pipeline *pipeline, const struct parameter_piece *pieces, unsigned count,
                         int64_t blocks)
{
    int64_t statistics = graph_layout(pipeline->base.options.graph)->statistics;
    int *holders = memory_allocate((size_t)blocks + 1, sizeof *holders);
    for (int64_t i = 0; i < blocks; i++)
        holders[i] = -2;
    for (unsigned p = 0; p < count; p++) {
        int64_t start = pieces[p].offset - statistics;
        if (start < 0)
            continue;
        int stage = (int)pipeline->partition.stage_of[pieces[p].layer];
        for (int64_t b = start / SQUARE_SUM_BLOCK; b * SQUARE_SUM_BLOCK < start + pieces[p].elements; b++)
            holders[b] = holders[b] == -2 || holders[b] == stage ? stage : -1;
    }
    return holders;
}

static void add_run(struct pipeline_blocks *blocks, unsigned store, int64_t block, int64_t offset, int64_t elements)
{
    struct block_run *last = blocks->run_count ? &blocks->runs[blocks->run_count - 1] : NULL;
    if (last && last->store == store && last->block + last->count == block && last->offset + last->elements == offset) {
        last->count++;
        last->elements += elements;
        return;
    }
    blocks->runs[blocks->run_count++] =
        (struct block_run){.store = store, .block = block, .count = 1, .offset = offset, .elements = elements};
}

/* Adds the blocks that begin in a piece of a store of this process, if they are in this stage only, and otherwise the piece's parts of
 * these blocks. */
static void add_piece(struct pipeline_blocks *blocks, const int *holders, unsigned store, int64_t start, int64_t local,
                      int64_t elements, const int64_t *spread_number)
{
    for (int64_t b = start / SQUARE_SUM_BLOCK; b * SQUARE_SUM_BLOCK < start + elements; b++) {
        int64_t first = b * SQUARE_SUM_BLOCK, end = first + SQUARE_SUM_BLOCK;
        int64_t length = (end < blocks->elements ? end : blocks->elements) - first;
        if (holders[b] >= 0) {
            if (first >= start)
                add_run(blocks, store, b, local + first - start, length);
            continue;
        }
        int64_t from = first > start ? first : start, to = end < start + elements ? end : start + elements;
        blocks->pieces[blocks->piece_count++] =
            (struct block_piece){.store = store,
                                 .local = local + from - start,
                                 .shared = spread_number[b] * SQUARE_SUM_BLOCK + from - first,
                                 .elements = to - from};
    }
}

static void list_spread(struct pipeline_blocks *blocks, const int *holders, int64_t *ret_number)
{
    for (int64_t b = 0; b < blocks->count; b++)
        if (holders[b] < 0) {
            ret_number[b] = blocks->spread_count;
            blocks->spread[blocks->spread_count++] = b;
        }
}

static int allocate_shared(const struct pipeline *pipeline, struct pipeline_blocks *blocks, size_t sums,
                           struct error *error)
{
    struct device *device = pipeline->base.options.device;
    size_t elements = (size_t)blocks->spread_count * SQUARE_SUM_BLOCK;
    if (device_allocate(device, MEMORY_SHARED, sums * sizeof(double), (void **)&blocks->sums, error) < 0)
        return -1;
    return device_allocate(device, MEMORY_SHARED, elements * sizeof(float), (void **)&blocks->spread_parts, error);
}

int pipeline_blocks_new(const struct pipeline *pipeline, struct pipeline_blocks **ret_blocks, struct error *error)
{
    const struct parameter_layout *whole = graph_layout(pipeline->base.options.graph);
    struct pipeline_blocks *blocks = memory_allocate(1, sizeof *blocks);
    blocks->elements = whole->elements - whole->statistics;
    blocks->count = gradient_norm_blocks(blocks->elements);
    unsigned count;
    SCOPED_FREE struct parameter_piece *pieces = list_pieces(pipeline, &count);
    size_t most = (size_t)blocks->count + count + 1;
    blocks->runs = memory_allocate(most, sizeof *blocks->runs);
    blocks->pieces = memory_allocate(2 * most, sizeof *blocks->pieces);
    blocks->spread = memory_allocate(most, sizeof *blocks->spread);
    SCOPED_FREE int *holders = find_holders(pipeline, pieces, count, blocks->count);
    SCOPED_FREE int64_t *spread_number = memory_allocate(most, sizeof *spread_number);
    list_spread(blocks, holders, spread_number);
    for (unsigned s = 0; s < pipeline->store_count; s++)
        for (unsigned p = 0; p < count && pipeline->stores[s].share == &pipeline->shares[0]; p++) {
            int64_t here = parameter_piece_place(&pieces[p], pipeline->stores[s].layout);
            if (here >= 0 && pieces[p].offset >= whole->statistics)
                add_piece(blocks, holders, s, pieces[p].offset - whole->statistics, here, pieces[p].elements,
                          spread_number);
        }
    if (allocate_shared(pipeline, blocks, most, error) < 0) {
        pipeline_blocks_free(pipeline, blocks);
        return -1;
    }
    *ret_blocks = blocks;
    return 0;
}

void pipeline_blocks_free(const struct pipeline *pipeline, struct pipeline_blocks *blocks)
{
    if (blocks == NULL)
        return;
    device_free(pipeline->base.options.device, blocks->sums);
    device_free(pipeline->base.options.device, blocks->spread_parts);
    free(blocks->runs);
    free(blocks->pieces);
    free(blocks->spread);
    free(blocks);
}

static size_t spread_bytes(const struct pipeline_blocks *blocks)
{
    return (size_t)blocks->spread_count * SQUARE_SUM_BLOCK * sizeof(float);
}

static void launch_run(const struct pipeline *pipeline, const struct block_run *run)
{
    const struct pipeline_store *store = &pipeline->stores[run->store];
    gradient_norm_launch(store->stream, store->gradients[0] + run->offset, run->elements,
                         pipeline->blocks->sums + run->block);
}

static void copy_piece(const struct pipeline *pipeline, const struct block_piece *piece)
{
    const struct pipeline_store *store = &pipeline->stores[piece->store];
    device_copy(store->stream, &(struct copy){.bytes = piece->elements * (int64_t)sizeof(float),
                                              .from = store->gradients[0] + piece->local,
                                              .to = pipeline->blocks->spread_parts + piece->shared});
}

/* Fills our places among the exact values of all sums and the elements of the blocks that are spread. */
static int measure_blocks(struct pipeline *pipeline, float *exact, float *spread, struct error *error)
{
    struct pipeline_blocks *blocks = pipeline->blocks;
    memset(blocks->spread_parts, 0, spread_bytes(blocks));
    for (unsigned i = 0; i < blocks->run_count; i++)
        launch_run(pipeline, &blocks->runs[i]);
    for (unsigned i = 0; i < blocks->piece_count; i++)
        copy_piece(pipeline, &blocks->pieces[i]);
    if (pipeline_stores_synchronise(pipeline, error) < 0)
        return -1;
    for (unsigned i = 0; i < blocks->run_count; i++)
        exact_values_put(blocks->sums + blocks->runs[i].block, (size_t)blocks->runs[i].count, 0,
                         exact + exact_values_floats((size_t)blocks->runs[i].block, 1));
    memcpy(spread, blocks->spread_parts, spread_bytes(blocks));
    return 0;
}

static int finish_norm(struct pipeline *pipeline, const float *exact, const float *spread, double *ret_norm,
                       struct error *error)
{
    struct pipeline_blocks *blocks = pipeline->blocks;
    exact_values_sum(exact, (size_t)blocks->count, 1, blocks->sums);
    memcpy(blocks->spread_parts, spread, spread_bytes(blocks));
    for (unsigned i = 0; i < blocks->spread_count; i++) {
        int64_t left = blocks->elements - blocks->spread[i] * SQUARE_SUM_BLOCK;
        gradient_norm_launch(pipeline->stores[0].stream, blocks->spread_parts + (size_t)i * SQUARE_SUM_BLOCK,
                             left < SQUARE_SUM_BLOCK ? left : SQUARE_SUM_BLOCK, blocks->sums + blocks->spread[i]);
    }
    if (pipeline_stores_synchronise(pipeline, error) < 0)
        return -1;
    *ret_norm = gradient_norm_finish(blocks->sums, blocks->elements);
    return 0;
}

/* ---------------------------------------------------------------- controls */

static bool has_loss(const struct pipeline *pipeline, const struct pipeline_share *share)
{
    return share->units[pipeline->partition.part_of[pipeline->partition.layers - 1]] != NULL;
}

/* Ours among all replicas' covers. */
static unsigned put_controls(const struct pipeline *pipeline, float (*places)[CONTROL_VOTES])
{
    unsigned at = 0;
    for (unsigned replica = 0; replica < pipeline->shape.replicas; replica++) {
        for (unsigned s = 0; s < pipeline->share_count; s++)
            if (pipeline->shares[s].replica == replica && has_loss(pipeline, &pipeline->shares[s]))
                pipeline_share_controls(&pipeline->shares[s], places + at);
        at += reduction_plan_contributions(pipeline->plan, replica);
    }
    return at;
}

int pipeline_exchange_controls(struct pipeline *pipeline, unsigned word, float (*ret_controls)[CONTROL_VOTES],
                               float *ret_words, double *ret_norm, struct error *error)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    const struct pipeline_blocks *blocks = pipeline->blocks;
    unsigned covers = put_controls(pipeline, ret_controls);
    size_t words_at = (size_t)covers * CONTROL_VOTES, exact_at = words_at + shape->size;
    size_t spread_at = exact_at + exact_values_floats((size_t)blocks->count, 1);
    size_t total = spread_at + (size_t)blocks->spread_count * SQUARE_SUM_BLOCK;
    SCOPED_FREE float *places = memory_allocate(total, sizeof *places);
    memcpy(places, ret_controls, words_at * sizeof *places);
    places[words_at + shape->rank] = (float)word;
    bool first = shape->rank < pipeline_span_of(shape);
    if ((first && measure_blocks(pipeline, places + exact_at, places + spread_at, error) < 0) ||
        add_up(pipeline, places, total, error) < 0)
        return -1;
    memcpy(ret_controls, places, words_at * sizeof *places);
    memcpy(ret_words, places + words_at, shape->size * sizeof *places);
    return finish_norm(pipeline, places + exact_at, places + spread_at, ret_norm, error);
}

/* ---------------------------------------------------------------- the whole model */

static int gather_piece(struct pipeline *pipeline, const struct parameter_piece *piece, float *whole,
                        struct error *error)
{
    const struct training_state *state = pipeline->base.options.state;
    unsigned holder = span_member(pipeline, piece), own = pipeline->shape.rank;
    size_t bytes = (size_t)piece->elements * sizeof *whole;
    struct transfer transfer = {0};
    if (own > 0 && own != holder)
        return 0;
    if (own == 0 && holder > 0)
        return transfer_receive(pipeline->group, holder, CHANNEL_GATHER, whole + piece->offset, bytes, error);
    const float *here = state->host.parameters + parameter_piece_place(piece, &state->layout);
    if (own == 0) {
        memcpy(whole + piece->offset, here, bytes);
        return 0;
    }
    transfer_send_start(pipeline->group, 0, CHANNEL_GATHER, here, bytes, &transfer);
    int result = transfer_wait(pipeline->group, &transfer, error);
    transfer_release(&transfer);
    return result;
}

/* The first replica's processes hand over, piece by piece. */
int pipeline_exchange_gather(struct pipeline *pipeline, float *whole, struct error *error)
{
    unsigned count;
    SCOPED_FREE struct parameter_piece *pieces = list_pieces(pipeline, &count);
    int result = 0;
    for (unsigned p = 0; p < count && result == 0 && pipeline->shape.rank < pipeline_span_of(&pipeline->shape); p++)
        result = gather_piece(pipeline, &pieces[p], whole, error);
    return result;
}
