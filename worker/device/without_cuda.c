/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in for cuda/ in a build without CUDA=1.
 */
#include "worker/device/backend.h"

int cuda_device_open(const struct device_options *options, struct device **ret_device, struct error *error)
{
    (void)options, (void)ret_device;
    return error_set(error, ERROR_UNSUPPORTED,
                     "devices.type: this worker was built without GPU support (make CUDA=1); write CPU or Auto");
}
