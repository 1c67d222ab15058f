/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/sharded_optimizer.h"

#include <math.h>

#include "common/memory.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/slot_pieces.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/state_transfer.h"

/* Channels of transfers. */
enum { CHANNEL_OWN = 65000, CHANNEL_MIRRORED };

/* The values that a rank needs for a step, besides the summed gradients. */
struct step_inputs {
    int64_t step;
    double norm, learning_rate, count_factor;
};

struct sharded_optimizer {
    struct strategy_options options;
    struct replica_set *replicas;
    struct device_sums *device_sums;   /* sums on the devices by NCCL; NULL: in host memory, by the collective */
    struct crew_communicator *devices; /* for device_sums */
    struct collective_shards shards;   /* of the flat arrays */
    int64_t owner_blocks;              /* blocks of the gradient's norm per owner, at most; the stride of block_sums */
    double *block_sums;                /* shared memory: the blocks' sums of squares, owner by owner */
    double *ordered_sums;              /* the same in the order of the flat arrays */
    int64_t summed_step;               /* the step whose summed gradients are complete here; 0: none */
    struct step_inputs inputs;         /* those of the last step, computed here or received */
    bool mixed_parameters;             /* own shards' parameters are a step newer than those of other ranks' shards */
};

static const struct shard_plan *plan_of(const struct sharded_optimizer *optimizer)
{
    return &optimizer->options.state->shards;
}

void sharded_optimizer_use(struct sharded_optimizer *optimizer, struct device_sums *sums,
                           struct crew_communicator *devices)
{
    optimizer->device_sums = sums;
    optimizer->devices = devices;
}

void sharded_optimizer_begin(struct sharded_optimizer *optimizer)
{
    optimizer->summed_step = 0;
}

collective_ticket sharded_optimizer_reduce(struct sharded_optimizer *optimizer, struct collective *group,
                                           const float *const *contributions, float *result, int64_t offset,
                                           int64_t elements)
{
    struct collective_shards here = optimizer->shards;
    here.offset = (size_t)offset;
    sharded_optimizer_begin(optimizer);
    return collective_reduce_scatter_start(group, contributions, result, (size_t)elements, &here);
}

/* ---------------------------------------------------------------- pieces */

/* A piece of a stripe, and where it is computed. */
struct piece {
    struct shard_stripe at;
    struct device_stream *stream;
    float *parameters;
    const float *gradient;
};

/* Devices that have the slots between them are each for their own pieces, those that share memory take turns. */
static struct piece piece_of(const struct sharded_optimizer *optimizer, unsigned owner, int64_t index, unsigned device)
{
    const struct shard_plan *plan = plan_of(optimizer);
    unsigned count;
    struct device_stream *const *streams = replica_set_streams(optimizer->replicas, &count);
    unsigned computes = plan->devices > 1 ? device : (unsigned)(index % count);
    struct piece piece = {.at = shard_piece(plan, owner, index, device),
                          .stream = streams[computes],
                          .parameters = replica_set_parameters(optimizer->replicas, computes),
                          .gradient = replica_set_gradients(optimizer->replicas)[0]};
    if (optimizer->device_sums != NULL) /* each has the sums that it needs */
        piece.gradient = replica_set_device_gradients(optimizer->replicas, computes)[0];
    return piece;
}

/* ---------------------------------------------------------------- the norm */

static double *sums_of(const struct sharded_optimizer *optimizer, unsigned owner, struct shard_stripe stripe)
{
    return optimizer->block_sums + owner * optimizer->owner_blocks + stripe.slot / SQUARE_SUM_BLOCK;
}

static int measure_own(struct sharded_optimizer *optimizer, struct error *error)
{
    const struct shard_plan *plan = plan_of(optimizer);
    unsigned own = optimizer->options.state->shard_rank;
    for (int64_t i = 0; i < shard_stripes(plan, own); i++)
        for (unsigned device = 0; device < plan->devices; device++) {
            const struct piece piece = piece_of(optimizer, own, i, device);
            if (piece.at.elements > 0)
                gradient_norm_launch(piece.stream, piece.gradient + piece.at.first, piece.at.elements,
                                     sums_of(optimizer, own, piece.at));
        }
    return replica_set_synchronise(optimizer->replicas, error);
}

