/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu_device.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/memory.h"
#include "worker/device/host_memory.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define LARGE_PAGES_FROM (2 * LARGE_PAGE)

static void cpu_close(struct device *base)
{
    struct cpu_device *device = (struct cpu_device *)base;
    team_free(device->team);
    free(device);
}

static const char *cpu_arithmetic(const struct device *base)
{
    return ((const struct cpu_device *)base)->kernel->name;
}

static bool cpu_set_arithmetic(struct device *base, const char *arithmetic)
{
    const struct gemm_kernel *kernel = gemm_kernel_choose(arithmetic);
    if (kernel != NULL)
        ((struct cpu_device *)base)->kernel = kernel;
    return kernel != NULL;
}

/* Vectors are read and written from end to end, and with small pages the processor looks up a page every 1,024 floats. Only pages
 * entirely within the memory become large, so that no more memory is used than requested. If the kernel has no large pages, pages stay
 * small. */
static void prefer_large_pages(char *memory, size_t bytes)
{
    size_t before = -(uintptr_t)memory & (LARGE_PAGE - 1);
    if (bytes >= LARGE_PAGES_FROM)
        (void)madvise(memory + before, (bytes - before) & ~(LARGE_PAGE - 1), MADV_HUGEPAGE);
}

static int cpu_allocate(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                        struct error *error)
{
    (void)device;
    (void)kind; /* all memory of a CPU is shared */
    size_t rounded = (bytes + 63) / 64 * 64;
    void *memory = rounded >= bytes ? aligned_alloc(64, rounded ? rounded : 64) : NULL;
    if (!memory)
        return error_set(error, ERROR_NO_SPACE, "no memory for %zu bytes", bytes);
    if (host_memory_take((int64_t)malloc_usable_size(memory), error) < 0) {
        free(memory);
        return -1;
    }
    prefer_large_pages(memory, rounded);
    memset(memory, 0, rounded);
    *ret_memory = memory;
    return 0;
}

static void cpu_free(struct device *device, void *memory)
{
    (void)device;
    host_memory_give_back((int64_t)malloc_usable_size(memory));
    free(memory);
}

const struct device_backend cpu_backend = {
    .memory_is_shared = true,
    .close = cpu_close,
    .arithmetic = cpu_arithmetic,
    .set_arithmetic = cpu_set_arithmetic,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_synchronise = cpu_stream_synchronise,
    .stream_wait = cpu_stream_wait,
    .stream_call = cpu_stream_call,
    .stream_compute = cpu_stream_compute,
    .launch = cpu_launch,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_is_done = cpu_event_is_done,
    .event_wait = cpu_event_wait,
};

int cpu_device_open(const struct device_options *options, struct device **ret_device, struct error *error)
{
    const struct gemm_kernel *kernel = gemm_kernel_choose(options->arithmetic);
    if (!kernel)
        return error_set(error, ERROR_UNSUPPORTED, "this processor has no \"%s\" arithmetic", options->arithmetic);
    int threads = options->threads > 0 ? options->threads : device_available_cpus();
    struct team *team = NULL;
    if (team_new(threads, CPU_SCRATCH_BYTES, &team, error) < 0)
        return -1;
    struct cpu_device *device = memory_allocate(1, sizeof *device);
    *device = (struct cpu_device){.base.backend = &cpu_backend, .team = team, .kernel = kernel};
    snprintf(device->base.description, sizeof device->base.description, "CPU, %d thread%s, %s", threads,
             threads == 1 ? "" : "s", kernel->title);
    *ret_device = &device->base;
    return 0;
}
