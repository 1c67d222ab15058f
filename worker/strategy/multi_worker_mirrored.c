/* SPDX-License-Identifier: Apache-2.0
 *
 * MultiWorkerMirrored: a replica on every device of every process, kept equal by
 * reducing each step's gradients over all of them. Buckets go out as the backward pass makes
 * them final; nothing is applied before all of them are back. Where the crew's devices
 * know each other (crew_communicator.h) gradients go between them, else through the host.
 */
#include <stdio.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/data/sampler.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_arithmetic.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/crew_nodes.h"
#include "worker/strategy/crew_restore.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/exact_values.h"
#include "worker/strategy/local_rounds.h"
#include "worker/strategy/replica_set.h"
#include "worker/strategy/sharded_optimizer.h"
#include "worker/strategy/strategy_table.h"

struct multi_worker_mirrored {
    struct strategy base;
    unsigned first_shard, end_shard; /* of the logical shards: those of this rank */
    struct replica_set *replicas;
    struct local_rounds *rounds;      /* instead of the replicas, with local steps */
    struct sharded_optimizer *shards; /* beside them, with a sharded optimizer */
    struct reduction_plan *plan;
    struct collective *group;
    struct crew_communicator *devices; /* NULL: gradients go through the host */
    struct device_sums *sums;          /* by way of `devices`; NULL: through the host */
    unsigned bucket_count;
    collective_ticket *tickets;
    float controls[CONTROL_WORDS_MAX]; /* reduced */
    int64_t started_ns;                /* of the step */
};

/* ---------------------------------------------------------------- forming the crew */

static void release_replicas(struct multi_worker_mirrored *strategy)
{
    device_sums_free(strategy->sums);
    sharded_optimizer_free(strategy->shards);
    replica_set_free(strategy->replicas);
    strategy->sums = NULL;
    strategy->shards = NULL;
    strategy->replicas = NULL;
}

static void close_group(struct multi_worker_mirrored *strategy)
{
    if (strategy->group == NULL)
        return;
    if (strategy->replicas != NULL && replica_set_uses_group(strategy->replicas)) {
        collective_abort(strategy->group, ERROR_CANCELLED, "the group is closed");
        replica_set_settle(strategy->replicas);
    }
    crew_group_close(&strategy->base.options, &strategy->group);
    if (strategy->replicas != NULL)
        replica_set_settle(strategy->replicas);
}

/* Afterwards nothing reads or writes gradients any more, unless it fails. */
static int disband(struct multi_worker_mirrored *strategy, struct error *error)
{
    int result = crew_communicator_end(strategy->devices, error);
    close_group(strategy);
    if (result < 0 || device_sums_settle(strategy->sums, error) < 0)
        return -1;
    return local_rounds_settle(strategy->rounds, error);
}

static const enum collective_algorithm algorithms[] = {
    [COLLECTIVE_AUTO] = COLLECTIVE_ALGORITHM_AUTO,
    [COLLECTIVE_RING] = COLLECTIVE_ALGORITHM_RING,
    [COLLECTIVE_HIERARCHICAL] = COLLECTIVE_ALGORITHM_HIERARCHICAL,
    [COLLECTIVE_REDUCE_TO_ONE] = COLLECTIVE_ALGORITHM_REDUCE_TO_ONE,
    [COLLECTIVE_NCCL] = COLLECTIVE_ALGORITHM_AUTO, /* for what does go through the host */
};

/* The tree's leaves are the logical shards, where its order is kept; else each rank puts in one sum. */
static unsigned count_leaves(const struct multi_worker_mirrored *strategy, const struct world *world)
{
    bool one_sum = strategy->rounds != NULL || strategy->base.options.crew.collective == COLLECTIVE_RING;
    return one_sum ? world->size : world->logical_shards;
}

static bool has_shards(const struct strategy *base)
{
    return base->options.state->shards.size > 0;
}

static int make_sums(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    const struct device_sums_options sums = {.devices = options->devices,
                                             .device_count = options->device_count,
                                             .rank = world->rank,
                                             .size = world->size,
                                             .shards = world->logical_shards,
                                             .in_any_order = options->sums.in_any_order,
                                             .plan = has_shards(&strategy->base) ? &options->state->shards : NULL};
    return device_sums_new(&sums, &strategy->sums, error);
}

