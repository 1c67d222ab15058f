/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/bench_profile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/device/backend.h"

#define ENTRIES_MAX 1024
#define SHAPE_MAX 64

struct entry {
    enum device_operation operation;
    enum stored stored;
    char shape[SHAPE_MAX];
    double seconds, flops;
    int64_t calls;
};

struct bench_profile {
    struct device *device;
    const struct device_backend *own; /* the device's own */
    struct device_backend timed;      /* replaces it */
    pthread_mutex_t mutex;
    struct entry entries[ENTRIES_MAX];
    unsigned count;
};

/* A launch only gets its stream, so the profile must be global. */
static struct bench_profile *current;

static const char *const names[] = {
#define X(name) [OPERATION_##name] = #name,
    DEVICE_OPERATIONS(X)
#undef X
};

/* ---- what is launched */

static void describe_product(struct entry *entry, int64_t m, int64_t n, int64_t k)
{
    snprintf(entry->shape, sizeof entry->shape, "%lld x %lld x %lld", (long long)m, (long long)n, (long long)k);
    entry->flops = 2 * (double)m * (double)n * (double)k;
}

static void describe_convolution(struct entry *entry, const struct conv2d_shape *shape)
{
    snprintf(entry->shape, sizeof entry->shape, "%lld x %lldx%lldx%lld, %lld of %lldx%lld / %lld", (long long)shape->b,
             (long long)shape->h, (long long)shape->w, (long long)shape->c, (long long)shape->o,
             (long long)shape->kernel, (long long)shape->kernel, (long long)shape->stride);
    entry->flops =
        2 * (double)(shape->b * shape->oh * shape->ow) * (double)(shape->o * shape->c * shape->kernel * shape->kernel);
}

/* Counts half of each square, as layer_attention does; twice that backward. */
static void describe_attention(struct entry *entry, int64_t b, int64_t t, int64_t c, int64_t heads, double times)
{
    snprintf(entry->shape, sizeof entry->shape, "%lld x %lld x %lld, %lld heads", (long long)b, (long long)t,
             (long long)c, (long long)heads);
    entry->flops = times * 2 * (double)b * (double)t * (double)t * (double)c;
}

static struct entry describe(enum device_operation operation, enum stored stored, const void *arguments)
{
    struct entry entry = {.operation = operation, .stored = stored};
    const struct dense_forward *forward = arguments;
    const struct dense_backward_data *data = arguments;
    const struct dense_backward_weight *weight = arguments;
    const struct attention_forward *attention = arguments;
    const struct attention_backward *back = arguments;
    if (operation == OPERATION_dense_forward)
        describe_product(&entry, forward->m, forward->n, forward->k);
    else if (operation == OPERATION_dense_backward_data)
        describe_product(&entry, data->m, data->n, data->k);
    else if (operation == OPERATION_dense_backward_weight)
        describe_product(&entry, weight->m, weight->n, weight->k);
    else if (operation == OPERATION_conv2d_forward)
        describe_convolution(&entry, &((const struct conv2d_forward *)arguments)->shape);
    else if (operation == OPERATION_conv2d_backward_data)
        describe_convolution(&entry, &((const struct conv2d_backward_data *)arguments)->shape);
    else if (operation == OPERATION_conv2d_backward_weight)
        describe_convolution(&entry, &((const struct conv2d_backward_weight *)arguments)->shape);
    else if (operation == OPERATION_attention_forward)
        describe_attention(&entry, attention->b, attention->t, attention->c, attention->heads, 1);
    else if (operation == OPERATION_attention_backward)
        describe_attention(&entry, back->b, back->t, back->c, back->heads, 2);
    return entry;
}

/* ---- launches */

static bool is_same(const struct entry *a, const struct entry *b)
{
    return a->operation == b->operation && a->stored == b->stored && strcmp(a->shape, b->shape) == 0;
}