/* The blocks in order, as one rank alone would add them. */
static double add_blocks(struct sharded_optimizer *optimizer)
{
    const struct shard_plan *plan = plan_of(optimizer);
    for (unsigned owner = 0; owner < plan->size; owner++) {
        for (int64_t i = 0; i < shard_stripes(plan, owner); i++) {
            struct shard_stripe stripe = shard_stripe(plan, owner, i);
            const double *from = sums_of(optimizer, owner, stripe);
            double *to = optimizer->ordered_sums + (stripe.first - plan->statistics) / SQUARE_SUM_BLOCK;
            for (int64_t block = 0; block < gradient_norm_blocks(stripe.elements); block++)
                to[block] = from[block];
        }
    }
    return gradient_norm_finish(optimizer->ordered_sums, plan->elements - plan->statistics);
}

static int measure_norm(struct sharded_optimizer *optimizer, struct collective *group, double *ret_norm,
                        struct error *error)
{
    const unsigned size = plan_of(optimizer)->size;
    const struct collective_shards places = {.stripe = (size_t)optimizer->owner_blocks * 2}; /* floats */
    unsigned owners[CREW_SIZE_MAX];
    for (unsigned rank = 0; rank < size; rank++)
        owners[rank] = rank;
    if (measure_own(optimizer, error) < 0 ||
        (size > 1 && collective_all_gather(group, (float *)optimizer->block_sums, places.stripe * size, &places, owners,
                                           error) < 0))
        return -1;
    *ret_norm = add_blocks(optimizer) / strategy_loss_scale(&optimizer->options);
    return 0;
}

/* ---------------------------------------------------------------- the update */

static void update_piece(const struct sharded_optimizer *optimizer, const struct piece *piece,
                         struct optimizer_range range)
{
    range.elements = piece->at.elements;
    range.parameters = piece->parameters + piece->at.first;
    range.gradients = piece->gradient + piece->at.first;
    if (range.elements > 0)
        optimizer_update(piece->stream, optimizer->options.optimizer, &range);
}

/* The `number`th of those that this rank keeps. */
static void update_shard(const struct sharded_optimizer *optimizer, const struct shard_kept *kept, unsigned number,
                         struct optimizer_range range)
{
    const struct training_state *state = optimizer->options.state;
    for (int64_t i = 0; i < shard_stripes(plan_of(optimizer), kept->owner); i++)
        for (unsigned device = 0; device < plan_of(optimizer)->devices; device++) {
            const struct piece piece = piece_of(optimizer, kept->owner, i, device);
            for (unsigned s = 0; s < state->optimizer_slots; s++)
                range.slots[s] = state->pieces != NULL ? slot_pieces_at(state->pieces, device, s, number, i)
                                                       : state->slots[s] + kept->slot + piece.at.slot;
            update_piece(optimizer, &piece, range);
        }
}

/* Running statistics have no slots; they go with the first piece. */
static bool has_statistics(const struct sharded_optimizer *optimizer)
{
    const struct shard_plan *plan = plan_of(optimizer);
    unsigned own = optimizer->options.state->shard_rank;
    return plan->statistics > 0 && (own == 0 || shard_mirrored(plan, own) == 0);
}

static struct piece statistics_of(const struct sharded_optimizer *optimizer)
{
    struct piece piece = piece_of(optimizer, 0, 0, 0);
    piece.at = (struct shard_stripe){.elements = plan_of(optimizer)->statistics};
    return piece;
}

static void update_statistics(const struct sharded_optimizer *optimizer, struct optimizer_range range)
{
    if (!has_statistics(optimizer))
        return;
    const struct piece piece = statistics_of(optimizer);
    range.statistics = piece.at.elements;
    update_piece(optimizer, &piece, range);
}

