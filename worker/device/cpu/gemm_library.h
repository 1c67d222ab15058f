/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes large matrix products with oneDNN (onednn.h) where that is faster than our own kernel,
 * even though bias, rectifier and mask then need a second pass over the elements;
 * docs/performance.md has the figures. gemm_run asks gemm_library_suits for each product.
 *
 * The choice, and the pieces of the product, depend on arithmetic and shape alone: the library's
 * sums may depend on the shape of a piece, and must not depend on the number of threads.
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_LIBRARY_H
#define COXSWAIN_DEVICE_CPU_GEMM_LIBRARY_H

#include "worker/device/cpu/gemm.h"

/* Returns whether gemm_library_run is to compute the product. */
bool gemm_library_suits(const struct gemm_kernel *kernel, const struct gemm *gemm);
/* Runs the product on the team. */
void gemm_library_run(const struct cpu_call *call, const struct gemm *gemm);

#endif
