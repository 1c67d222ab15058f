/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the NVIDIA GPUs that processes of this machine may use, by the names that CUDA_VISIBLE_DEVICES takes. CUDA is not needed: if that
 * variable is set, it names them (numbers, or UUIDs of GPUs or of their MIG instances); otherwise each /dev/nvidia0, /dev/nvidia1, … is
 * one, and they are named "0", "1", … without gaps, as CUDA numbers the GPUs that a process can open. A container has these files only for
 * the GPUs that it was given. Where the driver makes none (WSL), the variable names the GPUs.
 */
#ifndef COXSWAIN_COMMON_GPU_LIST_H
#define COXSWAIN_COMMON_GPU_LIST_H

#define GPU_LIST_MAX 64
/* Pods request GPUs as GPU_RESOURCE, or parts of GPUs as other resources of the domain (nvidia.com/mig-1g.10gb). */
#define GPU_RESOURCE_DOMAIN "nvidia.com/"
#define GPU_RESOURCE GPU_RESOURCE_DOMAIN "gpu"
#define ENV_VISIBLE_GPUS "CUDA_VISIBLE_DEVICES"

/* Owns the names; release with gpu_list_release. GPUs beyond GPU_LIST_MAX are left out. */
struct gpu_list {
    char *names[GPU_LIST_MAX];
    unsigned count;
};

/* `visible`: the value of CUDA_VISIBLE_DEVICES; as with CUDA, the names before the first invalid or repeated one count. NULL: it is not
 * set, and the files in the directory `devices` count. */
void gpu_list_read(const char *visible, const char *devices, struct gpu_list *ret_list);
/* The GPUs of this machine, for this process' environment. */
void gpu_list_read_machine(struct gpu_list *ret_list);
void gpu_list_release(struct gpu_list *list);

#endif
