/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_communicator.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "worker/device/backend.h"

#define SIZE 3

/* Three ranks on GPUs of one machine. */
static void fill(struct crew_device devices[SIZE], struct collective_peer peers[SIZE])
{
    memset(peers, 0, SIZE * sizeof *peers);
    for (unsigned rank = 0; rank < SIZE; rank++)
        devices[rank] = (struct crew_device){.capabilities = {.version = 23007, .place = rank}, .machine = 5};
}

static void expect_of(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                      const char *words)
{
    SCOPED_BUFFER why = BUFFER_INIT(1024);
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
    devices[2].capabilities.version = 0;
    expect(devices, peers, "rank 2");
    devices[2].capabilities.version = 21805;
    expect(devices, peers, "2.18.5");
    fill(devices, peers);
    devices[0].capabilities.version = 0;
    expect(devices, peers, "cannot use NCCL");
}

Test(crew_communicator, a_gpu_is_one_ranks)
{
    struct crew_device devices[SIZE];
    struct collective_peer peers[SIZE];
    fill(devices, peers);
    devices[2].capabilities.place = 1;
    expect(devices, peers, "use the same GPU");
    devices[2].machine = 6;
    expect(devices, peers, NULL);
    devices[2].machine = 5;
    devices[1].capabilities.may_share_device = devices[2].capabilities.may_share_device = true;
    expect(devices, peers, NULL);
}

Test(crew_communicator, several_devices_a_rank_are_asked_one_by_one)
{
    enum { EACH = 2 };
    struct crew_device devices[SIZE * EACH];
    struct collective_peer peers[SIZE];
    fill(devices, peers);
    for (unsigned place = 0; place < SIZE * EACH; place++)
        devices[place] = (struct crew_device){.capabilities = {.version = 23007, .place = place}, .machine = 5};
    expect_of(devices, EACH, peers, NULL);
    devices[3].capabilities.place = 1;
    expect_of(devices, EACH, peers, "rank 0 (:0) and rank 1 (:0) use the same GPU");
    devices[3].capabilities.place = 3;
    devices[4].capabilities.version = devices[5].capabilities.version = 21805;
    expect_of(devices, EACH, peers, "rank 2 (:0) has 2.18.5");
}

Test(crew_communicator, a_processor_has_none)
{
    struct device *device;
    struct communicator_capabilities capabilities = {0};
    struct error error = ERROR_INIT;
    const struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = 1};
    cr_assert_eq(device_open(&options, &device, NULL), 0);
    cr_expect_lt(communicator_prepare(device, &capabilities, &error), 0);
    cr_expect(error.kind == ERROR_UNSUPPORTED && strstr(error.message, "take Auto") != NULL, "%s", error.message);
    device_close(device);
}

/* Two devices whose direct path fails its test once. */
struct spoiling_pair {
    struct device devices[2];
    struct strategy_device of_process[2];
    unsigned trials, warnings;
    char notice[256];
};

static struct spoiling_pair *pair;

static int reach_once(struct device *device, struct device *other, struct error *error)
{
    (void)device;
    (void)other;
    return pair->trials++ == 0 ? error_set(error, ERROR_DEVICE, "they spoil it") : 0;
}

static void count_warning(void *context, const char *text)
{
    cr_expect(strstr(text, "they spoil it") != NULL, "%s", text);
    ((struct spoiling_pair *)context)->warnings++;
}

static void keep_notice(void *context, const char *text)
{
    snprintf(((struct spoiling_pair *)context)->notice, sizeof pair->notice, "%s", text);
}

static struct crew_communicator *of_spoiling_pair(enum collective_type collective, unsigned count)
{
    static const struct device_backend spoiling = {.reach = reach_once};
    static const struct communicator_capabilities standings[] = {{.version = 23007, .place = 1},
                                                                 {.version = 23007, .place = 2}};
    static struct spoiling_pair spoiling_pair;
    pair = &spoiling_pair;
    *pair = (struct spoiling_pair){.devices = {{.backend = &spoiling}, {.backend = &spoiling}}};
    for (unsigned i = 0; i < 2; i++)
        pair->of_process[i].device = &pair->devices[i];
    const struct strategy_options options = {.type = STRATEGY_MIRRORED,
                                             .crew.collective = collective,
                                             .device = &pair->devices[0],
                                             .devices = pair->of_process,
                                             .device_count = count,
                                             .sums.communicator = standings,
                                             .calls.on_notice = keep_notice,
                                             .calls.on_warning = count_warning,
                                             .calls.context = pair};
    return crew_communicator_new(&options);
}

static const struct world alone = {.size = 1};

Test(crew_communicator, there_is_none_where_devices_spoil_what_they_copy_to_each_other)
{
    struct error error = ERROR_INIT;
    struct crew_communicator *crew = of_spoiling_pair(COLLECTIVE_AUTO, 2);
    for (unsigned again = 0; again < 2; again++) {
        cr_expect_eq(crew_communicator_form(crew, NULL, &alone, &error), 0, "%s", error.message);
        cr_expect(!crew_communicator_is_there(crew));
    }
    cr_expect(pair->trials == 2 && pair->warnings == 1, "%u trials, %u warnings", pair->trials, pair->warnings);
    cr_expect(strstr(pair->notice, "through the host, not by NCCL: this worker's GPUs spoil") != NULL, "%s",
              pair->notice);
    crew_communicator_free(crew);
}

Test(crew_communicator, a_job_that_requires_nccl_fails_if_it_cannot_be)
{
    struct error error = ERROR_INIT;
    struct crew_communicator *crew = of_spoiling_pair(COLLECTIVE_NCCL, 2);
    cr_expect_lt(crew_communicator_form(crew, NULL, &alone, &error), 0);
    cr_expect(error.kind == ERROR_CONFLICT && strstr(error.message, "spoil") != NULL, "%s", error.message);
    crew_communicator_free(crew);
}

Test(crew_communicator, a_lone_device_is_not_tried)
{
    struct crew_communicator *crew = of_spoiling_pair(COLLECTIVE_AUTO, 1);
    cr_expect_eq(crew_communicator_form(crew, NULL, &alone, NULL), 0);
    cr_expect(crew_communicator_is_there(crew) && pair->trials == 0, "%u trials", pair->trials);
    crew_communicator_free(crew);
}
