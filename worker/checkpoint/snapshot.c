/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memory.h"

static void forget_tensors(struct snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->count; i++)
        free((char *)snapshot->tensors[i].name);
    free(snapshot->tensors);
    snapshot->tensors = NULL;
    snapshot->count = 0;
}

static size_t total_bytes(const struct safetensors_tensor *tensors, unsigned count)
{
    size_t total = 0;
    for (unsigned i = 0; i < count; i++)
        total += tensors[i].bytes;
    return total;
}

/* Touches every page now, so that page faults do not slow down the first copy, for which training
 * waits. Uses huge pages where the kernel has them, since most of the cost is per page. */
static void touch_pages(char *bytes, size_t length)
{
    (void)madvise(bytes, length, MADV_HUGEPAGE);
    long page = sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < length; at += (size_t)page)
        *(volatile char *)(bytes + at) = 0;
}

int snapshot_reserve(struct snapshot *snapshot, size_t bytes, struct error *error)
{
    if (bytes <= snapshot->capacity)
        return 0;
    if (snapshot->bytes)
        munmap(snapshot->bytes, snapshot->capacity);
    snapshot->capacity = 0;
    snapshot->bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (snapshot->bytes == MAP_FAILED) {
        snapshot->bytes = NULL;
        return error_set(error, ERROR_NO_SPACE, "no memory for a checkpoint's copy of %zu bytes", bytes);
    }
    touch_pages(snapshot->bytes, bytes);
    snapshot->capacity = bytes;
    return 0;
}

void snapshot_describe(struct snapshot *snapshot, const struct safetensors_tensor *tensors, unsigned count)
{
    forget_tensors(snapshot);
    snapshot->tensors = memory_allocate(count, sizeof *tensors);
    memcpy(snapshot->tensors, tensors, count * sizeof *tensors);
    snapshot->count = count;
    for (unsigned i = 0; i < count; i++)
        snapshot->tensors[i].name = memory_copy_string(tensors[i].name);
}

int snapshot_copy(struct snapshot *snapshot, struct error *error)
{
    if (snapshot_reserve(snapshot, total_bytes(snapshot->tensors, snapshot->count), error) < 0) {
        forget_tensors(snapshot);
        return -1;
    }
    char *next = snapshot->bytes;
    for (unsigned i = 0; i < snapshot->count; i++) {
        struct safetensors_tensor *copy = &snapshot->tensors[i];
        copy->data = memcpy(next, copy->data, copy->bytes);
        next += copy->bytes;
    }
    return 0;
}

void snapshot_release(struct snapshot *snapshot)
{
    forget_tensors(snapshot);
    if (snapshot->bytes)
        munmap(snapshot->bytes, snapshot->capacity);
    *snapshot = (struct snapshot){0};
}