/* With a sharded optimizer a worker's devices have one set of variables between them, or of the slots alone where each has memory
 * of its own. */
static int make_replicas(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct strategy *base = &strategy->base;
    struct strategy_options options = base->options;
    bool shards = has_shards(base);
    if (shards && options.state->shards.size != world->size)
        return error_set(error, ERROR_INVALID,
                         "a crew of %u workers cannot go on with %u while it shards the optimizer",
                         options.state->shards.size, world->size);
    options.sums.gradients_stay = crew_communicator_is_there(strategy->devices);
    if (replica_set_new(&options, shards ? VARIABLES_CENTRAL : VARIABLES_MIRRORED, world->logical_shards,
                        strategy->first_shard, strategy->end_shard, &strategy->replicas, error) < 0)
        return -1;
    if ((options.sums.gradients_stay && make_sums(strategy, world, error) < 0) ||
        (shards && sharded_optimizer_new(&base->options, strategy->replicas, &strategy->shards, error) < 0))
        return -1;
    if (shards)
        sharded_optimizer_use(strategy->shards, strategy->sums, strategy->devices);
    return 0;
}

/* A crew of the same shape as before keeps its plan, and its replicas. */
static int fit_to_world(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct strategy *base = &strategy->base;
    if (strategy->plan != NULL && world->size == base->world.size && world->rank == base->world.rank &&
        world->logical_shards == base->world.logical_shards)
        return 0;
    release_replicas(strategy);
    reduction_plan_free(strategy->plan);
    strategy->plan = NULL;
    if (reduction_plan_new(count_leaves(strategy, world), world->size, &strategy->plan, error) < 0)
        return -1;
    reduction_rank_leaves(world->logical_shards, world->rank, world->size, &strategy->first_shard,
                          &strategy->end_shard);
    if (strategy->rounds != NULL)
        return local_rounds_fit(strategy->rounds, world->logical_shards, strategy->first_shard, strategy->end_shard,
                                error);
    return 0;
}

/* Makes the replicas where their gradients are summed, on the devices or on the host. */
static int fit_replicas(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    if (strategy->devices != NULL && crew_communicator_form(strategy->devices, strategy->group, world, error) < 0)
        return -1;
    if (strategy->rounds != NULL)
        return local_rounds_join(strategy->rounds, strategy->devices, world, error);
    if (strategy->replicas != NULL && crew_communicator_is_there(strategy->devices) != (strategy->sums != NULL))
        release_replicas(strategy);
    return strategy->replicas != NULL ? 0 : make_replicas(strategy, world, error);
}

static int open_group(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    struct collective_reduction reduction = {
        .combine = reduction_plan_combine, .context = strategy->plan, .merges = reduction_plan_merges(strategy->plan)};
    for (unsigned rank = 0; rank < world->size; rank++)
        reduction.contributions[rank] = reduction_plan_contributions(strategy->plan, rank);
    return crew_group_open(options, world, algorithms[options->crew.collective], &reduction, &strategy->group, error);
}

static int find_nodes(struct multi_worker_mirrored *strategy, struct error *error)
{
    unsigned nodes[CREW_SIZE_MAX];
    if (strategy->base.options.crew.collective != COLLECTIVE_HIERARCHICAL)
        return 0;
    if (crew_nodes_find(&strategy->base, strategy->base.options.crew.machine, nodes, error) < 0)
        return -1;
    collective_set_nodes(strategy->group, nodes);
    return 0;
}

static int copy_state(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct training_state *state = strategy->base.options.state;
    if (world->rank == world->source_rank && training_state_to_host(state, error) < 0)
        return -1;
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(state, spans);
    for (unsigned i = 0; i < count; i++)
        if (collective_broadcast(strategy->group, world->source_rank, world->receives, spans[i].bytes, spans[i].length,
                                 error) < 0)
            return error_wrap(error, "copying %s from rank %u", spans[i].name, world->source_rank);
    return world->receives[world->rank] ? training_state_to_device(state, error) : 0;
}

