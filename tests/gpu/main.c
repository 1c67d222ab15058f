/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-test: the GPU against the CPU. Where there is no GPU it says so and skips.
 *
 *     gpu-test [operations]     operations alone: short enough for compute-sanitizer's racecheck
 */
#include <stdio.h>
#include <string.h>

#include "tests/gpu/check.h"

int main(int argc, char **argv)
{
    struct error error = ERROR_INIT;
    struct device *probe = NULL;
    if (device_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, &probe, &error) < 0) {
        printf("skip gpu-test: %s\n", error.message);
        return 0;
    }
    device_close(probe);
    struct side cpu, gpu;
    side_open(&cpu, DEVICE_TYPE_CPU);
    side_open(&gpu, DEVICE_TYPE_GPU);
    printf("%s; %s\n", device_description(gpu.device), device_description(cpu.device));
    check_operations(&cpu, &gpu);
    if (argc < 2 || strcmp(argv[1], "operations") != 0) {
        check_streams(&gpu);
        check_models(&cpu, &gpu);
    }
    side_close(&gpu);
    side_close(&cpu);
    return verdicts_exit_status();
}
