/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "worker/optimizer/slot_pieces.h"

#define DEVICES_MAX 3
#define ARRAYS 2

struct scene {
    struct device *devices[DEVICES_MAX];
    struct shard_plan plan;
    struct slot_pieces *pieces;
    float *host[ARRAYS];
    int64_t elements; /* of the rank's slots */
};

static void open_scene(struct scene *scene, unsigned rank, unsigned size, unsigned devices, int64_t elements)
{
    struct parameter_layout layout = {.elements = elements};
    shard_plan_init(&scene->plan, &layout, size, devices, false);
    for (unsigned i = 0; i < devices; i++)
        cr_assert_eq(device_open(&(struct device_options){.index = (int)i, .threads = 1}, &scene->devices[i], NULL), 0);
    cr_assert_eq(slot_pieces_new(scene->devices, &scene->plan, rank, ARRAYS, &scene->pieces, NULL), 0);
    scene->elements = shard_kept_elements(&scene->plan, rank);
    for (unsigned array = 0; array < ARRAYS; array++)
        scene->host[array] = memory_allocate((size_t)scene->elements + 1, sizeof(float));
}

static void close_scene(struct scene *scene)
{
    slot_pieces_free(scene->pieces);
    for (unsigned i = 0; i < scene->plan.devices; i++)
        device_close(scene->devices[i]);
    for (unsigned array = 0; array < ARRAYS; array++)
        free(scene->host[array]);
}

static float value_of(unsigned array, int64_t at)
{
    return (float)(at * ARRAYS + array + 1);
}

static void fill(struct scene *scene, bool values)
{
    for (unsigned array = 0; array < ARRAYS; array++)
        for (int64_t i = 0; i < scene->elements; i++)
            scene->host[array][i] = values ? value_of(array, i) : 0;
}

/* Each piece lies where its device finds it, with the values of its place among all of the rank's. */
static void expect_places(const struct scene *scene, unsigned rank)
{
    struct shard_kept kept[SHARDS_KEPT_MAX];
    unsigned count = shard_kept(&scene->plan, rank, kept);
    for (unsigned k = 0; k < count; k++)
        for (int64_t i = 0; i < shard_stripes(&scene->plan, kept[k].owner); i++)
            for (unsigned device = 0; device < scene->plan.devices; device++) {
                struct shard_stripe piece = shard_piece(&scene->plan, kept[k].owner, i, device);
                for (unsigned array = 0; array < ARRAYS && piece.elements > 0; array++) {
                    const float *here = slot_pieces_at(scene->pieces, device, array, k, i);
                    cr_assert_eq(here[0], value_of(array, kept[k].slot + piece.slot));
                    cr_assert_eq(here[piece.elements - 1],
                                 value_of(array, kept[k].slot + piece.slot + piece.elements - 1));
                }
            }
}

static void there_and_back(unsigned rank, unsigned size, unsigned devices, int64_t elements)
{
    struct scene scene = {0};
    open_scene(&scene, rank, size, devices, elements);
    fill(&scene, true);
    cr_assert_eq(slot_pieces_to_devices(scene.pieces, scene.host, NULL), 0);
    expect_places(&scene, rank);
    fill(&scene, false);
    cr_assert_eq(slot_pieces_to_host(scene.pieces, scene.host, NULL), 0);
    for (unsigned array = 0; array < ARRAYS; array++)
        for (int64_t i = 0; i < scene.elements; i++)
            cr_assert_eq(scene.host[array][i], value_of(array, i));
    int64_t sum = 0;
    for (unsigned device = 0; device < devices; device++)
        sum += slot_pieces_elements(&scene.plan, rank, device);
    cr_assert_eq(sum, scene.elements);
    close_scene(&scene);
}

Test(slot_pieces, lie_on_the_devices_and_come_back)
{
    static const int64_t lengths[] = {1, 16384, 100001, 700000};
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (unsigned size = 1; size <= 3; size++)
            for (unsigned devices = 2; devices <= DEVICES_MAX; devices++)
                there_and_back(size - 1, size, devices, lengths[l]);
}

Test(slot_pieces, are_zero_at_the_start)
{
    struct scene scene = {0};
    open_scene(&scene, 0, 2, 2, 100001);
    fill(&scene, true);
    cr_assert_eq(slot_pieces_to_host(scene.pieces, scene.host, NULL), 0);
    for (int64_t i = 0; i < scene.elements; i++)
        cr_assert_eq(scene.host[1][i], 0);
    close_scene(&scene);
}