/* Nobody holds any state: the chief gets it, and the others wait as long as that takes. */
static int await_restore(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct strategy *base = &strategy->base;
    collective_set_label(strategy->group, "the chief's restore");
    if (world->rank == 0 && base->options.calls.restore(base->options.calls.context, error) < 0)
        return -1;
    base->holds_state |= world->rank == 0;
    return collective_barrier(strategy->group, error);
}

/* A replica that is being overwritten holds nothing until the last byte is there. */
static int agree_on_state(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct strategy *base = &strategy->base;
    if (world->source == WORLD_SOURCE_CHIEF && await_restore(strategy, world, error) < 0)
        return -1;
    collective_set_label(strategy->group, "state transfer");
    if (world->receives[world->rank])
        base->holds_state = false;
    if (copy_state(strategy, world, error) < 0)
        return -1;
    base->holds_state = true;
    return strategy->replicas != NULL ? replica_set_spread(strategy->replicas, error) : 0;
}

static int start_afresh(struct multi_worker_mirrored *strategy, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    const struct world *world = &strategy->base.world;
    sharded_optimizer_forget(strategy->shards);
    training_state_release(options->state);
    return sharded_optimizer_init_state(options->state, options->devices, options->device_count, options->optimizer,
                                        (int64_t)options->sampler->seed, world->rank, world->size, error);
}

/* All ranks take their shards from a checkpoint if no rank is left that holds some of them. */
static int take_shards(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    struct strategy *base = &strategy->base;
    bool lost = true;
    if (world->source == WORLD_SOURCE_PEER &&
        sharded_optimizer_agree(strategy->shards, strategy->group, world, &base->holds_state, &lost, error) < 0)
        return -1;
    if (!lost)
        return 0;
    base->holds_state = false;
    return start_afresh(strategy, error) < 0 ? -1 : crew_restore_parts(base, strategy->group, error);
}

static int agree_on_shards(struct multi_worker_mirrored *strategy, const struct world *world, struct error *error)
{
    return take_shards(strategy, world, error) < 0 ? -1 : replica_set_spread(strategy->replicas, error);
}

static int form(struct multi_worker_mirrored *strategy, struct error *error)
{
    struct strategy *base = &strategy->base;
    if (disband(strategy, error) < 0)
        return -1;
    struct member_standing standing = {.holds_state = base->holds_state,
                                       .applied_step = base->options.state->progress.step,
                                       .planned = base->reform_is_planned};
    base->reform_is_planned = false;
    struct world world;
    if (member_agree(base->options.crew.member, &standing, &world, error) < 0 ||
        strategy_devices_set_arithmetic(&base->options, &world, error) < 0 || fit_to_world(strategy, &world, error) < 0)
        return -1;
    base->world = world;
    if (open_group(strategy, &world, error) < 0 || find_nodes(strategy, error) < 0 ||
        fit_replicas(strategy, &world, error) < 0)
        return -1;
    if (strategy->replicas != NULL)
        replica_set_join(strategy->replicas, strategy->group, world.rank, world.size);
    return strategy->shards != NULL ? agree_on_shards(strategy, &world, error)
                                    : agree_on_state(strategy, &world, error);
}

static int mirrored_reform(struct strategy *base, struct error *error)
{
    for (;;) {
        struct error cause = ERROR_INIT;
        if (form((struct multi_worker_mirrored *)base, &cause) == 0)
            return 0;
        if (cause.kind == ERROR_UNAVAILABLE)
            continue;
        if (error != NULL)
            *error = cause;
        return -1;
    }
}

/* ---------------------------------------------------------------- a step */

static void start_bucket(struct multi_worker_mirrored *strategy, unsigned index)
{
    struct graph_bucket bucket = graph_bucket(strategy->base.options.graph, index);
    const float *const *gradients = replica_set_gradients(strategy->replicas);
    const float *here[REDUCTION_COVER_MAX];
    for (unsigned i = 0; i < replica_set_contributions(strategy->replicas); i++)
        here[i] = gradients[i] + bucket.offset;
    if (strategy->shards != NULL)
        strategy->tickets[index] = sharded_optimizer_reduce(strategy->shards, strategy->group, here, (float *)here[0],
                                                            bucket.offset, bucket.elements);
    else
        strategy->tickets[index] =
            collective_all_reduce_start_quietly(strategy->group, here, (float *)here[0], (size_t)bucket.elements);
}

