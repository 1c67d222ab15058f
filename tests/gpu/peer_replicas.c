/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a peer's replica on a GPU with one on the CPU. What its update leaves and sends, what its peers read, and what it takes in
 * have the same bits, since both sides round in the same places. The replica has more than one part. After a swap, it has exactly the new
 * numbers, as with the mean of all replicas.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/gpu/check.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/peer_replica.h"

#define ELEMENTS ((int64_t)PEER_PART_MAX + 1001)
#define BYTES ((size_t)ELEMENTS * sizeof(float))
#define SEATS 3
#define FIRST 7 /* first element of a peer's change, which is not of all elements */
#define COMES ((uint64_t)ELEMENTS - 2 * FIRST)

/* The observations of a replica, in this order. */
enum sight {
    SENT_CHANGE,
    SEEN_PARAMETERS,
    SEEN_SLOT,
    MET,
    LEFT_PARAMETERS,
    LEFT_SLOT,
    GIVEN_PARAMETERS,
    GIVEN_SLOT,
    SWAPPED_PARAMETERS,
    SWAPPED_SLOT,
    SIGHTS
};
static const char *const names[SIGHTS] = {
    [SENT_CHANGE] = "the change that its peers are sent",
    [SEEN_PARAMETERS] = "the parameters that they read, with what has come",
    [SEEN_SLOT] = "a slot that they read",
    [MET] = "what it answers in a meeting",
    [LEFT_PARAMETERS] = "the parameters, once it has taken in what has come",
    [LEFT_SLOT] = "a slot, which that leaves as it was",
    [GIVEN_PARAMETERS] = "the parameters that it gives for others",
    [GIVEN_SLOT] = "the slot that it gives for another",
    [SWAPPED_PARAMETERS] = "the parameters that it has of those",
    [SWAPPED_SLOT] = "the slot that it has of that",
};

static float *numbers(struct side *side, uint32_t seed)
{
    float *values = memory_allocate((size_t)ELEMENTS, sizeof *values), *drawn = side_numbers(side, ELEMENTS, seed);
    side_get(side, values, drawn, (int64_t)BYTES);
    return values;
}

static void open_state(struct side *side, struct training_state *state)
{
    struct error error = ERROR_INIT;
    const struct parameter_layout layout = {.elements = ELEMENTS};
    const struct optimizer_spec optimizer = {.type = OPTIMIZER_SGD, .momentum = 0.9};
    must(training_state_init(state, side->device, &layout, &optimizer, 1, &error), &error);
    SCOPED_FREE float *parameters = numbers(side, 1), *slot = numbers(side, 2);
    memcpy(state->host.parameters, parameters, BYTES);
    memcpy(state->host.slots[0], slot, BYTES);
    must(training_state_to_device(state, &error), &error);
}

/* Changes the parameters without an optimizer. */
static void update(struct side *side, struct training_state *state)
{
    struct error error = ERROR_INIT;
    device_axpy(side->stream, &(struct axpy){ELEMENTS, 1, side_numbers(side, ELEMENTS, 3), state->parameters});
    must(device_stream_synchronise(side->stream, &error), &error);
}

static void hear_peers(struct side *side, struct peer_replica *replica, float *ret_met)
{
    SCOPED_FREE float *change = numbers(side, 4), *theirs = numbers(side, 5);
    bool heard =
        peer_replica_add(replica, FIRST, COMES, change) && peer_replica_meet(replica, FIRST, COMES, theirs, ret_met);
    verdict(heard, "a replica takes part in meetings", "it does not");
}

/* Reads the state as the device has it. */
static void see_state(struct training_state *state, float *ret_parameters, float *ret_slot)
{
    struct error error = ERROR_INIT;
    must(training_state_to_host(state, &error), &error);
    memcpy(ret_parameters, state->host.parameters, BYTES);
    memcpy(ret_slot, state->host.slots[0], BYTES);
}

/* Gives the replica other numbers. */
static void swap(struct side *side, struct peer_replica *replica, float *sights[SIGHTS])
{
    struct error error = ERROR_INIT;
    SCOPED_FREE float *parameters = numbers(side, 6), *slot = numbers(side, 7);
    float *const others[] = {parameters, slot}, *const given[] = {sights[GIVEN_PARAMETERS], sights[GIVEN_SLOT]};
    peer_replica_lock(replica);
    must(peer_replica_copy(replica, given, &error), &error);
    must(peer_replica_swap(replica, others, &error), &error);
    peer_replica_unlock(replica);
    verdict(memcmp(parameters, given[0], BYTES) == 0 && memcmp(slot, given[1], BYTES) == 0,
            "a replica that is swapped is what was copied of it", "it is not");
}

/* Runs a step, with changes of peers during it. */
static void run(struct side *side, float *sights[SIGHTS])
{
    struct error error = ERROR_INIT;
    struct training_state state;
    struct peer_replica *replica;
    open_state(side, &state);
    must(peer_replica_new(&state, &replica, &error), &error);
    peer_replica_set_whole(replica, true);
    peer_replica_lock(replica);
    must(peer_replica_keep(replica, &error), &error);
    update(side, &state);
    must(peer_replica_share_out(replica, SEATS, &error), &error);
    memcpy(sights[SENT_CHANGE], peer_replica_change(replica), BYTES);
    peer_replica_unlock(replica);
    hear_peers(side, replica, sights[MET]);
    peer_replica_lock(replica);
    bool read = peer_replica_read(replica, 0, 0, (uint64_t)ELEMENTS, sights[SEEN_PARAMETERS]) &&
                peer_replica_read(replica, 1, 0, (uint64_t)ELEMENTS, sights[SEEN_SLOT]);
    verdict(read, "a replica is read", "it is not");
    must(peer_replica_take_in(replica, &error), &error);
    peer_replica_unlock(replica);
    see_state(&state, sights[LEFT_PARAMETERS], sights[LEFT_SLOT]);
    swap(side, replica, sights);
    see_state(&state, sights[SWAPPED_PARAMETERS], sights[SWAPPED_SLOT]);
    peer_replica_free(replica);
    training_state_release(&state);
    side_clear(side);
}

void check_peer_replicas(struct side *cpu, struct side *gpu)
{
    float *expected[SIGHTS], *found[SIGHTS];
    for (unsigned i = 0; i < SIGHTS; i++) {
        expected[i] = memory_allocate((size_t)ELEMENTS, sizeof *expected[i]);
        found[i] = memory_allocate((size_t)ELEMENTS, sizeof *found[i]);
    }
    run(cpu, expected);
    run(gpu, found);
    for (unsigned i = 0; i < SIGHTS; i++) {
        char name[128];
        snprintf(name, sizeof name, "a peer on the GPU: %s", names[i]);
        verdict(memcmp(expected[i], found[i], BYTES) == 0, name, "relative error %g",
                relative_error(found[i], expected[i], ELEMENTS));
        free(expected[i]);
        free(found[i]);
    }
}