/* Updates the slots and parameters of the shards that this rank owns and mirrors, and the state's step. */
static int take_step(struct sharded_optimizer *optimizer, const struct step_inputs *inputs, struct error *error)
{
    const struct strategy_options *options = &optimizer->options;
    struct shard_kept kept[SHARDS_KEPT_MAX];
    unsigned count = shard_kept(plan_of(optimizer), options->state->shard_rank, kept);
    double limit = options->gradient_clip_norm;
    const struct optimizer_range range = {
        .step = inputs->step - options->state->progress.scaling.skipped_steps,
        .learning_rate = inputs->learning_rate,
        .gradient_scale = (limit > 0 ? gradient_clip_factor(inputs->norm, limit) : 1.0) / strategy_loss_scale(options) *
                          inputs->count_factor,
    };
    bool skipped = !isfinite(inputs->norm);
    strategy_leave_boundary(options);
    if (!skipped) {
        optimizer->mixed_parameters = true;
        update_statistics(optimizer, range);
        for (unsigned k = 0; k < count; k++)
            update_shard(optimizer, &kept[k], k, range);
    }
    if (replica_set_synchronise(optimizer->replicas, error) < 0)
        return -1;
    optimizer->inputs = *inputs;
    replica_set_advance(optimizer->replicas, inputs->step, skipped);
    return 0;
}

/* ---------------------------------------------------------------- all-gather of parameters */

static void copy_to_host(const struct sharded_optimizer *optimizer, const struct piece *piece)
{
    device_copy(piece->stream, &(struct copy){.bytes = piece->at.elements * (int64_t)sizeof(float),
                                              .from = piece->parameters + piece->at.first,
                                              .to = optimizer->options.state->host.parameters + piece->at.first});
}

/* Copies the updated pieces from each device; the rest comes from other ranks. */
static int pieces_to_host(const struct sharded_optimizer *optimizer, struct error *error)
{
    const struct shard_plan *plan = plan_of(optimizer);
    struct shard_kept kept[SHARDS_KEPT_MAX];
    unsigned count = shard_kept(plan, optimizer->options.state->shard_rank, kept);
    for (unsigned k = 0; k < count; k++)
        for (int64_t i = 0; i < shard_stripes(plan, kept[k].owner); i++)
            for (unsigned device = 0; device < plan->devices; device++) {
                const struct piece piece = piece_of(optimizer, kept[k].owner, i, device);
                if (piece.at.elements > 0)
                    copy_to_host(optimizer, &piece);
            }
    if (has_statistics(optimizer)) {
        const struct piece piece = statistics_of(optimizer);
        copy_to_host(optimizer, &piece);
    }
    return replica_set_synchronise(optimizer->replicas, error);
}

static int parameters_to_host(struct sharded_optimizer *optimizer, struct error *error)
{
    return plan_of(optimizer)->devices > 1 ? pieces_to_host(optimizer, error)
                                           : training_state_parameters_to_host(optimizer->options.state, error);
}

/* Gives every rank the parameters of all shards. sources[i] is the rank that sends the shard that rank i
 * owns; if `sources` is NULL, each owner sends its shard to the ranks that do not mirror it. */
static int gather_parameters(struct sharded_optimizer *optimizer, struct collective *group, const unsigned *sources,
                             struct error *error)
{
    struct training_state *state = optimizer->options.state;
    if (parameters_to_host(optimizer, error) < 0 ||
        (state->shards.size > 1 && collective_all_gather(group, state->host.parameters, (size_t)state->layout.elements,
                                                         &optimizer->shards, sources, error) < 0) ||
        training_state_parameters_to_device(state, error) < 0 ||
        replica_set_give_parameters(optimizer->replicas, error) < 0)
        return -1;
    optimizer->mixed_parameters = false;
    return 0;
}

bool sharded_optimizer_is_whole(const struct sharded_optimizer *optimizer)
{
    return !optimizer->mixed_parameters;
}

static int give_parameters(struct sharded_optimizer *optimizer, struct collective *group, struct error *error)
{
    if (optimizer->device_sums == NULL)
        return gather_parameters(optimizer, group, NULL, error);
    float *parameters[STRATEGY_DEVICES_MAX];
    for (unsigned device = 0; device < plan_of(optimizer)->devices; device++)
        parameters[device] = replica_set_parameters(optimizer->replicas, device);
    if (device_sums_start_gather(optimizer->device_sums, optimizer->devices, parameters, error) < 0)
        return -1;
    if (device_sums_wait(optimizer->device_sums, optimizer->devices, error) < 0)
        return -1;
    optimizer->mixed_parameters = false;
    return 0;
}

