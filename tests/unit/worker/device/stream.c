/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/worker/device/operation_check.h"

struct fixture {
    struct device *device;
    struct device_stream *first, *second;
    struct device_event *event;
};

static struct fixture open_fixture(int threads)
{
    struct error error = ERROR_INIT;
    struct fixture f;
    struct device_options options = {.threads = threads};
    cr_assert_eq(device_open(&options, &f.device, &error), 0);
    cr_assert_eq(device_stream_new(f.device, &f.first, &error), 0);
    cr_assert_eq(device_stream_new(f.device, &f.second, &error), 0);
    cr_assert_eq(device_event_new(f.device, &f.event, &error), 0);
    return f;
}

static void close_fixture(struct fixture *f)
{
    device_event_free(f->event);
    device_stream_free(f->first);
    device_stream_free(f->second);
    device_close(f->device);
}

static void wait_for_flag(void *context)
{
    while (!atomic_load((_Atomic int *)context))
        sched_yield();
}

Test(stream, a_launch_returns_before_the_work_is_done)
{
    struct fixture f = open_fixture(2);
    _Atomic int flag = 0;
    device_stream_call(f.first, wait_for_flag, &flag);
    device_event_record(f.event, f.first);
    cr_assert_not(device_event_is_done(f.event));
    atomic_store(&flag, 1);
    cr_assert_eq(device_event_wait(f.event, NULL), 0);
    cr_assert(device_event_is_done(f.event));
    close_fixture(&f);
}

Test(stream, one_stream_waits_for_an_event_of_another)
{
    struct fixture f = open_fixture(2);
    _Atomic int flag = 0;
    float x[100] = {0}, y[100] = {0};
    device_stream_call(f.first, wait_for_flag, &flag);
    device_fill(f.first, &(struct fill){100, 3.0f, x});
    device_event_record(f.event, f.first);
    device_stream_wait(f.second, f.event);
    device_axpy(f.second, &(struct axpy){100, 2.0f, x, y});
    atomic_store(&flag, 1);
    cr_assert_eq(device_stream_synchronise(f.second, NULL), 0);
    cr_assert_eq(y[99], 6.0f);
    close_fixture(&f);
}

/* A computation that fails after the second of three. */
static int compute_two(void *context, struct error *error)
{
    int *calls = context;
    calls[0]++;
    if (error->kind != ERROR_NONE)
        return -1;
    return ++calls[1] == 2 ? error_set(error, ERROR_DEVICE, "the second") : 0;
}

Test(stream, a_computation_of_the_host_that_fails_fails_its_stream)
{
    struct fixture f = open_fixture(1);
    struct error error = ERROR_INIT;
    int calls[2] = {0, 0};
    float x[4] = {0};
    for (int i = 0; i < 3; i++)
        device_stream_compute(f.first, compute_two, calls);
    device_fill(f.first, &(struct fill){4, 1.0f, x});
    cr_expect_eq(device_stream_synchronise(f.first, &error), -1);
    cr_expect_str_eq(error.message, "the second");
    cr_expect_eq(calls[0], 3, "each is called, to release its context");
    cr_expect_eq(calls[1], 2);
    cr_expect_eq(x[0], 0.0f, "what was queued behind it is skipped");
    close_fixture(&f);
}

Test(stream, more_launches_than_the_queue_holds_run_in_order)
{
    struct fixture f = open_fixture(3);
    float *x = check_numbers(40000, 1);
    device_fill(f.first, &(struct fill){40000, 0.0f, x});
    float *ones = check_numbers(40000, 2);
    device_fill(f.first, &(struct fill){40000, 1.0f, ones});
    for (int i = 0; i < 2000; i++)
        device_axpy(f.first, &(struct axpy){40000, 1.0f, ones, x});
    cr_assert_eq(device_stream_synchronise(f.first, NULL), 0);
    for (int i = 0; i < 40000; i++)
        cr_assert_eq(x[i], 2000.0f);
    close_fixture(&f);
    free(x), free(ones);
}

Test(stream, the_first_failure_surfaces_at_the_wait_and_stops_later_work)
{
    struct fixture f = open_fixture(1);
    struct error error = ERROR_INIT;
    float logits[2] = {0}, x = 0;
    int32_t target = 9;
    double workspace[2];
    struct loss_sums sums;
    device_softmax_cross_entropy(
        f.first, &(struct softmax_cross_entropy){1, 2, logits, &target, 1, NULL, workspace, &sums, 0, NULL, 0});
    device_fill(f.first, &(struct fill){1, 5.0f, &x});
    device_event_record(f.event, f.first);
    cr_assert_eq(device_event_wait(f.event, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert(strstr(error.message, "target 9"), "%s", error.message);
    cr_assert_eq(device_stream_synchronise(f.first, &error), -1);
    cr_assert_eq(x, 0.0f);
    close_fixture(&f);
}

Test(stream, a_gpu_is_refused_with_a_remedy)
{
    struct error error = ERROR_INIT;
    struct device *device = NULL;
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, &device, &error), -1);
    cr_assert_eq(error.kind, ERROR_UNSUPPORTED);
    cr_assert(strstr(error.message, "CPU"));
}

/* This program is built without CUDA. */
Test(stream, auto_takes_one_kind_for_all_and_says_what_spoke_against_gpus)
{
    struct error error = ERROR_INIT, against = ERROR_INIT;
    struct device *devices[3];
    const struct device_options options = {.type = DEVICE_TYPE_AUTO, .threads = 1};
    cr_assert_eq(devices_open(&options, 3, devices, &against, &error), 0, "%s", error.message);
    cr_expect(strstr(against.message, "built without GPU support"), "%s", against.message);
    for (int i = 0; i < 3; i++) {
        cr_expect(device_memory_is_shared(devices[i]));
        device_close(devices[i]);
    }
}

Test(stream, the_cpu_is_taken_without_a_word_where_it_is_asked_for)
{
    struct error error = ERROR_INIT, against = ERROR_INIT;
    struct device *devices[2];
    cr_assert_eq(devices_open(&(struct device_options){.threads = 1}, 2, devices, &against, &error), 0);
    cr_expect_eq(against.kind, ERROR_NONE);
    device_close(devices[0]);
    device_close(devices[1]);
    cr_expect_eq(devices_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, 2, devices, &against, &error), -1);
    cr_expect(strstr(error.message, "write CPU"), "%s", error.message);
}
