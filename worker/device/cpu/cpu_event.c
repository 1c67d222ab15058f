/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cpu/futex.h"

int cpu_event_new(struct device *device, struct device_event **ret_event, struct error *error)
{
    (void)device;
    (void)error;
    struct cpu_event *event = memory_allocate(1, sizeof *event);
    event->base.backend = &cpu_backend;
    *ret_event = &event->base;
    return 0;
}

void cpu_event_free(struct device_event *event)
{
    free(event);
}

/* Whether `completed` has come as far as `ticket`, on counters that wrap. */
static bool reached(uint32_t completed, uint32_t ticket)
{
    return (int32_t)(completed - ticket) >= 0;
}

void cpu_event_complete(struct cpu_event *event, uint32_t ticket, const struct error *error)
{
    if (error->kind != ERROR_NONE) {
        event->error = *error;
        atomic_store(&event->failed, true);
    }
    atomic_store(&event->completed, ticket);
    if (atomic_load(&event->sleepers) > 0)
        futex_wake_all(&event->completed);
}

void cpu_event_await(struct cpu_event *event, uint32_t ticket)
{
    for (;;) {
        uint32_t seen = atomic_load(&event->completed);
        if (reached(seen, ticket) || reached(spin_while(&event->completed, seen), ticket))
            return;
        atomic_fetch_add(&event->sleepers, 1);
        if (atomic_load(&event->completed) == seen)
            futex_wait(&event->completed, seen);
        atomic_fetch_sub(&event->sleepers, 1);
    }
}

bool cpu_event_is_done(const struct device_event *base)
{
    const struct cpu_event *event = (const struct cpu_event *)base;
    return reached(atomic_load(&event->completed), atomic_load(&event->recorded));
}

int cpu_event_wait(struct device_event *base, struct error *error)
{
    struct cpu_event *event = (struct cpu_event *)base;
    cpu_event_await(event, atomic_load(&event->recorded));
    if (!atomic_load(&event->failed))
        return 0;
    return error_set(error, event->error.kind, "%s", event->error.message);
}