static void add(struct bench_profile *profile, const struct entry *found, double seconds)
{
    pthread_mutex_lock(&profile->mutex);
    unsigned i = 0;
    while (i < profile->count && !is_same(&profile->entries[i], found))
        i++;
    if (i == profile->count && i < ENTRIES_MAX)
        profile->entries[profile->count++] = *found;
    if (i < ENTRIES_MAX) {
        profile->entries[i].seconds += seconds;
        profile->entries[i].calls++;
    }
    pthread_mutex_unlock(&profile->mutex);
}

/* Waits for the stream's earlier work, including waits for other streams' copies, so that it does not count as this launch's. */
static void launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                          const void *arguments)
{
    struct error ignored = ERROR_INIT; /* a failed stream reports the error again to the next wait */
    const struct entry entry = describe(operation, stored, arguments);
    (void)current->own->stream_synchronise(stream, &ignored);
    int64_t start = clock_monotonic_ns();
    if (stored == STORED_FLOAT32)
        current->own->launch(stream, operation, arguments);
    else
        current->own->launch_stored(stream, stored, operation, arguments);
    (void)current->own->stream_synchronise(stream, &ignored);
    add(current, &entry, (double)(clock_monotonic_ns() - start) * 1e-9);
}

static void launch(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    launch_stored(stream, STORED_FLOAT32, operation, arguments);
}

static int stream_new(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    if (current->own->stream_new(device, ret_stream, error) < 0)
        return -1;
    (*ret_stream)->backend = &current->timed;
    return 0;
}

/* ---- life cycle */

struct bench_profile *bench_profile_new(struct device *device)
{
    struct bench_profile *profile = memory_allocate(1, sizeof *profile);
    profile->device = device;
    profile->own = device->backend;
    profile->timed = *device->backend;
    profile->timed.launch = launch;
    profile->timed.launch_stored = launch_stored;
    profile->timed.stream_new = stream_new;
    pthread_mutex_init(&profile->mutex, NULL);
    device->backend = &profile->timed;
    current = profile;
    return profile;
}

void bench_profile_free(struct bench_profile *profile)
{
    profile->device->backend = profile->own;
    current = NULL;
    pthread_mutex_destroy(&profile->mutex);
    free(profile);
}

void bench_profile_clear(struct bench_profile *profile)
{
    profile->count = 0;
}

/* ---- the table */

static int by_time(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    return (first->seconds < second->seconds) - (first->seconds > second->seconds);
}

static void print_entry(const struct entry *entry, int steps, double total, double peak)
{
    static const char *const words[] = {
        [STORED_FLOAT32] = "float32", [STORED_BFLOAT16] = "bfloat16", [STORED_FLOAT16] = "float16"};
    double speed = entry->flops * (double)entry->calls / entry->seconds;
    printf("%-24s %-8s %-34s %7.1f %10.3f %5.1f %% %11.1f", names[entry->operation], words[entry->stored], entry->shape,
           (double)entry->calls / steps, 1e3 * entry->seconds / steps, 100 * entry->seconds / total,
           1e6 * entry->seconds / (double)entry->calls);
    if (entry->flops > 0)
        printf(" %9.2f", speed * 1e-12);
    if (entry->flops > 0 && peak > 0)
        printf(" %5.1f %%", 100 * speed / peak);
    putchar('\n');
}

double bench_profile_print(const struct bench_profile *profile, int steps, double peak)
{
    struct entry *sorted = memory_allocate(ENTRIES_MAX, sizeof *sorted);
    double total = 0;
    memcpy(sorted, profile->entries, profile->count * sizeof *sorted);
    qsort(sorted, profile->count, sizeof *sorted, by_time);
    for (unsigned i = 0; i < profile->count; i++)
        total += sorted[i].seconds;
    printf("%-24s %-8s %-34s %7s %10s %7s %11s %9s %7s\n", "operation", "values", "shape", "a step", "ms a step",
           "share", "us each", "TFLOP/s", "of peak");
    for (unsigned i = 0; i < profile->count; i++)
        print_entry(&sorted[i], steps, total, peak);
    free(sorted);
    return 1e3 * total / steps;
}
