/* SPDX-License-Identifier: Apache-2.0
 *
 * PeerToPeer: every worker trains at its own pace on examples of its own, and no
 * step waits for anybody. Each update goes, divided by the number of seats, to all
 * others, which add it between two of their own steps. Now and then a worker also
 * meets one other, and both move to their mean: what one of them has missed is then
 * shared out and fades. Workers of even rank ask, those of odd rank answer, and
 * answering waits for nothing, so meetings cannot lock each other.
 *
 * The run is over when all together have finished the examples of its steps.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/data/step_record.h"
#include "worker/model/graph.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/own_sums.h"
#include "worker/strategy/peer_hub.h"
#include "worker/strategy/peer_staging.h"
#include "worker/strategy/replica_set.h"
#include "worker/strategy/strategy_table.h"

#define MEET_EVERY 16      /* own steps */
#define UNANSWERED_MS 1000 /* after this time without an answer, a meeting is moved to another peer */
#define SILENCE_MS 30000   /* nothing of a state has come: it is given up */
#define FETCH_LOOK_MS 200
#define MEAN_SHARE 4      /* of the grace period; the rest is for the step before the mean, and for its save */
#define HAND_OVER_SHARE 8 /* part of the grace period for handing examples over, before the mean */
#define HAND_OVER_MS 5000 /* where there is no such period */
#define HAND_OVER_TRIES 4 /* meetings instead of others: of each a copy of the parameters may be on its way */
#define RETRY_NS 50000000L
#define END_STALL_MS 30000
#define MISSING_TEXT_MAX 1024

struct peer_to_peer {
    struct strategy base;
    struct peer_hub *hub;
    struct peer_replica *shared;
    struct training_state
        own; /* the state's arrays; its progress is that of our own examples, updates and random words */
    struct sampler sampler;
    struct strategy_options replica_options;
    struct replica_set *replicas; /* one a device of ours, with the state between them, or copies of its parameters */
    struct own_sums sums;         /* of these */
    unsigned seat;
    uint64_t random;
    int64_t own_steps, step_before;
    int64_t finished[CREW_SIZE_MAX]; /* examples by seat; what the progress is of */
    int64_t told_lacking;
    float *mean[PEER_VECTORS_MAX]; /* the chief's last mean of all; while it is the state: what the chief has itself */
    float *theirs[PEER_VECTORS_MAX]; /* and a peer's */
    int64_t mean_step;               /* own steps when it was taken; -1: never */
    unsigned mean_count, mean_of;    /* replicas in it, and those that there were */
    unsigned mean_left;              /* while it is taken: others that have not been asked, or not answered */
    int64_t leave_ms;                /* while a mean is taken: when a request to leave was noticed; 0: there is none */
    bool mean_is_hurried;            /* and a worker was not waited for */
    struct error broken;             /* the device has not taken a state that it was given: it has neither */
};

static struct peer_to_peer *of(struct strategy *base)
{
    return (struct peer_to_peer *)base;
}

static int fail_as_broken(const struct peer_to_peer *strategy, struct error *error)
{
    if (error != NULL)
        *error = strategy->broken;
    return -1;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}

/* ---------------------------------------------------------------- the crew */

static void tell_stalls(struct peer_to_peer *strategy)
{
    const struct strategy_options *options = &strategy->base.options;
    char text[PEER_STALL_MAX];
    if (peer_hub_take_stall(strategy->hub, text) && options->calls.on_stall != NULL)
        options->calls.on_stall(options->calls.context, text);
}

/* Peers that died together may have had examples that only they had. These count as finished and are not computed again. */
static void tell_lacking(struct peer_to_peer *strategy)
{
    const struct strategy_options *options = &strategy->base.options;
    int64_t lacking = peer_hub_lacking(strategy->hub);
    char text[PEER_STALL_MAX];
    if (lacking <= strategy->told_lacking || options->calls.on_warning == NULL)
        return;
    snprintf(text, sizeof text,
             "nobody else is left, and %lld examples that count as finished are not in this worker's replica: they are "
             "lost unless a worker that has them comes back",
             (long long)lacking);
    options->calls.on_warning(options->calls.context, text);
    strategy->told_lacking = lacking;
}

