/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_blame.h"

#include <string.h>

#include "common/contract/exit_code.h"

struct device_error {
    const char *text, *reason;
    bool is_setup; /* the container runtime's own error: the container's command never ran */
};

/* Texts of the NVIDIA container runtime, CUDA, NCCL, NVML, the kernel's driver and HIP, as they end up in a log. */
static const struct device_error device_errors[] = {
    {"nvidia-container-cli", "the container runtime could not set up the GPUs", true},
    {"failed to inject CDI devices", "the container runtime could not set up the devices", true},
    {"uncorrectable ECC error", "uncorrectable ECC error of a GPU", false},
    {"ECC_UNCORRECTABLE", "uncorrectable ECC error of a GPU", false},
    {"cudaErrorECCUncorrectable", "uncorrectable ECC error of a GPU", false},
    {"hipErrorECCNotCorrectable", "uncorrectable ECC error of a GPU", false},
    {"uncorrectable NVLink error", "uncorrectable NVLink error", false},
    {"fallen off the bus", "a GPU has fallen off the bus", false},
    {"GPU is lost", "a GPU is lost", false},
    {"NVRM: Xid", "an Xid error of a GPU", false},
    {"no CUDA-capable device is detected", "no GPU can be used", false},
    {"CUDA-capable device(s) is/are busy or unavailable", "no GPU can be used", false},
    {"river/library version mismatch", "the GPU driver and its library differ in version", false},
    {"system not yet initialized", "the GPU fabric is not initialized", false},
    {"ncclSystemError", "NCCL reports a system error", false},
    {"unhandled system error", "NCCL reports a system error", false},
};
#define DEVICE_ERRORS (sizeof device_errors / sizeof *device_errors)

static const struct device_error *find_device_error(const char *text)
{
    for (size_t i = 0; i < DEVICE_ERRORS; i++)
        if (strstr(text, device_errors[i].text))
            return &device_errors[i];
    return NULL;
}

bool node_blame_is_device_setup(const struct pod_view *pod)
{
    const struct device_error *error = find_device_error(pod->termination_message);
    return error && error->is_setup; /* the table has these first, so no other text hides them */
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
        return (struct node_blame){.reason = NODE_BLAME_LOST};
    if (pod->phase == POD_FAILED && is_refused(pod->reason))
        return (struct node_blame){.reason = "the kubelet refused the pod"};
    if (pod->exit_code <= 0 || pod->disruption_target || pod_view_was_asked_to_end(pod))
        return (struct node_blame){0};
    bool is_worker = framework == FRAMEWORK_COXSWAIN && *pod->init_container == '\0';
    if (is_worker && pod->exit_code == EXIT_CODE_UNFIT)
        return (struct node_blame){.reason = "the worker failed its pre-flight check", .is_sure = true};
    const struct device_error *error = find_device_error(pod->termination_message);
    const char *reason = error ? error->reason : NULL;
    if (!reason && is_worker && pod->exit_code == EXIT_CODE_DEVICE_FAILED)
        reason = "a device failed";
    return (struct node_blame){.reason = reason, .by_program = true};
}
