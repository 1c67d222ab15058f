/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-test: the GPU against the CPU. Where there is no GPU it says so and skips.
 *
 *     gpu-test [operations]     operations alone: short enough for compute-sanitizer's racecheck
 *     gpu-test operation NAME   those whose names begin so
 *     gpu-test small            all but the larger models: for a GPU that is emulated
 *     gpu-test rehearsal        operations with a CPU in the GPU's place: the cases themselves, where there is none
 */
#include <stdio.h>
#include <string.h>

#include "tests/gpu/check.h"
#include "worker/device/device.h"

static int rehearse(void)
{
    struct side cpu, another;
    side_open(&cpu, DEVICE_TYPE_CPU);
    side_open(&another, DEVICE_TYPE_CPU);
    check_operations(&cpu, &another, "");
    check_not_a_number(&cpu, &another);
    check_steps(&cpu, &another);
    side_close(&another);
    side_close(&cpu);
    return verdicts_exit_status();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    if (strcmp(what, "rehearsal") == 0)
        return rehearse();
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
    const bool is_one = strcmp(what, "operation") == 0 && argc > 2;
    check_operations(&cpu, &gpu, is_one ? argv[2] : "");
    if (!is_one) {
        check_not_a_number(&cpu, &gpu);
        check_steps(&cpu, &gpu);
    }
    if (!is_one && strcmp(what, "operations") != 0) {
        check_streams(&gpu);
        check_recordings(&gpu);
        check_work(&gpu);
        check_models(&cpu, &gpu, strcmp(what, "small") == 0);
    }
    side_close(&gpu);
    side_close(&cpu);
    return verdicts_exit_status();
}
