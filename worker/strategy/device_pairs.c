/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_pairs.h"

#include "worker/device/device.h"

bool device_pair_try(const struct strategy_options *options, struct device *one, struct device *other)
{
    struct error error = ERROR_INIT;
    int result = device_reach(one, other, &error);
    if (device_reach(other, one, result == 0 ? &error : NULL) < 0)
        result = -1;
    if (result < 0 && options->calls.on_warning != NULL)
        options->calls.on_warning(options->calls.context, error.message);
    return result == 0;
}

bool device_pairs_try(const struct strategy_options *options, struct device *const *devices, unsigned count)
{
    bool keep = true;
    for (unsigned b = 0; b < count; b++)
        for (unsigned a = 0; a < b; a++)
            keep &= device_pair_try(options, devices[a], devices[b]);
    return keep;
}