static int follow_world(struct peer_to_peer *strategy, struct error *error)
{
    struct strategy *base = &strategy->base;
    struct member_standing standing = {.holds_state = base->holds_state,
                                       .applied_step = base->options.state->progress.step};
    struct world world;
    int news = member_poll_world(base->options.crew.member, &standing, &world, error);
    if (news > 0) {
        base->world = world;
        peer_hub_set_world(strategy->hub, &world);
        if (world.size == 1 && base->holds_state)
            tell_lacking(strategy);
    }
    tell_stalls(strategy);
    return news < 0 ? -1 : 0;
}

static unsigned next_random(struct peer_to_peer *strategy, unsigned below)
{
    strategy->random ^= strategy->random << 13;
    strategy->random ^= strategy->random >> 7;
    strategy->random ^= strategy->random << 17;
    return (unsigned)(strategy->random % below);
}

/* Returns whether more than a global batch of own examples is in no other replica, because the ranks that should ask for meetings are
 * busy (the chief evaluates or saves) or the rank that was asked does not answer. All of these examples would be lost with this worker. */
static bool is_unmet(struct peer_to_peer *strategy)
{
    return peer_hub_unhanded(strategy->hub) > strategy->base.options.global_batch;
}

/* Even ranks ask odd ones for meetings. An unmet rank asks itself, and asks another peer if no answer comes; it may ask any rank, since
 * answering never waits. */
static void meet_somebody(struct peer_to_peer *strategy)
{
    const struct world *world = &strategy->base.world;
    bool is_even = world->rank % 2 == 0, unmet = is_unmet(strategy);
    unsigned others = is_even ? world->size / 2 : (world->size + 1) / 2;
    if (world->size < 2)
        return;
    if (is_even || unmet)
        peer_hub_meet(strategy->hub, world->members[2 * next_random(strategy, others) + is_even]);
    if (unmet) {
        unsigned anybody = (world->rank + 1 + next_random(strategy, world->size - 1)) % world->size;
        (void)peer_hub_meet_instead(strategy->hub, world->members[anybody], UNANSWERED_MS);
    }
}

/* ---------------------------------------------------------------- counting */

/* The crew's step is what all have finished, in global batches. */
static void read_progress(struct peer_to_peer *strategy)
{
    struct training_progress *progress = &strategy->base.options.state->progress;
    int64_t total = peer_hub_read_counts(strategy->hub, strategy->finished);
    int64_t examples = dataset_count(strategy->base.options.dataset);
    int64_t step = total / strategy->base.options.global_batch;
    const int64_t *last = strategy->base.options.total_steps;
    progress->step = last != NULL && step > *last ? *last : step;
    progress->data_epoch = total / examples;
    progress->examples_consumed = total % examples;
}

static int64_t place_of(const struct peer_to_peer *strategy)
{
    return strategy->own.progress.data_epoch * strategy->sampler.count + strategy->own.progress.examples_consumed;
}

static void go_to_place(struct peer_to_peer *strategy, int64_t done)
{
    strategy->own.progress.data_epoch = done / strategy->sampler.count;
    strategy->own.progress.examples_consumed = done % strategy->sampler.count;
}

/* ---------------------------------------------------------------- the state to start from */

static void point_at_state(struct peer_to_peer *strategy, float *vectors[PEER_VECTORS_MAX])
{
    struct training_state *state = strategy->base.options.state;
    vectors[0] = state->host.parameters;
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        vectors[1 + i] = state->host.slots[i];
}

/* Reads how many examples each seat had finished, if the checkpoint is a PeerToPeer crew's with the same batch size. Otherwise the
 * checkpoint's steps are counted for this seat, since no seat has finished them in an order of its own. */
static void read_restored(const struct peer_to_peer *strategy, int64_t ret_counts[CREW_SIZE_MAX])
{
    const struct strategy_options *options = &strategy->base.options;
    int64_t step = options->state->progress.step, total = 0;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        total += ret_counts[seat] =
            options->peers.restored_finished != NULL ? options->peers.restored_finished[seat] : 0;
    int64_t steps = total / options->global_batch;
    bool is_last = options->total_steps != NULL && step == *options->total_steps;
    if (steps == step || (steps > step && is_last)) /* several overshoot the end together */
        return;
    if (is_last && steps == step - 1 && total > 0) { /* it is over, but for a short batch of those that there are now */
        ret_counts[strategy->seat] += step * options->global_batch - total;
        return;
    }
    memset(ret_counts, 0, CREW_SIZE_MAX * sizeof(*ret_counts));
    ret_counts[strategy->seat] = step * options->global_batch;
}

