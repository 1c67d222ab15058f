/* SPDX-License-Identifier: Apache-2.0
 *
 * The most that a GPU can compute a second, by NVIDIA's data sheets: dense
 * products (sheets often tell twice as much, with sparsity), at boost clock.
 * What a model uses of it is its model FLOPs utilisation (MFU).
 */
#ifndef COXSWAIN_DEVICE_GPU_PEAK_H
#define COXSWAIN_DEVICE_GPU_PEAK_H

#include "worker/device/device.h"

/* FLOP/s; 0 where the GPU, which is named as CUDA names it, is not in the table, or is a part of one (MIG).
 * `arithmetic`: device_arithmetic(). */
double gpu_peak_flops(const char *name, const char *arithmetic, enum device_peak peak);

#endif
