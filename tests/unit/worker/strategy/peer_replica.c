/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_replica.h"

#include <criterion/criterion.h>

#define COUNT 4

/* The parts of a state that a replica needs. */
struct scene {
    float parameters[COUNT], slot[COUNT];
    struct training_state state;
    struct peer_replica *replica;
};

static void set_up(struct scene *scene, float value, bool whole)
{
    *scene = (struct scene){.state = {.layout = {.elements = COUNT}, .optimizer_slots = 1}};
    scene->state.parameters = scene->parameters;
    scene->state.slots[0] = scene->slot;
    for (int i = 0; i < COUNT; i++) {
        scene->parameters[i] = value;
        scene->slot[i] = -value;
    }
    cr_assert_eq(peer_replica_new(&scene->state, &scene->replica, NULL), 0);
    peer_replica_set_whole(scene->replica, whole);
}

static void take_in(struct scene *scene)
{
    peer_replica_lock(scene->replica);
    cr_assert_eq(peer_replica_take_in(scene->replica, NULL), 0);
    peer_replica_unlock(scene->replica);
}

static void expect_values(const float *values, float a, float b, float c, float d)
{
    cr_expect_eq(values[0], a);
    cr_expect_eq(values[1], b);
    cr_expect_eq(values[2], c);
    cr_expect_eq(values[3], d);
}

Test(peer_replica, what_comes_waits_for_the_trainer_but_is_shown_to_peers)
{
    struct scene scene;
    const float change[] = {0.5f, 1.0f};
    float seen[COUNT];
    set_up(&scene, 1, true);
    cr_assert(peer_replica_add(scene.replica, 1, 2, change));
    cr_assert_eq(scene.parameters[1], 1.0f);
    cr_assert(peer_replica_read(scene.replica, 0, 0, COUNT, seen));
    expect_values(seen, 1, 1.5f, 2, 1);
    cr_assert(peer_replica_read(scene.replica, 1, 0, COUNT, seen));
    cr_assert_eq(seen[1], -1.0f);
    take_in(&scene);
    expect_values(scene.parameters, 1, 1.5f, 2, 1);
    take_in(&scene);
    cr_assert_eq(scene.parameters[2], 2.0f);
    peer_replica_free(scene.replica);
}

/* Three that begin alike, each with a step of its own, sent to all: each ends with the mean of the three steps. */
Test(peer_replica, what_all_send_to_all_is_the_mean_of_their_steps)
{
    struct scene scenes[3];
    const float *changes[3];
    for (unsigned i = 0; i < 3; i++) {
        set_up(&scenes[i], 6, true);
        peer_replica_lock(scenes[i].replica);
        cr_assert_eq(peer_replica_keep(scenes[i].replica, NULL), 0);
        for (unsigned k = 0; k < COUNT; k++)
            scenes[i].parameters[k] += 3.0f * (float)(i + 1) * (float)(k + 1); /* 3, 6 and 9 times */
        cr_assert_eq(peer_replica_share_out(scenes[i].replica, 3, NULL), 0);
        peer_replica_unlock(scenes[i].replica);
        changes[i] = peer_replica_change(scenes[i].replica);
    }
    expect_values(changes[1], 2, 4, 6, 8);
    expect_values(scenes[1].parameters, 8, 10, 12, 14);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned peer = 0; peer < 3; peer++)
            cr_assert(peer == i || peer_replica_add(scenes[i].replica, 0, COUNT, changes[peer]));
    for (unsigned i = 0; i < 3; i++) {
        take_in(&scenes[i]);
        expect_values(scenes[i].parameters, 12, 18, 24, 30);
        peer_replica_free(scenes[i].replica);
    }
}

/* One asks, the other answers, and both train on meanwhile: the mean of the two stays what their own steps make it. */
Test(peer_replica, a_meeting_keeps_the_mean)
{
    struct scene asks, answers;
    float sent[COUNT], theirs[COUNT];
    set_up(&asks, 1, true);
    set_up(&answers, 5, true);
    cr_assert(peer_replica_read(asks.replica, 0, 0, COUNT, sent));
    asks.parameters[0] += 0.25f; /* a step while the question travels */
    cr_assert(peer_replica_meet(answers.replica, 0, COUNT, sent, theirs));
    answers.parameters[0] += 0.5f; /* and one while the answer does */
    cr_assert(peer_replica_settle(asks.replica, 0, COUNT, sent, theirs));
    take_in(&asks);
    take_in(&answers);
    cr_assert_eq(asks.parameters[1], 3.0f);
    cr_assert_eq(answers.parameters[1], 3.0f);
    cr_assert_eq(asks.parameters[0], 3.25f);
    cr_assert_eq(answers.parameters[0], 3.5f);
    peer_replica_free(asks.replica);
    peer_replica_free(answers.replica);
}

Test(peer_replica, without_a_state_nothing_is_given_or_kept)
{
    struct scene scene;
    const float change[COUNT] = {1, 1, 1, 1};
    float seen[COUNT];
    set_up(&scene, 1, false);
    cr_assert_not(peer_replica_add(scene.replica, 0, COUNT, change));
    cr_assert_not(peer_replica_settle(scene.replica, 0, COUNT, change, change));
    cr_assert_not(peer_replica_meet(scene.replica, 0, COUNT, change, seen));
    cr_assert_not(peer_replica_is_whole(scene.replica));
    peer_replica_set_whole(scene.replica, true);
    take_in(&scene);
    cr_assert_eq(scene.parameters[0], 1.0f);
    peer_replica_free(scene.replica);
}

Test(peer_replica, parts_beyond_the_end_are_refused)
{
    struct scene scene;
    float part[COUNT] = {0};
    set_up(&scene, 1, true);
    cr_assert_not(peer_replica_add(scene.replica, 1, COUNT, part));
    cr_assert_not(peer_replica_add(scene.replica, UINT64_MAX, 2, part));
    cr_assert_not(peer_replica_meet(scene.replica, COUNT + 1, 0, part, part));
    cr_assert_not(peer_replica_settle(scene.replica, 2, UINT64_MAX, part, part));
    cr_assert_not(peer_replica_read(scene.replica, 2, 0, 1, part));
    peer_replica_free(scene.replica);
}
