/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_communicator.h"

#include <criterion/criterion.h>
#include <string.h>

#define SIZE 3

/* Three ranks on GPUs of one machine. */
static void fill(struct crew_device devices[SIZE], struct collective_peer peers[SIZE])
{
    memset(peers, 0, SIZE * sizeof *peers);
    for (unsigned rank = 0; rank < SIZE; rank++)
        devices[rank] = (struct crew_device){.standing = {.version = 23007, .place = rank}, .machine = 5};
}

static void expect_of(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                      const char *words)
{
    SCOPED_BUFFER why;
    buffer_init(&why, 1024);
    bool fits = crew_devices_fit(devices, each, peers, SIZE, &why);
    if (words == NULL)
        cr_expect(fits, "%s", buffer_text(&why));
    else
        cr_expect(!fits && strstr(buffer_text(&why), words) != NULL, "'%s' lacks '%s'", buffer_text(&why), words);
}

static void expect(const struct crew_device *devices, const struct collective_peer *peers, const char *words)
{
    expect_of(devices, 1, peers, words);
}

Test(crew_communicator, equal_libraries_and_a_device_each)
{
    struct crew_device devices[SIZE];
    struct collective_peer peers[SIZE];
    fill(devices, peers);
    expect(devices, peers, NULL);
    devices[2].standing.version = 0;
    expect(devices, peers, "rank 2");
    devices[2].standing.version = 21805;
    expect(devices, peers, "2.18.5");
    fill(devices, peers);
    devices[0].standing.version = 0;
    expect(devices, peers, "lacks NCCL");
}

Test(crew_communicator, a_gpu_is_one_ranks)
{
    struct crew_device devices[SIZE];
    struct collective_peer peers[SIZE];
    fill(devices, peers);
    devices[2].standing.place = 1;
    expect(devices, peers, "on one GPU");
    devices[2].machine = 6;
    expect(devices, peers, NULL);
    devices[2].machine = 5;
    devices[1].standing.may_share_device = devices[2].standing.may_share_device = true;
    expect(devices, peers, NULL);
}

Test(crew_communicator, several_devices_a_rank_are_asked_one_by_one)
{
    enum { EACH = 2 };
    struct crew_device devices[SIZE * EACH];
    struct collective_peer peers[SIZE];
    fill(devices, peers);
    for (unsigned place = 0; place < SIZE * EACH; place++)
        devices[place] = (struct crew_device){.standing = {.version = 23007, .place = place}, .machine = 5};
    expect_of(devices, EACH, peers, NULL);
    devices[3].standing.place = 1;
    expect_of(devices, EACH, peers, "rank 0 (:0) and rank 1 (:0) are on one GPU");
    devices[3].standing.place = 3;
    devices[4].standing.version = devices[5].standing.version = 21805;
    expect_of(devices, EACH, peers, "rank 2 (:0) has 2.18.5");
}

Test(crew_communicator, a_processor_has_none)
{
    struct device *device;
    struct communicator_standing standing = {0};
    struct error error = ERROR_INIT;
    const struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = 1};
    cr_assert_eq(device_open(&options, &device, NULL), 0);
    cr_expect_lt(communicator_prepare(device, &standing, &error), 0);
    cr_expect(error.kind == ERROR_UNSUPPORTED && strstr(error.message, "take Auto") != NULL, "%s", error.message);
    device_close(device);
}
