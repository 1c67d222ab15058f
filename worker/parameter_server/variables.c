/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/parameter_server/variables_copy.h"
#include "worker/strategy/reduction_tree.h"

#define REACH_ELEMENTS ((int64_t)1 << 20)

static int allocate_flat(struct variables *variables, float **ret_flat, struct error *error)
{
    size_t elements = variables->elements > 0 ? (size_t)variables->elements : 1;
    return device_allocate(variables->options.device, MEMORY_SHARED, elements * sizeof(float), (void **)ret_flat,
                           error);
}

static int allocate_shares(struct variables *variables, struct error *error)
{
    unsigned shares = variables->options.shares;
    if (shares == 0)
        return 0;
    if (reduction_plan_new(shares, shares, &variables->plan, error) < 0)
        return -1;
    for (unsigned i = 0; i < shares; i++)
        if (allocate_flat(variables, &variables->shares[i], error) < 0)
            return -1;
    size_t blocks = (size_t)gradient_norm_blocks(variables->elements) + 1;
    if (device_allocate(variables->options.device, MEMORY_SHARED, blocks * sizeof(double),
                        (void **)&variables->norm_blocks, error) < 0)
        return -1;
    return allocate_flat(variables, &variables->gradient, error);
}

/* Allocates a whole gradient into which the sent rows are written: for asynchronous updates of tables with an optimizer that also updates
 * rows without gradients. */
static int allocate_spread(struct variables *variables, struct error *error)
{
    const struct variables_options *options = &variables->options;
    if (options->placement->table_counts[options->server] == 0 || options->shares > 0 ||
        optimizer_rests(options->optimizer))
        return 0;
    if (allocate_flat(variables, &variables->spread, error) < 0)
        return -1;
    memset(variables->spread, 0, (size_t)variables->elements * sizeof(float));
    return 0;
}

static int allocate(struct variables *variables, struct error *error)
{
    if (variables->options.shares > VARIABLES_SHARES_MAX)
        return error_set(error, ERROR_INVALID,
                         "a ps in mode Synchronous keeps at most %d shares of a batch, not %u; lower "
                         "training.logicalShards, or take another mode",
                         VARIABLES_SHARES_MAX, variables->options.shares);
    if (device_stream_new(variables->options.device, &variables->stream, error) < 0 ||
        allocate_flat(variables, &variables->parameters, error) < 0)
        return -1;
    for (unsigned i = 0; i < variables->slot_count; i++)
        if (allocate_flat(variables, &variables->slots[i], error) < 0)
            return -1;
    return allocate_spread(variables, error) < 0 ? -1 : allocate_shares(variables, error);
}

int variables_init(struct variables *variables, const struct variables_options *options, struct error *error)
{
    *variables = (struct variables){.options = *options,
                                    .elements = options->placement->elements[options->server],
                                    .slot_count = optimizer_slot_count(options->optimizer)};
    if (allocate(variables, error) == 0)
        return 0;
    variables_release(variables);
    return error_wrap(error, "variables of ps %u", options->server);
}

void variables_release(struct variables *variables)
{
    struct device *device = variables->options.device;
    if (device == NULL)
        return;
    device_stream_free(variables->stream);
    device_free(device, variables->parameters);
    for (unsigned i = 0; i < OPTIMIZER_SLOTS_MAX; i++)
        device_free(device, variables->slots[i]);
    for (unsigned i = 0; i < VARIABLES_SHARES_MAX; i++)
        device_free(device, variables->shares[i]);
    device_free(device, variables->gradient);
    device_free(device, variables->spread);
    free(variables->touched.parameters);
    free(variables->touched.gradients);
    device_free(device, variables->norm_blocks);
    reduction_plan_free(variables->plan);
    ticket_set_release(&variables->applied);
    *variables = (struct variables){0};
}

void variables_start(struct variables *variables, const float *flat, const struct ticket_set *applied, int64_t updates)
{
    variables_keep(variables, 0, variables->elements);
    placement_pack(variables->options.placement, variables->options.server, flat, variables->parameters);
    for (unsigned i = 0; i < variables->slot_count; i++)
        memset(variables->slots[i], 0, (size_t)variables->elements * sizeof(float));
    ticket_set_copy(&variables->applied, applied);
    variables->updates = updates;
    variables->empty = variables->clock = 0;
    variables->holds_state = true;
}

/* ---------------------------------------------------------------- updates */

enum update_verdict variables_judge(const struct variables *variables, const struct update *update)
{
    if (update->lineage != variables->lineage)
        return UPDATE_OUTDATED;
    if (ticket_set_has(&variables->applied, update->ticket))
        return UPDATE_DUPLICATE;
    bool is_late = update->clock < variables->clock - variables->options.staleness;
    return variables->options.refuses_late && is_late ? UPDATE_LATE : UPDATE_APPLIED;
}

