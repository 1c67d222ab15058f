/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/preflight.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "worker/device/device.h"

static struct preflight_figures figures[8];

static void all_well(void)
{
    for (unsigned rank = 0; rank < 8; rank++)
        figures[rank] = (struct preflight_figures){.copy_rate = 8e9, .from_previous = 1e9, .from_next = 1.2e9};
}

/* Which rank of `size` fails, with these words; "": none does. */
static void expect_failed(unsigned size, unsigned failed, const char *words)
{
    char text[PREFLIGHT_TEXT_MAX];
    for (unsigned rank = 0; rank < size; rank++) {
        bool is_failed = preflight_judge(figures, size, rank, text);
        cr_expect_eq(is_failed, *words && rank == failed, "rank %u: %s", rank, is_failed ? text : "passes");
        if (is_failed)
            cr_expect(strstr(text, words), "%s", text);
    }
}

Test(preflight, wrong_values_fail_in_a_crew_of_any_size, .init = all_well)
{
    expect_failed(4, 0, "");
    figures[2].wrong_products = 3;
    expect_failed(4, 2, "computes wrong values: 3 elements");
    all_well();
    figures[0].wrong_bytes = 1;
    expect_failed(1, 0, "has faulty memory: 1 bytes");
}

Test(preflight, a_quarter_of_the_median_is_too_slow_in_a_crew_of_three, .init = all_well)
{
    figures[1].copy_rate = 2e9;
    expect_failed(4, 0, "");
    figures[1].copy_rate = 1.99e9;
    expect_failed(4, 1, "copies memory at 1990 MB/s, less than a quarter of the crew's median of 8000 MB/s");
    expect_failed(3, 1, "copies memory");
    expect_failed(2, 0, "");
}

Test(preflight, what_could_not_be_measured_is_not_slow, .init = all_well)
{
    figures[3].copy_rate = figures[3].from_previous = figures[3].from_next = 0;
    expect_failed(4, 0, "");
    memset(figures, 0, sizeof figures);
    expect_failed(4, 0, "");
}

Test(preflight, a_rank_that_receives_or_sends_slowly_on_both_sides_is_named_and_its_neighbours_are_not,
     .init = all_well)
{
    figures[2].from_previous = figures[2].from_next = 1e8;
    expect_failed(4, 2, "receives at 100 MB/s");
    all_well();
    figures[3].from_previous = figures[1].from_next = 1e8;
    expect_failed(4, 2, "sends at 100 MB/s");
    all_well();
    figures[3].from_previous = 1e8;
    expect_failed(4, 0, "");
}

Test(preflight, a_rank_between_two_slow_ones_is_not_blamed, .init = all_well)
{
    char text[PREFLIGHT_TEXT_MAX];
    for (unsigned rank = 2; rank < 5; rank += 2)
        figures[rank].from_previous = figures[rank].from_next = 1e8; /* ranks 2 and 4 receive slowly, also from 3 */
    for (unsigned rank = 0; rank < 8; rank++)
        cr_expect_eq(preflight_judge(figures, 8, rank, text), rank == 2 || rank == 4, "rank %u", rank);
    all_well();
    for (unsigned rank = 2; rank < 5; rank += 2)
        figures[rank + 1].from_previous = figures[rank - 1].from_next = 1e8; /* ranks 2 and 4 send slowly, also to 3 */
    for (unsigned rank = 0; rank < 8; rank++)
        cr_expect_eq(preflight_judge(figures, 8, rank, text), rank == 2 || rank == 4, "rank %u", rank);
}

Test(preflight, a_device_that_is_well_computes_what_is_known_and_keeps_what_is_written, .timeout = 60)
{
    struct device *device;
    struct preflight_figures own;
    struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = 1};
    cr_assert_eq(device_open(&options, &device, NULL), 0);
    struct strategy_device devices[] = {{.device = device}};
    cr_assert_eq(preflight_measure(devices, 1, NULL, &own, NULL), 0);
    cr_expect_eq(own.wrong_products, 0);
    cr_expect_eq(own.wrong_bytes, 0);
    cr_expect_gt(own.copy_rate, 1e6);
    device_close(device);
}

/* ---------------------------------------------------------------- connections, of three ranks that are threads */

#define RANKS 3

struct side {
    struct collective *group;
    struct endpoint *endpoint;
    struct preflight_figures figures;
    unsigned rank;
    int result;
    pthread_t thread;
};

static struct side sides[RANKS];
static struct collective_peer peers[RANKS];

static void no_sum(const void *context, const float *const *inputs, float *result, size_t elements)
{
    (void)context, (void)inputs, (void)result, (void)elements;
}

static void *measure(void *context)
{
    struct side *side = context;
    side->result = collective_connect(side->group, 30000, NULL);
    if (side->result == 0)
        side->result = preflight_measure_links(side->group, side->rank, RANKS, &side->figures, NULL);
    return NULL;
}

static void measure_over(enum collective_transport transport)
{
    for (unsigned rank = 0; rank < RANKS; rank++) {
        sides[rank] = (struct side){.rank = rank};
        cr_assert_eq(endpoint_open("127.0.0.1", 0, &sides[rank].endpoint, NULL), 0);
        snprintf(peers[rank].address, sizeof peers[rank].address, "127.0.0.1");
        peers[rank].port = endpoint_port(sides[rank].endpoint);
    }
    for (unsigned rank = 0; rank < RANKS; rank++) {
        struct collective_options options = {.endpoint = sides[rank].endpoint,
                                             .job_uid = "preflight",
                                             .generation = {1, 1, 1},
                                             .rank = rank,
                                             .size = RANKS,
                                             .peers = peers,
                                             .transport = transport,
                                             .reduction = {.contributions = {1, 1, 1}, .combine = no_sum}};
        cr_assert_eq(collective_new(&options, &sides[rank].group, NULL), 0);
        pthread_create(&sides[rank].thread, NULL, measure, &sides[rank]);
    }
    for (unsigned rank = 0; rank < RANKS; rank++)
        pthread_join(sides[rank].thread, NULL);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        cr_assert_eq(sides[rank].result, 0);
        collective_free(sides[rank].group);
    }
    for (unsigned rank = 0; rank < RANKS; rank++)
        endpoint_free(sides[rank].endpoint);
}

Test(preflight, connections_are_measured_over_tcp_and_not_in_shared_memory, .timeout = 60)
{
    measure_over(COLLECTIVE_TRANSPORT_TCP);
    for (unsigned rank = 0; rank < RANKS; rank++)
        cr_expect(sides[rank].figures.from_previous > 1e5 && sides[rank].figures.from_next > 1e5, "rank %u", rank);
    measure_over(COLLECTIVE_TRANSPORT_SHARED_MEMORY);
    for (unsigned rank = 0; rank < RANKS; rank++)
        cr_expect(sides[rank].figures.from_previous == 0 && sides[rank].figures.from_next == 0, "rank %u", rank);
}