static void tell_void(const struct peer_to_peer *strategy, int64_t examples)
{
    const struct strategy_options *options = &strategy->base.options;
    char text[PEER_STALL_MAX];
    if (examples == 0 || options->calls.on_warning == NULL)
        return;
    snprintf(
        text, sizeof text,
        "nobody has a replica: back to step %lld; %lld examples that were finished since are lost, unless a worker "
        "that has them comes back",
        (long long)options->state->progress.step, (long long)examples);
    options->calls.on_warning(options->calls.context, text);
}

static int restore(struct peer_to_peer *strategy, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    if (options->calls.restore(options->calls.context, error) < 0)
        return -1;
    int64_t counts[CREW_SIZE_MAX];
    read_restored(strategy, counts);
    tell_void(strategy, peer_hub_restore(strategy->hub, counts));
    step_record_peer("restored", strategy->seat, counts[strategy->seat]);
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        if (seat != strategy->seat && counts[seat] > 0)
            step_record_peer("has", seat, counts[seat]);
    return 0;
}

static unsigned own_votes(const struct strategy_options *options)
{
    return options->calls.votes != NULL ? options->calls.votes(options->calls.context) : 0;
}

/* The mean's share of the grace period is over, or this one's part of that: each that is left has as much. */
static bool mean_is_due(struct peer_to_peer *strategy, int64_t asked_ms)
{
    int64_t now_ms = clock_monotonic_ms(), share_ms = strategy->base.options.peers.grace_ms / MEAN_SHARE;
    if (strategy->leave_ms == 0)
        strategy->leave_ms = now_ms;
    int64_t since_ms = asked_ms > strategy->leave_ms ? asked_ms : strategy->leave_ms;
    bool due = share_ms > 0 && now_ms - since_ms >= (strategy->leave_ms + share_ms - since_ms) / strategy->mean_left;
    strategy->mean_is_hurried |= due;
    return due;
}

/* Returns whether a worker that was asked to leave stops waiting: a newcomer at once, because it has nothing to lose. */
static bool waits_no_longer(struct peer_to_peer *strategy, int64_t asked_ms)
{
    if (!(own_votes(&strategy->base.options) & STRATEGY_VOTE_LEAVE))
        return false;
    return !strategy->base.holds_state || mean_is_due(strategy, asked_ms);
}

/* Follows the world meanwhile, which may tell that the peer is gone. */
static enum peer_answer fetch(struct peer_to_peer *strategy, unsigned seat, float *const *vectors)
{
    int64_t asked_ms = clock_monotonic_ms();
    enum peer_answer answer = PEER_ANSWER_PENDING;
    peer_hub_ask(strategy->hub, seat, vectors);
    while (answer == PEER_ANSWER_PENDING && peer_hub_silence_ms(strategy->hub) < SILENCE_MS) {
        answer = peer_hub_answer(strategy->hub, FETCH_LOOK_MS);
        if (answer == PEER_ANSWER_PENDING && follow_world(strategy, NULL) < 0)
            break;
        if (answer == PEER_ANSWER_PENDING && waits_no_longer(strategy, asked_ms))
            break;
    }
    peer_hub_forget(strategy->hub);
    return answer;
}

/* Asks one peer after another. *ret_refusals: how many have nothing to give. */
static bool fetch_from_anybody(struct peer_to_peer *strategy, unsigned first, unsigned *ret_refusals)
{
    const struct world world = strategy->base.world;
    float *vectors[PEER_VECTORS_MAX];
    point_at_state(strategy, vectors);
    *ret_refusals = 0;
    for (unsigned i = 0; i < world.size; i++) {
        unsigned rank = (first + i) % world.size;
        if (rank == world.rank)
            continue;
        enum peer_answer answer = fetch(strategy, world.members[rank], vectors);
        if (answer == PEER_ANSWER_STATE)
            return true;
        *ret_refusals += answer == PEER_ANSWER_NOTHING;
    }
    return false;
}

