/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in for cuda/ in a build without CUDA=1.
 */
#include "worker/device/backend.h"

#define REFUSAL "this worker was built without GPU support (make CUDA=1)"

int cuda_devices_find(unsigned count, struct error *error)
{
    (void)count;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

int cuda_device_open(const struct device_options *options, struct device **ret_device, struct error *error)
{
    (void)options, (void)ret_device;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}
