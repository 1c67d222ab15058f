/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up a GPU's peak FLOP/s in a table from NVIDIA's data sheets, for dense products at boost
 * clock. (The sheets often give twice as much, with sparsity.) Reports divide the FLOP/s that
 * training achieves by this peak to get the model FLOPs utilisation (MFU).
 */
#ifndef COXSWAIN_DEVICE_GPU_PEAK_H
#define COXSWAIN_DEVICE_GPU_PEAK_H

#include "worker/device/device.h"

/* Returns the peak in FLOP/s; 0 if the table lacks the GPU or `name` is a MIG instance. `name`:
 * as CUDA names it. `arithmetic`: from device_arithmetic(). */
double gpu_peak_flops(const char *name, const char *arithmetic, enum device_peak peak);

#endif