/* The chief makes a state if no worker has one; all others wait until a worker has one. */
static int obtain_state(struct peer_to_peer *strategy, struct error *error)
{
    struct strategy *base = &strategy->base;
    for (;;) {
        unsigned refusals = 0, others = base->world.size - 1;
        bool nobody = base->world.source == WORLD_SOURCE_CHIEF;
        if (base->world.rank == 0 && (nobody || others == 0))
            return restore(strategy, error);
        if (fetch_from_anybody(strategy, base->world.source_rank, &refusals)) {
            peer_hub_adopt(strategy->hub);
            return training_state_to_device(base->options.state, error);
        }
        if (base->world.rank == 0 && refusals == others)
            return restore(strategy, error);
        if (own_votes(&base->options) & STRATEGY_VOTE_LEAVE)
            return error_set(error, ERROR_CANCELLED, "asked to stop while waiting for the state of a peer");
        pause_briefly();
        if (follow_world(strategy, error) < 0)
            return -1;
    }
}

static int peer_reform(struct strategy *base, struct error *error)
{
    struct peer_to_peer *strategy = of(base);
    struct member_standing standing = {.holds_state = base->holds_state};
    if (member_agree(base->options.crew.member, &standing, &base->world, error) < 0)
        return -1;
    peer_hub_set_world(strategy->hub, &base->world);
    if (obtain_state(strategy, error) < 0)
        return -1;
    read_progress(strategy);
    /* Its moments have taken about as many updates as the crew has steps; from here on each worker counts its own. */
    if (!base->holds_state)
        strategy->own.progress.step = base->options.state->progress.step;
    base->holds_state = true;
    int64_t done = peer_hub_place(strategy->hub);
    step_record_peer("begins", strategy->seat, done);
    go_to_place(strategy, done);
    strategy->step_before = base->options.state->progress.step;
    peer_replica_set_whole(strategy->shared, true);
    return follow_world(strategy, error);
}

/* ---------------------------------------------------------------- a step */

/* The global batch is divided by the number of seats, taken or not, so that a step of a worker always has the same size, even when
 * members join or leave. */
static int64_t count_shares(const struct strategy_options *options)
{
    return options->crew.size > 0 ? options->crew.size : 1;
}

static int64_t share_of_batch(const struct strategy_options *options)
{
    int64_t shares = count_shares(options);
    return (options->global_batch + shares - 1) / shares;
}

static unsigned share_of_shards(const struct strategy_options *options)
{
    int64_t shares = count_shares(options);
    return (unsigned)((options->logical_shards + shares - 1) / shares);
}

static int update(struct peer_to_peer *strategy, struct strategy_result *ret_result, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    const float *controls = replica_set_controls(strategy->replicas)[0];
    double rate = options->calls.learning_rate(options->calls.context, options->state->progress.step + 1);
    strategy_leave_boundary(options); /* before taking the lock, which an abandoned step needs for the mean */
    peer_replica_lock(strategy->shared);
    int result = peer_replica_keep(strategy->shared, error);
    if (result == 0)
        result = replica_set_update(strategy->replicas, rate, controls, 0, ret_result, error);
    if (result == 0)
        result = peer_replica_share_out(strategy->shared, (unsigned)count_shares(options), error);
    if (result == 0)
        result = peer_replica_take_in(strategy->shared, error);
    peer_replica_unlock(strategy->shared);
    return result;
}

/* The examples are counted only now that they are in the replica and in the change that is sent. */
static void exchange(struct peer_to_peer *strategy)
{
    int64_t finished = place_of(strategy);
    step_record_peer("finished", strategy->seat, finished);
    if (strategy->base.world.size > 1)
        peer_hub_publish(strategy->hub, peer_replica_change(strategy->shared), finished);
    else
        peer_hub_count(strategy->hub, strategy->seat, finished);
    if (strategy->own_steps % MEET_EVERY == 0)
        meet_somebody(strategy);
}

/* The first device has the state, which updates, peers and means change. Here its parameters and progress are copied to the other
 * devices. If they go through the host, they are in the host's copy of the state, which a save reads; so the step cannot be abandoned
 * meanwhile. While NCCL copies them, it can, because NCCL may hang. */
static int equip_devices(struct peer_to_peer *strategy, struct error *error)
{
    if (own_sums_by_library(&strategy->sums))
        return own_sums_spread(&strategy->sums, strategy->replicas, error);
    strategy_hold_step(&strategy->base.options);
    int result = own_sums_spread(&strategy->sums, strategy->replicas, error);
    strategy_release_step(&strategy->base.options);
    return result;
}