/* The communication thread is only woken where this one has to wait for a device: buckets that are final together, as a large
 * layer's are, would else wake it for each, to find this thread at the same work. */
static int start_buckets(struct multi_worker_mirrored *strategy, struct error *error)
{
    for (unsigned index = 0; index < strategy->bucket_count; index++) {
        if (index > 0 && !replica_set_bucket_is_final(strategy->replicas, index))
            collective_attend(strategy->group);
        if (replica_set_wait_bucket(strategy->replicas, index, error) < 0)
            return -1;
        start_bucket(strategy, index);
    }
    if (!replica_set_has_passed(strategy->replicas))
        collective_attend(strategy->group);
    return 0;
}

/* The same without the overlap, to measure what it is worth. */
static int start_buckets_behind_pass(struct multi_worker_mirrored *strategy, struct error *error)
{
    for (unsigned index = 0; index < strategy->bucket_count; index++)
        if (replica_set_wait_bucket(strategy->replicas, index, error) < 0)
            return -1;
    for (unsigned index = 0; index < strategy->bucket_count; index++)
        start_bucket(strategy, index);
    return 0;
}

static int reduce(struct multi_worker_mirrored *strategy, unsigned votes, struct error *error)
{
    const struct world *world = &strategy->base.world;
    bool apart = strategy->base.options.sums.wait_for_pass;
    if ((apart ? start_buckets_behind_pass : start_buckets)(strategy, error) < 0)
        return -1;
    int64_t own_ns = clock_monotonic_ns() - strategy->started_ns + collective_take_frozen_ns(strategy->group);
    unsigned word = strategy_vote_word(votes, own_ns); /* passes are (all but) over */
    if (replica_set_finish_passes(strategy->replicas, world->rank, word, error) < 0)
        return -1;
    collective_ticket last = collective_all_reduce_start_quietly(
        strategy->group, replica_set_controls(strategy->replicas), strategy->controls, CONTROL_VOTES + world->size);
    for (unsigned index = 0; index < strategy->bucket_count; index++)
        if (collective_wait(strategy->group, strategy->tickets[index], error) < 0)
            return -1;
    return collective_wait(strategy->group, last, error);
}

static int64_t take_frozen(struct multi_worker_mirrored *strategy)
{
    return collective_take_frozen_ns(strategy->group) + crew_communicator_take_frozen_ns(strategy->devices);
}

/* Returns the time until the batches were read and the passes done. A rank that queues many sums waits for others' gradients meanwhile. */
static int64_t own_time(struct multi_worker_mirrored *strategy, int64_t launched_ns)
{
    int64_t passed_ns = replica_set_passed_ns(strategy->replicas);
    (void)take_frozen(strategy); /* it is in that */
    return (passed_ns > launched_ns ? passed_ns : launched_ns) - strategy->started_ns;
}

/* The device runs part after part by itself, while the host waits for it and hears of peers. Each rank sends its control words after its
 * own passes, and receives the others' after theirs. */
static int reduce_on_devices(struct multi_worker_mirrored *strategy, unsigned votes, struct error *error)
{
    const struct world *world = &strategy->base.world;
    int64_t launched_ns = clock_monotonic_ns(), frozen_ns = take_frozen(strategy);
    replica_set_time_passes(strategy->replicas);
    if (strategy->shards != NULL)
        sharded_optimizer_begin(strategy->shards);
    if (device_sums_start(strategy->sums, strategy->devices, strategy->replicas, error) < 0 ||
        replica_set_await_passes(strategy->replicas, error) < 0)
        return -1;
    unsigned word = strategy_vote_word(votes, own_time(strategy, launched_ns) + frozen_ns);
    if (replica_set_finish_passes(strategy->replicas, world->rank, word, error) < 0 ||
        collective_all_reduce(strategy->group, replica_set_controls(strategy->replicas), strategy->controls,
                              CONTROL_VOTES + world->size, error) < 0)
        return -1;
    return device_sums_wait(strategy->sums, strategy->devices, error);
}

static int reduce_gradients(struct multi_worker_mirrored *strategy, unsigned votes, struct error *error)
{
    return strategy->sums != NULL ? reduce_on_devices(strategy, votes, error) : reduce(strategy, votes, error);
}

