/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_arithmetic.h"

#include <stdio.h>
#include <string.h>

#include "worker/device/device.h"

static bool holds_state(const struct world *world)
{
    return world->source == WORLD_SOURCE_PEER && !world->receives[world->rank];
}

static void tell_change(const struct strategy_options *options, const struct world *world, const char *after)
{
    char text[256];
    const char *before = device_arithmetic(options->device);
    bool in_training = holds_state(world);
    void (*tell)(void *context, const char *text) = in_training ? options->calls.on_warning : options->calls.on_notice;
    if (tell == NULL || strcmp(before, after) == 0)
        return;
    if (in_training)
        snprintf(text, sizeof text,
                 "a member of the crew lacks the %s arithmetic that it has computed with: it goes on with %s, and the "
                 "bits may differ from step %lld on",
                 before, after, (long long)world->step + 1);
    else
        snprintf(text, sizeof text, "the crew computes with %s arithmetic, which all its members have; this one had %s",
                 after, before);
    tell(options->calls.context, text);
}

int strategy_devices_set_arithmetic(const struct strategy_options *options, const struct world *world,
                                    struct error *error)
{
    char name[ARITHMETIC_MAX] = "";
    memcpy(name, world->arithmetic, arithmetic_length(world->arithmetic));
    if (name[0] == '\0')
        return 0;
    tell_change(options, world, name);
    for (unsigned i = 0; i < options->device_count; i++)
        if (device_set_arithmetic(options->devices[i].device, name, error) < 0)
            return -1;
    return device_set_arithmetic(options->device, name, error);
}
