/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a block of a GPU's threads on one thread of the processor. Each thread of the block is a fiber that runs until it meets a barrier.
 * Then the next one of its warp continues, and the next warp once all threads of this one are done or wait at the block's barrier.
 * Threads take turns in the order of their numbers, or in reverse (EMULATED_ORDER=backward): a kernel that lacks a barrier reads values
 * that have not been written yet in one of the two orders.
 *
 * What a GPU leaves undefined ends the program with a message: an exchange of a warp's words that one of its lanes does not take part in.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_BLOCK_H
#define COXSWAIN_TESTS_GPU_EMULATED_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/gpu/emulated/include/cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_WARP 32
#define EMULATED_THREADS_MAX 1024                /* of a block */
#define EMULATED_SHARED_BYTES_MAX (227 << 10)    /* dynamic shared memory of a block, as on compute capability 9.0 */
#define EMULATED_SHARED_BYTES_UNASKED (48 << 10) /* without cudaFuncSetAttribute */

struct emulated_place {
    unsigned x, y, z;
};

/* Position of the running fiber, under the names that kernels use. */
extern __thread struct emulated_place threadIdx, blockIdx, blockDim, gridDim;

/* A launch: run(context) is one thread's run of the kernel. */
struct emulated_grid {
    struct emulated_place blocks, threads;
    size_t shared_bytes;
    void *kernel;
    void (*run)(void *context);
    void *context;
    size_t context_bytes;
};

/* Runs all blocks, one after the other, on the calling thread; frees nothing. */
void emulated_run_grid(const struct emulated_grid *grid);
/* Frees what the calling thread has used to run blocks; call it before the thread ends. */
void emulated_release_fibers(void);

/* The rest may only be called in a kernel. */
void emulated_block_barrier(void);
unsigned emulated_lane(void);
/* Gives `word` and gets that of lane `from`; all of `lanes` must take part. */
uint64_t emulated_exchange(unsigned lanes, uint64_t word, unsigned from);
unsigned emulated_ballot(unsigned lanes, bool predicate);
/* Number of words that lanes have given so far on all streams, as a measure of the warps' work. */
uint64_t emulated_exchanges(void);
/* Computes a lane's part of sums[16,8] += left[16,16] right[16,8] like mma.m16n8k16; the factors are "bf16.bf16" or "f16.f16". The whole
 * warp must take part. */
void emulated_multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2], const char *types);
/* Reads a lane's part of four matrices [8,8] of two-byte numbers in shared memory like ldmatrix: lane 8 i + j names row j of matrix i,
 * and gets two neighbours of a row of each, or, if `turned`, of a column. The whole warp must take part. */
void emulated_read_matrices(uint32_t parts[4], const void *row, bool turned);
/* Copies asynchronously, like cp.async. The bytes arrive as late as possible, when the thread awaits the copies that it has closed; with
 * EMULATED_ORDER=backward they arrive at once. One of the two shows a kernel that overwrites what others still read. If not `there`,
 * zeros arrive. */
void emulated_copy_ahead(void *to, const void *from, unsigned bytes, bool there);
void emulated_close_copies(void);
void emulated_await_copies(void);

/* runtime.c: checks the grid's sizes and queues it, and a copy of its context, on the stream. */
cudaError_t emulated_launch(cudaStream_t stream, const struct emulated_grid *grid);
cudaError_t emulated_set_attribute(void *kernel, enum cudaFuncAttribute attribute, int value);

#ifdef __cplusplus
}
#endif
#endif