static int check_group(const struct multi_worker_mirrored *strategy, struct error *error)
{
    if (strategy->group == NULL)
        return error_set(error, ERROR_UNAVAILABLE, "the crew is not formed");
    return 0;
}

static int mirrored_step(struct strategy *base, double learning_rate, unsigned votes,
                         struct strategy_result *ret_result, struct error *error)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    int64_t examples;
    if (check_group(strategy, error) < 0)
        return -1;
    if (strategy->rounds != NULL)
        return local_rounds_run(strategy->rounds, strategy->group, &base->world, votes, ret_result,
                                &base->steps_abandoned, error);
    char label[32];
    snprintf(label, sizeof(label), "step %lld", (long long)base->options.state->progress.step + 1);
    collective_set_label(strategy->group, label);
    strategy->started_ns = clock_monotonic_ns();
    if (replica_set_start_passes(strategy->replicas, &examples, error) < 0 ||
        reduce_gradients(strategy, votes, error) < 0)
        return -1;
    if (strategy->shards != NULL)
        return sharded_optimizer_apply(strategy->shards, strategy->group, &base->world, learning_rate,
                                       strategy->controls, ret_result, error);
    return replica_set_apply(strategy->replicas, learning_rate, strategy->controls, base->world.size, ret_result,
                             error);
}

/* NCCL's own threads may still send after the stream's work is done, and ending the communicator drops what they have not sent. So no
 * rank leaves before all ranks have what they wait for. This rank has it already: if a peer is lost meanwhile, the next step notices. */
static void mirrored_await_delivery(struct strategy *base)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    if (crew_communicator_is_there(strategy->devices))
        (void)collective_barrier(strategy->group, NULL);
}

static void mirrored_stand_at_boundary(struct strategy *base)
{
    struct local_rounds *rounds = ((struct multi_worker_mirrored *)base)->rounds;
    if (rounds != NULL)
        local_rounds_rewind(rounds);
}

static void mirrored_break_off(struct strategy *base)
{
    struct collective *group = ((struct multi_worker_mirrored *)base)->group;
    if (group != NULL)
        collective_break_off(group, ERROR_UNAVAILABLE, "this worker leaves");
}

static bool mirrored_is_whole(const struct strategy *base)
{
    const struct sharded_optimizer *shards = ((const struct multi_worker_mirrored *)base)->shards;
    return shards == NULL || sharded_optimizer_is_whole(shards);
}

static int64_t mirrored_step_before(const struct strategy *base)
{
    const struct local_rounds *rounds = ((const struct multi_worker_mirrored *)base)->rounds;
    int64_t step = base->options.state->progress.step;
    return rounds != NULL ? local_rounds_begin(rounds, step) : step - 1;
}

/* ---------------------------------------------------------------- small host values */

static struct collective *mirrored_group(struct strategy *base)
{
    return ((struct multi_worker_mirrored *)base)->group;
}

static int mirrored_sum(struct strategy *base, double *values, unsigned count, struct error *error)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    if (check_group(strategy, error) < 0)
        return -1;
    size_t total = exact_values_floats(count, base->world.size);
    SCOPED_FREE float *places = memory_allocate(total, sizeof(*places));
    exact_values_put(values, count, base->world.rank, places);
    if (crew_group_sum(strategy->group, places, total, error) < 0)
        return -1;
    exact_values_sum(places, count, base->world.size, values);
    return 0;
}

static int mirrored_meet(struct strategy *base, struct error *error)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    return check_group(strategy, error) < 0 ? -1 : crew_group_meet(strategy->group, error);
}

static int mirrored_share(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    return check_group(strategy, error) < 0 ? -1 : crew_group_tell(strategy->group, 0, bytes, length, error);
}

/* Each rank has a shard of the slots to write; the parameters are whole everywhere. */
static unsigned mirrored_writers(const struct strategy *base)
{
    return has_shards(base) ? base->options.state->shards.size : 1;
}

/* ---------------------------------------------------------------- life cycle */

