/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-test: compares the GPU with the CPU. Skips, with a message, if there is no GPU.
 *
 *     gpu-test [operations]     only operations: short enough for compute-sanitizer's racecheck
 *     gpu-test operation NAME   only operations whose names have this beginning
 *     gpu-test streams          only order, failures, recordings and peers' replicas
 *     gpu-test small            everything but the larger models, for an emulated GPU
 *     gpu-test machine          reports the GPUs and NCCL that it finds
 *     gpu-test rehearsal        operations with a CPU instead of the GPU, which tests the cases themselves
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
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

/* Returns whether cuDNN is available; a machine may lack it. */
static bool has_dnn(void)
{
    struct error error = ERROR_INIT;
    struct device *probe = NULL;
    setenv(ENV_GPU_DNN, "1", 1);
    const bool found = device_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, &probe, &error) == 0;
    if (found)
        device_close(probe);
    else
        printf("skip cuDNN: %s\n", error.message);
    unsetenv(ENV_GPU_DNN);
    return found;
}

/* Opens the GPU again with cuBLASLt (ENV_GPU_LT) and cuDNN (ENV_GPU_DNN). It changes the environment, so it must come before other
 * threads exist. */
static void open_fused(struct side *fused, bool with_dnn)
{
    setenv(ENV_GPU_LT, "1", 1);
    setenv(ENV_GPU_DNN, with_dnn ? "1" : "0", 1);
    side_open(fused, DEVICE_TYPE_GPU);
    unsetenv(ENV_GPU_LT);
    unsetenv(ENV_GPU_DNN);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    if (strcmp(what, "rehearsal") == 0)
        return rehearse();
    if (strcmp(what, "machine") == 0)
        return tell_machine();
    struct error error = ERROR_INIT;
    struct device *probe = NULL;
    if (device_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, &probe, &error) < 0) {
        printf("skip gpu-test: %s\n", error.message);
        return 0;
    }
    device_close(probe);
    struct side cpu, gpu, fused;
    const bool with_dnn = has_dnn();
    open_fused(&fused, with_dnn);
    side_open(&cpu, DEVICE_TYPE_CPU);
    side_open(&gpu, DEVICE_TYPE_GPU);
    printf("%s; %s\n", device_description(gpu.device), device_description(cpu.device));
    const bool is_one = strcmp(what, "operation") == 0 && argc > 2, streams = strcmp(what, "streams") == 0;
    if (!streams) {
        check_operations(&cpu, &gpu, is_one ? argv[2] : "");
        if (!is_one || strncmp(argv[2], "dense", strlen("dense")) == 0)
            check_operations(&cpu, &fused, is_one ? argv[2] : "dense");
    }
    if (with_dnn && !streams && (!is_one || strncmp(argv[2], "conv2d", strlen("conv2d")) == 0))
        check_convolutions(&gpu, &fused);
    if (!is_one && !streams) {
        check_not_a_number(&cpu, &gpu);
        check_steps(&cpu, &gpu);
        check_products(&gpu, &fused);
        check_launches(&gpu, &fused);
    }
    if (!is_one && strcmp(what, "operations") != 0) {
        check_streams(&gpu);
        check_recordings(&gpu);
        check_peer_replicas(&cpu, &gpu);
    }
    if (!is_one && !streams && strcmp(what, "operations") != 0) {
        check_work(&gpu);
        check_moves(&gpu);
        check_models(&cpu, &gpu, &fused, strcmp(what, "small") == 0);
    }
    side_close(&gpu);
    side_close(&cpu);
    side_close(&fused);
    return verdicts_exit_status();
}
