/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_blame.h"

#include <string.h>

#include "common/contract/exit_code.h"

/* Texts of the NVIDIA container runtime, CUDA, NCCL, NVML, the kernel's driver and HIP, as they end up in a log. */
static const struct {
    const char *text, *reason;
} device_errors[] = {
    {"nvidia-container-cli", "the container runtime could not set up the GPUs"},
    {"failed to inject CDI devices", "the container runtime could not set up the devices"},
    {"uncorrectable ECC error", "uncorrectable ECC error of a GPU"},
    {"ECC_UNCORRECTABLE", "uncorrectable ECC error of a GPU"},
    {"cudaErrorECCUncorrectable", "uncorrectable ECC error of a GPU"},
    {"hipErrorECCNotCorrectable", "uncorrectable ECC error of a GPU"},
    {"uncorrectable NVLink error", "uncorrectable NVLink error"},
    {"fallen off the bus", "a GPU has fallen off the bus"},
    {"GPU is lost", "a GPU is lost"},
    {"NVRM: Xid", "an Xid error of a GPU"},
    {"no CUDA-capable device is detected", "no GPU can be used"},
    {"CUDA-capable device(s) is/are busy or unavailable", "no GPU can be used"},
    {"river/library version mismatch", "the GPU driver and its library differ in version"},
    {"system not yet initialized", "the GPU fabric is not initialized"},
    {"ncclSystemError", "NCCL reports a system error"},
    {"unhandled system error", "NCCL reports a system error"},
};
#define DEVICE_ERRORS (sizeof device_errors / sizeof *device_errors)

static const char *device_error(const char *text)
{
    for (size_t i = 0; i < DEVICE_ERRORS; i++)
        if (strstr(text, device_errors[i].text))
            return device_errors[i].reason;
    return NULL;
}

bool node_blame_is_device_setup(const struct pod_view *pod)
{
    return strstr(pod->termination_message, "nvidia-container-cli") ||
           strstr(pod->termination_message, "failed to inject CDI devices");
}

/* Reasons of a pod that its kubelet refused: "OutOfcpu" and "OutOfnvidia.com/gpu" for every resource. */
static bool is_refused(const char *reason)
{
    return strcmp(reason, "UnexpectedAdmissionError") == 0 || strcmp(reason, "TopologyAffinityError") == 0 ||
           strncmp(reason, "OutOf", strlen("OutOf")) == 0;
}

static bool is_lost(const struct pod_view *pod)
{
    return strcmp(pod->disrupted_by, "DeletionByTaintManager") == 0 || strcmp(pod->reason, "NodeLost") == 0;
}

struct node_blame node_blame_of(const struct pod_view *pod, enum framework framework)
{
    if (*pod->node == '\0')
        return (struct node_blame){0};
    if (is_lost(pod))
        return (struct node_blame){.reason = "the node was lost"};
    if (pod->phase == POD_FAILED && is_refused(pod->reason))
        return (struct node_blame){.reason = "the kubelet refused the pod"};
    if (pod->exit_code <= 0 || pod->disruption_target || pod_view_was_asked_to_end(pod))
        return (struct node_blame){0};
    bool own = framework == FRAMEWORK_COXSWAIN && *pod->init_container == '\0';
    const char *reason = device_error(pod->termination_message);
    if (!reason && own && pod->exit_code == EXIT_CODE_DEVICE_FAILED)
        reason = "a device failed";
    return (struct node_blame){.reason = reason, .by_program = true};
}
