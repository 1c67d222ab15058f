/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables.h"

#include <string.h>

#include "worker/optimizer/gradient_norm.h"
#include "worker/strategy/reduction_tree.h"

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

static int allocate(struct variables *variables, struct error *error)
{
    if (variables->options.shares > VARIABLES_SHARES_MAX)
        return error_set(error, ERROR_INVALID, "mode Synchronous cuts a batch into %u shares; at most %d work",
                         variables->options.shares, VARIABLES_SHARES_MAX);
    if (device_stream_new(variables->options.device, &variables->stream, error) < 0 ||
        allocate_flat(variables, &variables->parameters, error) < 0)
        return -1;
    for (unsigned i = 0; i < variables->slot_count; i++)
        if (allocate_flat(variables, &variables->slots[i], error) < 0)
            return -1;
    return allocate_shares(variables, error);
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
    device_free(device, variables->norm_blocks);
    reduction_plan_free(variables->plan);
    ticket_set_release(&variables->applied);
    *variables = (struct variables){0};
}

void variables_start(struct variables *variables, const float *flat, const struct ticket_set *applied, int64_t updates)
{
    placement_pack(variables->options.placement, variables->options.server, flat, variables->parameters);
    for (unsigned i = 0; i < variables->slot_count; i++)
        memset(variables->slots[i], 0, (size_t)variables->elements * sizeof(float));
    ticket_set_copy(&variables->applied, applied);
    variables->updates = updates;
    variables->holds_state = true;
}

/* ---------------------------------------------------------------- updates */

enum update_verdict variables_judge(const struct variables *variables, const struct update *update)
{
    if (update->lineage != variables->lineage)
        return UPDATE_OUTDATED;
    return ticket_set_has(&variables->applied, update->ticket) ? UPDATE_DUPLICATE : UPDATE_APPLIED;
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
    optimizer_update(variables->stream, variables->options.optimizer, &range);
}

int variables_apply(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error)
{
    const struct placement *placement = variables->options.placement;
    unsigned server = variables->options.server;
    enum update_verdict verdict = variables_judge(variables, update);
    if (verdict == UPDATE_APPLIED) {
        const struct placement_run whole = {.elements = variables->elements};
        unsigned runs = update->flat ? placement->run_counts[server] : 1;
        for (unsigned i = 0; i < runs; i++) {
            const struct placement_run *run = update->flat ? &placement->runs[server][i] : &whole;
            launch(variables, run, update->gradients + run->offset, update->learning_rate, update->gradient_scale);
        }
        if (device_stream_synchronise(variables->stream, error) < 0)
            return -1;
        ticket_set_add(&variables->applied, update->ticket);
        variables->updates++;
    }
    *ret_verdict = verdict;
    return 0;
}

/* ---------------------------------------------------------------- synchronous steps */

int variables_stage(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error)
{
    int64_t shares = variables->options.shares;
    enum update_verdict verdict = variables_judge(variables, update);
    if (verdict == UPDATE_APPLIED) {
        if (update->ticket / shares != variables->updates)
            return error_set(error, ERROR_INTERNAL, "a share of step %lld came while step %lld is computed",
                             (long long)(update->ticket / shares + 1), (long long)(variables->updates + 1));
        float *share = variables->shares[update->ticket % shares];
        if (update->flat)
            placement_pack(variables->options.placement, variables->options.server, update->gradients, share);
        else
            memcpy(share, update->gradients, (size_t)variables->elements * sizeof *share);
        ticket_set_add(&variables->applied, update->ticket);
    }
    *ret_verdict = verdict;
    return 0;
}

int variables_reduce(struct variables *variables, double *ret_squares, struct error *error)
{
    int64_t end = (variables->updates + 1) * variables->options.shares;
    if (variables->applied.low < end)
        return error_set(error, ERROR_INTERNAL, "ticket %lld of step %lld is missing",
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
        return error_set(error, ERROR_INTERNAL, "step %lld cannot be applied to the state after step %lld",
                         (long long)(step + 1), (long long)variables->updates);
    launch(variables, &(struct placement_run){.elements = variables->elements}, variables->gradient, learning_rate,
           gradient_scale);
    if (device_stream_synchronise(variables->stream, error) < 0)
        return -1;
    variables->updates++;
    return 0;
}

void variables_write_off(struct variables *variables, const struct ticket_set *tickets)
{
    ticket_set_add_all(&variables->applied, tickets);
}