static int take_own_step(struct peer_to_peer *strategy, struct strategy_result *ret_result, struct error *error)
{
    int64_t examples, place = peer_hub_place(strategy->hub);
    if (strategy->broken.kind != ERROR_NONE)
        return fail_as_broken(strategy, error);
    if (place > place_of(strategy))
        go_to_place(strategy, place);
    if (equip_devices(strategy, error) < 0 || replica_set_start_passes(strategy->replicas, &examples, error) < 0 ||
        own_sums_reduce(&strategy->sums, strategy->replicas, 0, error) < 0 || update(strategy, ret_result, error) < 0)
        return -1;
    strategy->own_steps++;
    exchange(strategy);
    read_progress(strategy);
    strategy_release_step(&strategy->base.options);
    return 0;
}

/* Chooses a peer for a meeting before this worker leaves. Any peer will do, since answering never waits; preferably one that is
 * connected, that was not asked yet and that has taken all changes. */
static unsigned choose_heir(struct peer_to_peer *strategy, const bool asked[CREW_SIZE_MAX])
{
    const struct world *world = &strategy->base.world;
    unsigned first = next_random(strategy, world->size), heir = 0;
    int worth = -1;
    for (unsigned i = 0; i < world->size; i++) {
        unsigned rank = (first + i) % world->size, seat = world->members[rank];
        int its_worth = (peer_hub_is_connected(strategy->hub, seat) ? 4 : 0) + (asked[seat] ? 0 : 2) +
                        (peer_hub_has_taken(strategy->hub, seat) ? 1 : 0);
        if (rank == world->rank || its_worth <= worth)
            continue;
        heir = seat;
        worth = its_worth;
    }
    return heir;
}

/* A part of its time, and no longer than where there is no grace period: a late answer still counts. */
static int64_t longest_silence_ms(int64_t share_ms)
{
    return (share_ms < HAND_OVER_MS ? share_ms : HAND_OVER_MS) / HAND_OVER_TRIES;
}

/* Its time is over. */
static void tell_waited(struct peer_to_peer *strategy, int64_t share_ms)
{
    const struct strategy_options *options = &strategy->base.options;
    char names[PEER_STALL_MAX], text[PEER_STALL_MAX + 256];
    peer_hub_name_waited(strategy->hub, names);
    if (names[0] == '\0' || options->calls.on_warning == NULL)
        return;
    snprintf(text, sizeof text,
             "this worker is asked to leave, and after %.1f s goes without handing over to %s, which has not taken it; "
             "%lld examples are in no other replica, and are done again by its successor",
             (double)share_ms / 1000, names, (long long)peer_hub_unhanded(strategy->hub));
    options->calls.on_warning(options->calls.context, text);
}

/* Hands over the examples that only the replica of this worker, which leaves, has; its successor would have to compute them again. */
static void hand_over(struct peer_to_peer *strategy)
{
    int64_t grace_ms = strategy->base.options.peers.grace_ms;
    int64_t share_ms = grace_ms > 0 ? grace_ms / HAND_OVER_SHARE : HAND_OVER_MS;
    int64_t end_ms = clock_monotonic_ms() + share_ms, left_ms = share_ms;
    bool asked[CREW_SIZE_MAX] = {false};
    unsigned tries = HAND_OVER_TRIES;
    while (strategy->base.world.size > 1 && left_ms > 0) {
        enum peer_handing handing = peer_hub_handing(strategy->hub, left_ms < FETCH_LOOK_MS ? left_ms : FETCH_LOOK_MS);
        if (handing == PEER_HANDING_DONE || follow_world(strategy, NULL) < 0 || strategy->base.world.size < 2)
            return;
        unsigned heir = choose_heir(strategy, asked);
        /* One peer takes no changes, and the others lack earlier ones: they are met nevertheless. */
        bool stands = share_ms - left_ms >= longest_silence_ms(share_ms) && !peer_hub_meets(strategy->hub) &&
                      peer_hub_unhanded(strategy->hub) > 0;
        if (handing == PEER_HANDING_WANTS_MEETING || stands) {
            if (asked[heir])
                pause_briefly(); /* it has no replica yet */
            peer_hub_meet(strategy->hub, heir);
            asked[heir] = peer_hub_meets(strategy->hub);
            if (!asked[heir])
                pause_briefly(); /* the hub does not know this world yet */
        } else if (tries > 0 && peer_hub_meet_instead(strategy->hub, heir, longest_silence_ms(share_ms))) {
            asked[heir] = true; /* perhaps again: the first time it may not have been connected */
            tries--;
        }
        left_ms = end_ms - clock_monotonic_ms();
    }
    if (strategy->base.world.size > 1)
        tell_waited(strategy, share_ms);
}