static void launch(struct variables *variables, const struct placement_run *run, const float *gradients,
                   double learning_rate, double gradient_scale)
{
    int64_t statistics = variables->options.placement->statistics[variables->options.server] - run->local;
    struct optimizer_range range = {.elements = run->elements,
                                    .statistics = statistics > 0 ? statistics : 0,
                                    .parameters = variables->parameters + run->local,
                                    .gradients = gradients,
                                    .step = variables->updates + 1,
                                    .learning_rate = learning_rate,
                                    .gradient_scale = gradient_scale};
    for (unsigned i = 0; i < variables->slot_count; i++)
        range.slots[i] = variables->slots[i] + run->local;
    variables_keep(variables, run->local, run->elements);
    optimizer_update(variables->stream, variables->options.optimizer, &range);
}

static bool is_of_rows(const struct update *update)
{
    return update->rows != NULL && update->rows->listed;
}

/* Updates piece by piece, for a caller that wants values as soon as they are updated. */
static int apply_reaching(struct variables *variables, const struct update *update, struct error *error)
{
    for (int64_t first = 0; first < variables->elements; first += REACH_ELEMENTS) {
        int64_t left = variables->elements - first, count = left < REACH_ELEMENTS ? left : REACH_ELEMENTS;
        const struct placement_run piece = {.local = first, .elements = count};
        launch(variables, &piece, update->gradients + first, update->learning_rate, update->gradient_scale);
        if (device_stream_synchronise(variables->stream, error) < 0)
            return -1;
        update->reached(update->context, first + count);
    }
    return 0;
}

static void apply_all(struct variables *variables, const struct update *update)
{
    const struct placement *placement = variables->options.placement;
    unsigned server = variables->options.server;
    const struct placement_run whole = {.elements = variables->elements};
    unsigned runs = update->flat ? placement->run_counts[server] : 1;
    for (unsigned i = 0; i < runs; i++) {
        const struct placement_run *run = update->flat ? &placement->runs[server][i] : &whole;
        launch(variables, run, update->gradients + run->offset, update->learning_rate, update->gradient_scale);
    }
}

/* An update on its way through what travels. */
struct application {
    struct variables *variables;
    const struct update *update;
};

static void reserve_touched(struct row_buffer *touched, int64_t elements)
{
    if (elements <= touched->capacity)
        return;
    touched->capacity = 2 * elements;
    touched->parameters = memory_resize(touched->parameters, (size_t)touched->capacity, sizeof(float));
    touched->gradients = memory_resize(touched->gradients, (size_t)touched->capacity, sizeof(float));
}

static void take_segment(void *context, const struct placement_segment *segment)
{
    const struct application *application = context;
    struct variables *variables = application->variables;
    const struct update *update = application->update;
    struct row_buffer *touched = &variables->touched;
    const float *gradients = update->gradients + (update->flat ? segment->offset : segment->carried);
    if (!segment->is_row) {
        const struct placement_run run = {segment->offset, segment->local, segment->elements};
        launch(variables, &run, gradients, update->learning_rate, update->gradient_scale);
        return;
    }
    size_t bytes = (size_t)segment->elements * sizeof(float);
    reserve_touched(touched, touched->elements + segment->elements);
    memcpy(touched->parameters + touched->elements, variables->parameters + segment->local, bytes);
    memcpy(touched->gradients + touched->elements, gradients, bytes);
    touched->elements += segment->elements;
}

static void put_row_back(void *context, const struct placement_segment *segment)
{
    struct variables *variables = ((struct application *)context)->variables;
    if (!segment->is_row)
        return;
    variables_keep(variables, segment->local, segment->elements);
    memcpy(variables->parameters + segment->local, variables->touched.parameters + variables->touched.elements,
           (size_t)segment->elements * sizeof(float));
    variables->touched.elements += segment->elements;
}

/* The optimizer has no slots and leaves the other rows as they are. */
static int apply_touched(struct variables *variables, const struct update *update, struct error *error)
{
    struct application application = {variables, update};
    const struct variables_options *options = &variables->options;
    variables->touched.elements = 0;
    placement_walk(options->placement, options->server, update->rows, take_segment, &application);
    struct optimizer_range range = {.elements = variables->touched.elements,
                                    .parameters = variables->touched.parameters,
                                    .gradients = variables->touched.gradients,
                                    .step = variables->updates + 1,
                                    .learning_rate = update->learning_rate,
                                    .gradient_scale = update->gradient_scale};
    if (range.elements > 0)
        optimizer_update(variables->stream, options->optimizer, &range);
    if (device_stream_synchronise(variables->stream, error) < 0)
        return -1;
    variables->touched.elements = 0;
    placement_walk(options->placement, options->server, update->rows, put_row_back, &application);
    return 0;
}

static void clear_row(void *context, const struct placement_segment *segment)
{
    if (segment->is_row)
        memset((float *)context + segment->local, 0, (size_t)segment->elements * sizeof(float));
}

