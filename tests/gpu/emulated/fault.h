/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU that fails. With EMULATED_FAULT=CODE (of cudaError_t), the grid with number EMULATED_FAULT_GRID (40), counted over all streams in
 * the order in which grids run, does not run, nor does any after it. From then on, every wait and every request returns that error. With
 * EMULATED_FAULT_SEEN_BY=cublas, the fault happens before the product with that number instead, and cuBLAS sees it first. Since cuBLAS
 * has a runtime of its own, the caller's runtime has no last error then.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_FAULT_H
#define COXSWAIN_TESTS_GPU_EMULATED_FAULT_H

#include "tests/gpu/emulated/block.h"

/* Counts a grid that is about to run. Returns whether it may. */
bool emulated_may_run(void);
/* Counts a product. Returns whether cuBLAS fails. */
bool emulated_product_fails(void);
/* The GPU's error, or cudaSuccess. */
cudaError_t emulated_fault(void);

#endif