/* A thread that abandons a step takes the mean and follows the world for it, so it must not do so while this thread follows the world.
 * That takes little time; handing examples over takes at most an eighth of the grace period, and a step is abandoned after half of it. */
static int follow_before_step(struct peer_to_peer *strategy, struct error *error)
{
    strategy_hold_step(&strategy->base.options);
    int result = follow_world(strategy, error);
    strategy_release_step(&strategy->base.options);
    return result;
}

/* Own steps until the crew's step has moved. */
static int peer_step(struct strategy *base, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                     struct error *error)
{
    (void)learning_rate;
    struct peer_to_peer *strategy = of(base);
    int64_t before = base->options.state->progress.step, total = peer_hub_total(strategy->hub);
    do {
        if (follow_before_step(strategy, error) < 0 || take_own_step(strategy, ret_result, error) < 0)
            return -1;
        votes |= own_votes(&base->options);
    } while (base->options.state->progress.step == before && !(votes & STRATEGY_VOTE_LEAVE));
    strategy_hold_step(&base->options); /* until it is over */
    if (votes & STRATEGY_VOTE_LEAVE)
        hand_over(strategy);
    strategy->step_before = before;
    ret_result->step = base->options.state->progress.step;
    ret_result->examples = peer_hub_total(strategy->hub) - total;
    ret_result->leaves[base->world.rank] = (votes & STRATEGY_VOTE_LEAVE) != 0;
    ret_result->leaving = ret_result->leaves[base->world.rank];
    return 0;
}

static int64_t peer_step_before(const struct strategy *base)
{
    return ((const struct peer_to_peer *)base)->step_before;
}

/* ---------------------------------------------------------------- the mean of all */

static void allocate_means(struct peer_to_peer *strategy)
{
    size_t elements = (size_t)strategy->own.layout.elements;
    for (unsigned i = 0; i < peer_replica_vectors(strategy->shared); i++) {
        if (strategy->mean[i] != NULL)
            continue;
        strategy->mean[i] = memory_allocate(elements, sizeof(float));
        strategy->theirs[i] = memory_allocate(elements, sizeof(float));
    }
}

static int swap_means(struct peer_to_peer *strategy, struct error *error)
{
    peer_replica_lock(strategy->shared);
    int result = peer_replica_swap(strategy->shared, strategy->mean, &strategy->broken);
    peer_replica_unlock(strategy->shared);
    return result < 0 ? fail_as_broken(strategy, error) : 0;
}

static void add_to_mean(struct peer_to_peer *strategy, double weight)
{
    for (unsigned v = 0; v < peer_replica_vectors(strategy->shared); v++)
        for (int64_t i = 0; i < strategy->own.layout.elements; i++)
            strategy->mean[v][i] += (float)weight * (strategy->theirs[v][i] - strategy->mean[v][i]);
}

/* Warns of peers in the world that have a replica but did not send it. */
static void tell_missing(struct peer_to_peer *strategy, const struct world *world, const bool missing[CREW_SIZE_MAX])
{
    const struct strategy_options *options = &strategy->base.options;
    char text[MISSING_TEXT_MAX], name[COLLECTIVE_PEER_TEXT_MAX];
    int length = snprintf(text, sizeof text, "at step %lld only %u of %u replicas were averaged, without",
                          (long long)options->state->progress.step, strategy->mean_count, strategy->mean_of);
    for (unsigned rank = 0; rank < world->size && length > 0 && (size_t)length < sizeof text; rank++) {
        if (!missing[rank])
            continue;
        collective_peer_describe(world->peers, rank, name);
        length += snprintf(text + length, sizeof text - (size_t)length, " %s", name);
    }
    if (strategy->mean_is_hurried && length > 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length,
                 "; this worker is being terminated, and waited no longer");
    if (options->calls.on_warning != NULL)
        options->calls.on_warning(options->calls.context, text);
}

