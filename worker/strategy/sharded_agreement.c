/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/sharded_parts.h"
#include "worker/strategy/state_transfer.h"

/* Channels of transfers. */
enum { CHANNEL_OWN = 65000, CHANNEL_MIRRORED };

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
    struct sharded_step_inputs inputs = optimizer->inputs;
    if (crew_group_tell(group, world->source_rank, &inputs, sizeof inputs, error) < 0)
        return -1;
    if (!holds || optimizer->options.state->progress.step == world->step)
        return 0;
    if (inputs.step != world->step)
        return error_set(
            error, ERROR_INTERNAL,
            "internal error: rank %u sent the gradient norm of step %lld instead of step %lld; please report it",
            world->source_rank, (long long)inputs.step, (long long)world->step);
    return sharded_optimizer_update(optimizer, &inputs, error);
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
    if (sharded_optimizer_gather(optimizer, group, holdings->sources, error) < 0 ||
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
