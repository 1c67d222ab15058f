/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_arithmetic.h"

#include <stdio.h>
#include <string.h>

#include "worker/device/device.h"

static void tell_change(const struct strategy_options *options, const struct world *world)
{
    char text[128];
    const char *before = device_arithmetic(options->device);
    if (options->on_notice == NULL || strcmp(before, world->arithmetic) == 0)
        return;
    snprintf(text, sizeof text, "the crew computes with %s arithmetic, which all its members have; this one had %s",
             world->arithmetic, before);
    options->on_notice(options->context, text);
}

int strategy_devices_set_arithmetic(const struct strategy_options *options, const struct world *world,
                                    struct error *error)
{
    if (world->arithmetic[0] == '\0')
        return 0;
    tell_change(options, world);
    for (unsigned i = 0; i < options->device_count; i++)
        if (device_set_arithmetic(options->devices[i].device, world->arithmetic, error) < 0)
            return -1;
    return device_set_arithmetic(options->device, world->arithmetic, error);
}
