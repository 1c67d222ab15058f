/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU that goes bad: with EMULATED_FAULT=CODE (of cudaError_t) the grid of number EMULATED_FAULT_GRID (40), counted over all
 * streams in the order in which they run, does not run, nor does any after it; whoever waits for the GPU, or asks it for more,
 * is told that error from then on. With EMULATED_FAULT_SEEN_BY=cublas it happens before the product of that number, and cuBLAS sees
 * it first, which has a runtime of its own: the caller's knows of no last error.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_FAULT_H
#define COXSWAIN_TESTS_GPU_EMULATED_FAULT_H

#include "tests/gpu/emulated/block.h"

/* Counts a grid that is about to run: whether it may. */
bool emulated_may_run(void);
/* Counts a product: whether cuBLAS fails with it. */
bool emulated_product_fails(void);
/* cudaSuccess, or what the GPU has died of. */
cudaError_t emulated_fault(void);

#endif