static int apply_spread(struct variables *variables, const struct update *update, struct error *error)
{
    const struct variables_options *options = &variables->options;
    placement_carry(options->placement, options->server, update->rows, update->gradients,
                    update->flat ? ORDER_LAYOUT : ORDER_CARRIED, variables->spread, ORDER_PACKED);
    launch(variables, &(struct placement_run){.elements = variables->elements}, variables->spread,
           update->learning_rate, update->gradient_scale);
    int result = device_stream_synchronise(variables->stream, error);
    placement_walk(options->placement, options->server, update->rows, clear_row, variables->spread);
    return result;
}

static int apply_update(struct variables *variables, const struct update *update, struct error *error)
{
    if (is_of_rows(update) && variables->spread != NULL)
        return apply_spread(variables, update, error);
    if (is_of_rows(update))
        return apply_touched(variables, update, error);
    if (update->reached != NULL && !update->flat)
        return apply_reaching(variables, update, error);
    apply_all(variables, update);
    return device_stream_synchronise(variables->stream, error);
}

int variables_apply(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error)
{
    enum update_verdict verdict = variables_judge(variables, update);
    if (verdict == UPDATE_APPLIED) {
        bool is_empty = update_is_empty(update);
        if (!is_empty && apply_update(variables, update, error) < 0)
            return -1;
        variables->empty += is_empty;
        variables->updates += !is_empty;
        ticket_set_add(&variables->applied, update->ticket);
        if (update->clock > variables->clock)
            variables->clock = update->clock;
    }
    *ret_verdict = verdict;
    return 0;
}

/* ---------------------------------------------------------------- synchronous steps */

static void clear_tables(const struct variables *variables, float *packed)
{
    const struct placement *placement = variables->options.placement;
    for (unsigned i = 0; i < placement->table_counts[variables->options.server]; i++) {
        const struct placement_table *table = &placement->tables[variables->options.server][i];
        memset(packed + table->local, 0, (size_t)(table->rows * table->row_elements) * sizeof *packed);
    }
}

static void stage(const struct variables *variables, const struct update *update, float *share)
{
    const struct variables_options *options = &variables->options;
    if (is_of_rows(update))
        clear_tables(variables, share);
    placement_carry(options->placement, options->server, update->rows, update->gradients,
                    update->flat ? ORDER_LAYOUT : ORDER_CARRIED, share, ORDER_PACKED);
}

int variables_stage(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error)
{
    int64_t shares = variables->options.shares;
    enum update_verdict verdict = variables_judge(variables, update);
    if (verdict == UPDATE_APPLIED) {
        if (update->ticket / shares != variables->updates)
            return error_set(error, ERROR_INTERNAL,
                             "internal error: a share of step %lld came while step %lld is computed",
                             (long long)(update->ticket / shares + 1), (long long)(variables->updates + 1));
        stage(variables, update, variables->shares[update->ticket % shares]);
        ticket_set_add(&variables->applied, update->ticket);
    }
    *ret_verdict = verdict;
    return 0;
}

int variables_reduce(struct variables *variables, double *ret_squares, struct error *error)
{
    int64_t end = (variables->updates + 1) * variables->options.shares;
    if (variables->applied.low < end)
        return error_set(error, ERROR_INTERNAL, "internal error: ticket %lld of step %lld is missing",
                         (long long)variables->applied.low, (long long)(variables->updates + 1));
    reduction_plan_combine(variables->plan, (const float *const *)variables->shares, variables->gradient,
                           (size_t)variables->elements);
    int64_t statistics = variables->options.placement->statistics[variables->options.server];
    int64_t trained = variables->elements - statistics;
    if (trained > 0)
        gradient_norm_launch(variables->stream, variables->gradient + statistics, trained, variables->norm_blocks);
    if (device_stream_synchronise(variables->stream, error) < 0)
        return -1;
    double norm = gradient_norm_finish(variables->norm_blocks, trained);
    *ret_squares = norm * norm;
    return 0;
}

int variables_apply_step(struct variables *variables, int64_t step, double learning_rate, double gradient_scale,
                         struct error *error)
{
    if (variables->updates > step)
        return 0;
    if (variables->updates < step)
        return error_set(error, ERROR_INTERNAL,
                         "internal error: step %lld cannot be applied to the state after step %lld",
                         (long long)(step + 1), (long long)variables->updates);
    launch(variables, &(struct placement_run){.elements = variables->elements}, variables->gradient, learning_rate,
           gradient_scale);
    if (device_stream_synchronise(variables->stream, error) < 0)
        return -1;
    variables->updates++;
    return 0;
}

void variables_discard_tickets(struct variables *variables, const struct ticket_set *tickets, bool are_empty)
{
    if (are_empty)
        variables->empty += ticket_set_count_missing(tickets, &variables->applied);
    ticket_set_add_all(&variables->applied, tickets);
}