int sharded_optimizer_apply(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            double learning_rate, const float *controls, struct strategy_result *ret_result,
                            struct error *error)
{
    struct strategy_result result = {.step = optimizer->options.state->progress.step + 1};
    replica_set_read_controls(optimizer->replicas, controls, world->size, &result);
    optimizer->summed_step = result.step;
    if (measure_norm(optimizer, group, &result.gradient_norm, error) < 0)
        return -1;
    result.gradient_norm *= result.count_factor;
    if (strategy_judge(&optimizer->options, &result, error) < 0)
        return -1;
    const struct step_inputs inputs = {result.step, result.gradient_norm, learning_rate, result.count_factor};
    if (take_step(optimizer, &inputs, error) < 0 || (!result.skipped && give_parameters(optimizer, group, error) < 0))
        return -1;
    *ret_result = result;
    return 0;
}

/* The ranks that hold their shards. */
struct holdings {
    bool holds[CREW_SIZE_MAX]; /* its two shards as of the world's step, or the sums that make them so */
    unsigned sources[CREW_SIZE_MAX];
};

/* ---------------------------------------------------------------- which rank holds what */

/* Everything at the world's step, or one step behind with the sums of that one. */
static bool can_hold(const struct sharded_optimizer *optimizer, const struct world *world, bool holds_state)
{
    int64_t step = optimizer->options.state->progress.step;
    return holds_state && (step == world->step || (step == world->step - 1 && optimizer->summed_step == world->step));
}

static int tell_holdings(struct collective *group, const struct world *world, bool holds, struct holdings *ret_holdings,
                         struct error *error)
{
    float words[CREW_SIZE_MAX] = {0};
    words[world->rank] = holds;
    if (crew_group_sum(group, words, world->size, error) < 0)
        return -1;
    for (unsigned rank = 0; rank < world->size; rank++)
        ret_holdings->holds[rank] = words[rank] > 0;
    return 0;
}