/* A newcomer that has no state yet has no replica. */
static void add_others(struct peer_to_peer *strategy, const struct world *world)
{
    bool missing[CREW_SIZE_MAX] = {false};
    strategy->mean_count = strategy->mean_of = 1;
    strategy->mean_left = world->size - 1;
    strategy->leave_ms = 0;
    strategy->mean_is_hurried = false;
    for (unsigned rank = 0; rank < world->size; rank++) {
        if (rank == world->rank)
            continue;
        enum peer_answer answer = fetch(strategy, world->members[rank], strategy->theirs);
        missing[rank] = answer != PEER_ANSWER_STATE && answer != PEER_ANSWER_NOTHING;
        strategy->mean_of += answer != PEER_ANSWER_NOTHING;
        strategy->mean_left--;
        if (answer == PEER_ANSWER_STATE)
            add_to_mean(strategy, 1.0 / ++strategy->mean_count);
    }
    if (strategy->mean_count < strategy->mean_of)
        tell_missing(strategy, world, missing);
}

/* Starts the mean with this replica, including its inbox. */
static int begin_mean(struct peer_to_peer *strategy, struct error *error)
{
    allocate_means(strategy);
    peer_replica_lock(strategy->shared);
    int result = peer_replica_copy(strategy->shared, strategy->mean, error);
    peer_replica_unlock(strategy->shared);
    return result;
}

static int take_mean(struct peer_to_peer *strategy, struct error *error)
{
    if (follow_world(strategy, error) < 0)
        return -1;
    const struct world world = strategy->base.world;
    if (begin_mean(strategy, error) < 0)
        return -1;
    add_others(strategy, &world);
    strategy->mean_step = strategy->own_steps;
    return 0;
}

/* Everything that is saved, evaluated and exported between the same two steps uses the same mean. */
static int peer_average_begin(struct strategy *base, struct error *error)
{
    struct peer_to_peer *strategy = of(base);
    if (strategy->broken.kind != ERROR_NONE)
        return fail_as_broken(strategy, error);
    if (strategy->mean_step != strategy->own_steps && take_mean(strategy, error) < 0)
        return -1;
    return swap_means(strategy, error);
}

static unsigned peer_averaged(const struct strategy *base, unsigned *ret_of)
{
    const struct peer_to_peer *strategy = (const struct peer_to_peer *)base;
    *ret_of = strategy->mean_of;
    return strategy->mean_count;
}

/* If this fails, the next step reports it. */
static void peer_average_end(struct strategy *base)
{
    (void)swap_means(of(base), NULL);
}

/* ---------------------------------------------------------------- the end */

static int64_t peer_finished(const struct strategy *base, unsigned seat)
{
    return ((const struct peer_to_peer *)base)->finished[seat];
}

/* A chief that is lost, or stands still, while it stores; one that takes long is heard of. */
static void tell_silent_chief(const struct strategy_options *options, int64_t *since_ms)
{
    char text[MEMBER_TEXT_MAX];
    int64_t now_ms = clock_monotonic_ms(),
            stall_ms = options->crew.stall_ms > 0 ? options->crew.stall_ms : END_STALL_MS;
    member_describe(options->crew.member, text);
    if (text[0] == '\0') {
        *since_ms = now_ms;
    } else if (now_ms - *since_ms >= stall_ms) {
        if (options->calls.on_stall != NULL)
            options->calls.on_stall(options->calls.context, text);
        *since_ms = now_ms;
    }
}

static int await_done(struct peer_to_peer *strategy, struct error *error)
{
    int64_t heard_ms = clock_monotonic_ms();
    while (!peer_hub_is_done(strategy->hub)) {
        if (follow_world(strategy, error) < 0)
            return -1;
        tell_silent_chief(&strategy->base.options, &heard_ms);
        if (own_votes(&strategy->base.options) & STRATEGY_VOTE_LEAVE) {
            hand_over(strategy); /* the chief may still take a mean, and its successor too */
            return error_set(error, ERROR_CANCELLED, "asked to stop after the last step");
        }
        pause_briefly();
    }
    return 0;
}

static int peer_meet(struct strategy *base, struct error *error)
{
    if (base->world.rank != 0)
        return await_done(of(base), error);
    peer_hub_say_done(of(base)->hub);
    return 0;
}

static int peer_share(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    (void)base, (void)bytes, (void)length;
    return error_set(error, ERROR_INTERNAL,
                     "internal error: PeerToPeer cannot broadcast from the chief; please report it");
}

/* ---------------------------------------------------------------- life cycle */