static void mirrored_close(struct strategy *base)
{
    struct multi_worker_mirrored *strategy = (struct multi_worker_mirrored *)base;
    struct error cause = ERROR_INIT;
    if (disband(strategy, &cause) < 0 && base->options.calls.on_warning != NULL)
        base->options.calls.on_warning(base->options.calls.context, cause.message);
    release_replicas(strategy);
    crew_communicator_free(strategy->devices);
    local_rounds_free(strategy->rounds);
    reduction_plan_free(strategy->plan);
    free(strategy->tickets);
    free(strategy);
}

/* With local steps each worker's first device speaks for the others. */
static struct crew_communicator *connect_devices(const struct multi_worker_mirrored *strategy)
{
    struct strategy_options options = strategy->base.options;
    if (strategy->rounds != NULL)
        options.device_count = 1;
    return crew_communicator_new(&options);
}

static int mirrored_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    if (options->crew.member == NULL || options->crew.endpoint == NULL)
        return error_set(error, ERROR_INTERNAL, "internal error: MultiWorkerMirrored needs a member and an endpoint");
    struct multi_worker_mirrored *strategy = memory_allocate(1, sizeof(*strategy));
    strategy->base.options = *options;
    strategy->bucket_count = graph_bucket_count(options->graph);
    strategy->tickets = memory_allocate(strategy->bucket_count, sizeof(*strategy->tickets));
    bool local = options->spec != NULL && options->spec->local_steps > 0;
    if (local && local_rounds_new(options, &strategy->rounds, error) < 0) {
        mirrored_close(&strategy->base);
        return -1;
    }
    if (options->sums.may_use_devices)
        strategy->devices = connect_devices(strategy);
    *ret_strategy = &strategy->base;
    return 0;
}

/* Sums of gradients in the graph's buckets, or of each worker's change at the end of a round. */
static void plan_sums(const struct strategy_options *options, unsigned size, struct memory_plans *plans)
{
    struct shard_plan plan;
    const struct strategy_device first = {options->device, options->graph};
    shard_plan_init(&plan, graph_layout(options->graph), size, options->device_count, true);
    bool local = options->spec != NULL && options->spec->local_steps > 0;
    bool shards = options->spec != NULL && options->spec->sharded_optimizer;
    const struct device_sums_options sums = {.devices = &first,
                                             .device_count = local ? 1 : options->device_count,
                                             .size = size,
                                             .shards = local ? size : options->logical_shards,
                                             .elements = local ? graph_layout(options->graph)->elements : 0,
                                             .in_any_order = options->sums.in_any_order,
                                             .plan = shards ? &plan : NULL};
    device_sums_memory_plan(&sums, plans);
}

/* As for the crew that there is to be; an elastic one that shrinks gives each rank more shards. */
static void mirrored_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    unsigned size = options->crew.expected > 0 ? options->crew.expected : options->crew.size, first, end;
    unsigned rank = options->crew.rank < size ? options->crew.rank : size - 1;
    bool local = options->spec != NULL && options->spec->local_steps > 0;
    bool shards = options->spec != NULL && options->spec->sharded_optimizer;
    reduction_rank_leaves(options->logical_shards, rank, size, &first, &end);
    enum device_memory gradients = options->sums.communicator != NULL ? MEMORY_DEVICE : MEMORY_SHARED;
    replica_set_memory_plan(options, shards ? VARIABLES_CENTRAL : VARIABLES_MIRRORED,
                            local ? replica_set_gradients_place(options) : gradients, options->logical_shards, first,
                            end, plans);
    if (options->sums.communicator != NULL)
        plan_sums(options, size, plans);
    if (local)
        local_rounds_memory_plan(options, plans);
}

static const struct strategy_crew_operations mirrored_crew = {
    .break_off = mirrored_break_off,
    .await_delivery = mirrored_await_delivery,
    .meet = mirrored_meet,
    .group = mirrored_group,
    .writers = mirrored_writers,
};

const struct strategy_operations multi_worker_mirrored_strategy = {
    .type = STRATEGY_MULTI_WORKER_MIRRORED,
    .open = mirrored_open,
    .reform = mirrored_reform,
    .step = mirrored_step,
    .sum = mirrored_sum,
    .share = mirrored_share,
    .close = mirrored_close,
    .memory_plan = mirrored_memory_plan,
    .stand_at_boundary = mirrored_stand_at_boundary,
    .is_whole = mirrored_is_whole,
    .step_before = mirrored_step_before,
    .crew = &mirrored_crew,
};
