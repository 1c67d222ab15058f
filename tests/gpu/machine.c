/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports what a worker finds on this machine.
 */
#include <stdio.h>

#include "tests/gpu/check.h"
#include "worker/device/communicator.h"

/* Prints the version of NCCL, or why it is not available. */
static void tell_communicator(struct device *device)
{
    struct communicator_capabilities capabilities = {.version = 0};
    struct error error = ERROR_INIT;
    char version[COMMUNICATOR_VERSION_MAX];
    if (communicator_prepare(device, &capabilities, &error) < 0) {
        printf("nccl none: %s\n", error.message);
        return;
    }
    communicator_version_text(capabilities.version, version);
    printf("nccl %s\n", version);
    printf("ranks on one GPU: %s\n", capabilities.may_share_device ? "several" : "one");
}

int tell_machine(void)
{
    struct error error = ERROR_INIT;
    int count = 0;
    for (;; count++) {
        struct device *device = NULL;
        if (device_open(&(struct device_options){.type = DEVICE_TYPE_GPU, .index = count}, &device, &error) < 0)
            break;
        if (count == 0)
            tell_communicator(device);
        device_close(device);
    }
    printf("gpus %d%s%s\n", count, count == 0 ? ": " : "", count == 0 ? error.message : "");
    return 0;
}