static void peer_close(struct strategy *base)
{
    struct peer_to_peer *strategy = of(base);
    peer_hub_stop(strategy->hub);
    own_sums_close(&strategy->sums);
    replica_set_free(strategy->replicas);
    peer_replica_free(strategy->shared);
    for (unsigned i = 0; i < PEER_VECTORS_MAX; i++) {
        free(strategy->mean[i]);
        free(strategy->theirs[i]);
    }
    free(strategy);
}

/* Gives each seat other random numbers. */
static uint64_t seed_of_seat(const struct peer_to_peer *strategy, uint64_t seed)
{
    return seed + 0x9e3779b97f4a7c15u * (strategy->seat + 1);
}

/* Our own examples: the whole set, in an order that is ours, as masks of dropout are. */
static int open_replicas(struct peer_to_peer *strategy, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    unsigned shards = share_of_shards(options);
    strategy->sampler =
        (struct sampler){.seed = seed_of_seat(strategy, options->sampler->seed), .count = options->sampler->count};
    strategy->own.progress.seed = (int64_t)seed_of_seat(strategy, (uint64_t)options->state->progress.seed);
    strategy->replica_options = *options;
    strategy->replica_options.state = &strategy->own;
    strategy->replica_options.sampler = &strategy->sampler;
    strategy->replica_options.global_batch = share_of_batch(options);
    strategy->replica_options.crew.member = NULL;
    strategy->replica_options.calls.before_change = strategy->replica_options.calls.leaves_boundary = NULL;
    if (own_sums_connect(&strategy->sums, &strategy->replica_options, error) < 0 ||
        replica_set_new(&strategy->replica_options, VARIABLES_CENTRAL, shards, 0, shards, &strategy->replicas, error) <
            0)
        return -1;
    return own_sums_open(&strategy->sums, &strategy->replica_options, shards, NULL, error);
}

/* Counts the vectors: the inbox, what is sent in a meeting, the change, and the pending changes of each peer. While they are sent there
 * are copies: of a change to each peer, and of a meeting's question and answer. The chief also has the mean and a peer's state. */
static void peer_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    int64_t workers = count_shares(options);
    unsigned shards = share_of_shards(options);
    int64_t kept = 3 + workers - 1, on_their_way = 2 + workers - 1, vectors = kept + on_their_way;
    struct strategy_options own = *options;
    own.global_batch = share_of_batch(options);
    own_sums_memory_plan(&own, VARIABLES_CENTRAL, shards, NULL, plans);
    if (options->crew.rank == 0)
        vectors += 2 * (1 + optimizer_slot_count(options->optimizer));
    plans->host.bytes[MEMORY_EXCHANGE] += vectors * graph_layout(options->graph)->elements * (int64_t)sizeof(float);
    if (!device_memory_is_shared(options->device))
        peer_staging_plan(options->device, graph_layout(options->graph)->elements, plans);
}

static int peer_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    if (options->crew.member == NULL || options->peers.hub == NULL)
        return error_set(error, ERROR_INTERNAL,
                         "internal error: PeerToPeer is opened without a member or a hub; please report it");
    struct peer_to_peer *strategy = memory_allocate(1, sizeof(*strategy));
    strategy->base.options = *options;
    strategy->hub = options->peers.hub;
    strategy->own = *options->state;
    strategy->seat = options->peers.seat;
    strategy->mean_step = -1;
    strategy->random = options->sampler->seed * 2654435761u + options->peers.seat + 1;
    if (peer_replica_new(options->state, &strategy->shared, error) < 0 || open_replicas(strategy, error) < 0) {
        peer_close(&strategy->base);
        return -1;
    }
    peer_hub_serve(strategy->hub, strategy->shared);
    *ret_strategy = &strategy->base;
    return 0;
}

static const struct strategy_crew_operations peer_crew = {.meet = peer_meet};

static const struct strategy_loose_operations peer_means = {
    .average_begin = peer_average_begin,
    .average_end = peer_average_end,
    .averaged = peer_averaged,
    .finished = peer_finished,
};

const struct strategy_operations peer_to_peer_strategy = {
    .type = STRATEGY_PEER_TO_PEER,
    .open = peer_open,
    .reform = peer_reform,
    .step = peer_step,
    .share = peer_share,
    .close = peer_close,
    .memory_plan = peer_memory_plan,
    .step_before = peer_step_before,
    .crew = &peer_crew,
    .loose = &peer_means,
};
