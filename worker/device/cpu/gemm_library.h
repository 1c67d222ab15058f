/* SPDX-License-Identifier: Apache-2.0
 *
 * Tall matrix products by the library (onednn.h) in place of our own kernel,
 * where that is quicker in spite of a second look at each element for what a
 * layer does to its output; docs/performance.md has the figures. What goes to
 * the library, and in which pieces, follows from arithmetic and shape alone: its
 * sums may depend on the shape of a piece, and must not on the number of threads.
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_LIBRARY_H
#define COXSWAIN_DEVICE_CPU_GEMM_LIBRARY_H

#include "worker/device/cpu/gemm.h"

bool gemm_library_suits(const struct gemm_kernel *kernel, const struct gemm *gemm);
/* Over the team. */
void gemm_library_run(const struct cpu_call *call, const struct gemm *gemm);

#endif
