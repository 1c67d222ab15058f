/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/gpu_peak.h"

#include <criterion/criterion.h>

Test(gpu_peak, is_of_the_gpu_that_is_named)
{
    static const struct {
        const char *name, *arithmetic;
        enum device_peak peak;
        double tera;
    } cases[] = {
        {"NVIDIA H200", "sm_90", DEVICE_PEAK_HALF, 989},
        {"NVIDIA H200", "sm_90", DEVICE_PEAK_TF32, 494.5},
        {"NVIDIA H200", "sm_90", DEVICE_PEAK_FLOAT32, 67},
        {"NVIDIA H200 NVL", "sm_90", DEVICE_PEAK_HALF, 835.5},
        {"NVIDIA H100 80GB HBM3", "sm_90", DEVICE_PEAK_HALF, 989},
        {"NVIDIA H100 PCIe", "sm_90", DEVICE_PEAK_HALF, 756},
        {"NVIDIA A100-SXM4-80GB", "sm_80", DEVICE_PEAK_HALF, 312},
        {"NVIDIA A100-PCIE-40GB", "sm_80", DEVICE_PEAK_FLOAT32, 19.5},
        {"NVIDIA A10", "sm_86", DEVICE_PEAK_HALF, 125},
        {"NVIDIA L40S", "sm_89", DEVICE_PEAK_HALF, 362},
        {"NVIDIA L4", "sm_89", DEVICE_PEAK_HALF, 121},
        /* other GPUs with the same beginning of the name; parts of GPUs; a name with the wrong architecture */
        {"NVIDIA A10G", "sm_86", DEVICE_PEAK_HALF, 0},
        {"NVIDIA A1000", "sm_86", DEVICE_PEAK_HALF, 0},
        {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "sm_90", DEVICE_PEAK_HALF, 0},
        {"NVIDIA H200", "sm_100", DEVICE_PEAK_HALF, 0},
        {"H200", "sm_90", DEVICE_PEAK_HALF, 0},
        {"emulated by the processor", "sm_90", DEVICE_PEAK_HALF, 0},
        {"", "sm_90", DEVICE_PEAK_HALF, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found = gpu_peak_flops(cases[i].name, cases[i].arithmetic, cases[i].peak);
        cr_expect_eq(found, cases[i].tera * 1e12, "%s: %g", cases[i].name, found);
    }
}

Test(gpu_peak, nobody_knows_that_of_a_cpu)
{
    struct device *device = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU}, &device, &error), 0);
    cr_expect_eq(device_peak_flops(device, DEVICE_PEAK_FLOAT32), 0);
    device_close(device);
}