/* Whether each shard is still there. */
static bool find_sources(const struct shard_plan *plan, struct holdings *holdings)
{
    for (unsigned owner = 0; owner < plan->size; owner++) {
        unsigned mirror = shard_mirror(plan, owner);
        holdings->sources[owner] = holdings->holds[owner] ? owner : mirror;
        if (!holdings->holds[owner] && !holdings->holds[mirror])
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- to one step */

/* Some have taken a step that others have only summed. */
static int catch_up(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                    bool holds, struct error *error)
{
    struct step_inputs inputs = optimizer->inputs;
    if (crew_group_tell(group, world->source_rank, &inputs, sizeof inputs, error) < 0)
        return -1;
    if (!holds || optimizer->options.state->progress.step == world->step)
        return 0;
    if (inputs.step != world->step)
        return error_set(
            error, ERROR_INTERNAL,
            "internal error: rank %u sent the gradient norm of step %lld instead of step %lld; please report it",
            world->source_rank, (long long)inputs.step, (long long)world->step);
    return take_step(optimizer, &inputs, error);
}

/* ---------------------------------------------------------------- refilling ranks without shards */

/* Slots of one of the two shards that a rank keeps, all of the optimizer's. */
struct half {
    int64_t first, elements;
    unsigned channel; /* the receiver's own shard, or the one that it mirrors */
};

static struct half own_half(const struct training_state *state, unsigned channel)
{
    return (struct half){0, shard_elements(&state->shards, state->shard_rank), channel};
}

static struct half mirrored_half(const struct training_state *state, unsigned channel)
{
    int64_t own = shard_elements(&state->shards, state->shard_rank);
    return (struct half){own, training_state_slot_elements(state) - own, channel};
}

static int give_half(const struct sharded_optimizer *optimizer, struct collective *group, unsigned rank,
                     struct half half, struct error *error)
{
    const struct training_state *state = optimizer->options.state;
    for (unsigned s = 0; s < state->slot_count; s++)
        if (state_transfer_give(group, rank, half.channel, state->host.slots[s] + half.first,
                                (size_t)half.elements * sizeof(float), error) < 0)
            return -1;
    return 0;
}

static int take_half(const struct sharded_optimizer *optimizer, struct collective *group, unsigned rank,
                     struct half half, struct error *error)
{
    const struct training_state *state = optimizer->options.state;
    for (unsigned s = 0; s < state->slot_count; s++)
        if (state_transfer_take(group, rank, half.channel, state->host.slots[s] + half.first,
                                (size_t)half.elements * sizeof(float), state->slot_names[s], error) < 0)
            return -1;
    return 0;
}

/* `rank` has nothing: its own shard is in its mirror, and the one that it mirrors in its owner. */
static int refill(const struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                  unsigned rank, struct error *error)
{
    const struct training_state *state = optimizer->options.state;
    unsigned mirror = shard_mirror(&state->shards, rank), before = shard_mirrored(&state->shards, rank);
    if (world->rank == rank && (take_half(optimizer, group, mirror, own_half(state, CHANNEL_OWN), error) < 0 ||
                                take_half(optimizer, group, before, mirrored_half(state, CHANNEL_MIRRORED), error) < 0))
        return -1;
    if (world->rank == mirror && give_half(optimizer, group, rank, mirrored_half(state, CHANNEL_OWN), error) < 0)
        return -1;
    if (world->rank == before && give_half(optimizer, group, rank, own_half(state, CHANNEL_MIRRORED), error) < 0)
        return -1;
    return 0;
}

/* By way of the host's copies. */
static int spread(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                  const struct holdings *holdings, struct error *error)
{
    struct training_state *state = optimizer->options.state;
    struct training_progress progress = state->progress;
    if (holdings->holds[world->rank] && training_state_to_host(state, error) < 0)
        return -1;
    for (unsigned rank = 0; rank < world->size; rank++)
        if (!holdings->holds[rank] && refill(optimizer, group, world, rank, error) < 0)
            return -1;
    if (gather_parameters(optimizer, group, holdings->sources, error) < 0 ||
        crew_group_tell(group, world->source_rank, &progress, sizeof progress, error) < 0)
        return -1;
    state->progress = progress;
    return holdings->holds[world->rank] ? 0 : training_state_to_device(state, error);
}

int sharded_optimizer_agree(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            bool *holds_state, bool *ret_lost, struct error *error)
{
    struct holdings holdings;
    bool holds = can_hold(optimizer, world, *holds_state);
    collective_set_label(group, "state transfer");
    if (tell_holdings(group, world, holds, &holdings, error) < 0)
        return -1;
    *ret_lost = !find_sources(&optimizer->options.state->shards, &holdings);
    if (*ret_lost)
        return 0;
    *holds_state = holds;
    if (catch_up(optimizer, group, world, holds, error) < 0 || spread(optimizer, group, world, &holdings, error) < 0)
        return -1;
    *holds_state = true;
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

int sharded_optimizer_init_state(struct training_state *state, const struct strategy_device *devices, unsigned count,
                                 const struct optimizer_spec *optimizer, int64_t seed, unsigned rank, unsigned size,
                                 struct error *error)
{
    struct device *own[STRATEGY_DEVICES_MAX];
    for (unsigned i = 0; i < count; i++)
        own[i] = devices[i].device;
    const struct training_shard shard = {.rank = rank, .size = size, .devices = own, .device_count = count};
    return training_state_init_shard(state, &shard, graph_layout(devices[0].graph), optimizer, seed, error);
}

int sharded_optimizer_new(const struct strategy_options *options, struct replica_set *replicas,
                          struct sharded_optimizer **ret_optimizer, struct error *error)
{
    const struct shard_plan *plan = &options->state->shards;
    struct sharded_optimizer *optimizer = memory_allocate(1, sizeof *optimizer);
    optimizer->options = *options;
    optimizer->replicas = replicas;
    optimizer->shards = (struct collective_shards){.head = (size_t)plan->statistics, .stripe = (size_t)plan->stripe};
    optimizer->owner_blocks = shard_stripes(plan, 0) * (plan->stripe / SQUARE_SUM_BLOCK);
    size_t places = (size_t)(optimizer->owner_blocks * plan->size);
    if (device_allocate(options->device, MEMORY_SHARED, places * sizeof(double), (void **)&optimizer->block_sums,
                        error) < 0) {
        free(optimizer);
        return -1;
    }
    optimizer->ordered_sums = memory_allocate(places, sizeof(double));
    *ret_optimizer = optimizer;
    return 0;
}

void sharded_optimizer_free(struct sharded_optimizer *optimizer)
{
    if (optimizer == NULL)
        return;
    device_free(optimizer->options.device, optimizer->block_sums);
    free(optimizer->ordered_sums);
    free(optimizer);
}

void sharded_optimizer_forget(struct sharded_optimizer *optimizer)
{
    optimizer->summed_step = 0;
    optimizer->inputs = (struct step_inputs){0};
    optimizer->mixed_parameters = false;
}
