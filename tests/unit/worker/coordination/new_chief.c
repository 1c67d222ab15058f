/* SPDX-License-Identifier: Apache-2.0
 *
 * A new chief of an elastic crew that expects nobody else: whom its first world waits for.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "common/clock.h"
#include "tests/unit/loopback.h"
#include "worker/coordination/member.h"

#define PORT 2222
#define SEATS 3
#define DEATH_MS 60000 /* longer than the test: nothing here may wait for a death */

struct scene {
    char hosts[SEATS][LOOPBACK_HOST_MAX];
    struct crew_seat seats[SEATS];
};

/* Two addresses, and a name that has none. */
static void scene_init(struct scene *scene)
{
    for (unsigned rank = 0; rank < SEATS; rank++) {
        loopback_host(scene->hosts[rank], rank);
        scene->seats[rank] = (struct crew_seat){"worker", rank, scene->hosts[rank], PORT};
    }
    scene->seats[2].host = "nobody.crew.invalid";
}

static struct member *start(const struct scene *scene, unsigned rank)
{
    struct member_options options = {.job_uid = "job",
                                     .attempt = 1,
                                     .incarnation = 1,
                                     .rank = rank,
                                     .size = SEATS,
                                     .least = 1,
                                     .expected = 1,
                                     .start_ms = DEATH_MS,
                                     .seats = scene->seats,
                                     .listen_address = scene->hosts[rank],
                                     .beat_ms = 20,
                                     .death_ms = DEATH_MS,
                                     .data_port = 1};
    struct member *member;
    struct error error = ERROR_INIT;
    cr_assert_eq(member_start(&options, &member, &error), 0, "%s", error.message);
    return member;
}

static void *agree_with_state(void *member)
{
    struct member_standing standing = {.holds_state = true, .applied_step = 40};
    struct world world;
    (void)member_agree(member, &standing, &world, NULL);
    return NULL;
}

Test(new_chief, waits_for_a_survivor_whom_it_does_not_expect, .timeout = 120)
{
    struct scene scene;
    struct world world;
    pthread_t trainer;
    scene_init(&scene);
    struct member *survivor = start(&scene, 1);
    cr_assert_eq(pthread_create(&trainer, NULL, agree_with_state, survivor), 0);
    struct member *chief = start(&scene, 0);
    cr_assert_eq(member_agree(chief, &(struct member_standing){0}, &world, NULL), 0);
    cr_assert_eq(world.size, 2);
    cr_assert_eq(world.source, WORLD_SOURCE_PEER);
    cr_assert_eq(world.step, 40);
    member_cancel(survivor); /* it may have dialled once more, for a world that nobody else asks for */
    pthread_join(trainer, NULL);
    member_free(survivor);
    member_free(chief);
}

Test(new_chief, does_not_wait_where_nobody_is, .timeout = 120)
{
    struct scene scene;
    struct world world;
    scene_init(&scene);
    struct member *chief = start(&scene, 0);
    int64_t began_ms = clock_monotonic_ms();
    cr_assert_eq(member_agree(chief, &(struct member_standing){0}, &world, NULL), 0);
    cr_assert_eq(world.size, 1);
    cr_assert_lt(clock_monotonic_ms() - began_ms, DEATH_MS);
    member_free(chief);
}
