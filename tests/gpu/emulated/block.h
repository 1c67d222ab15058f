/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of a GPU's threads, played by one thread of the processor. Each of the
 * block's threads is a fiber that runs until it meets a barrier; the next one of
 * its warp goes on then, and the next warp when all of this one are done or at the
 * block's barrier. They take turns in the order of their numbers, or in the opposite
 * one (EMULATED_ORDER=backward): a kernel that lacks a barrier reads what has not
 * been written yet in one of the two.
 *
 * What a GPU leaves undefined ends the program with a sentence: an exchange of a
 * warp's words that one of its lanes does not take part in.
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

/* Where the running fiber is, by the names that kernels know. */
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
/* What the calling thread has run blocks with, before it ends. */
void emulated_release_fibers(void);

/* In a kernel only. */
void emulated_block_barrier(void);
unsigned emulated_lane(void);
/* Gives `word` and gets that of lane `from`; all of `lanes` must take part. */
uint64_t emulated_exchange(unsigned lanes, uint64_t word, unsigned from);
unsigned emulated_ballot(unsigned lanes, bool predicate);
/* How many words lanes have given so far, on all streams: a measure of what warps have gone through. */
uint64_t emulated_exchanges(void);
/* A lane's part of sums[16,8] += left[16,16] right[16,8] as mma.m16n8k16 has it; the factors are "bf16.bf16" or "f16.f16". The
 * whole warp must take part. */
void emulated_multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2], const char *types);
/* A lane's part of four matrices [8,8] of two bytes a number in shared memory, as ldmatrix has it: lane 8 i + j names row j of
 * matrix i, and gets of each two neighbours of a row, or, `turned`, of a column. The whole warp must take part. */
void emulated_read_matrices(uint32_t parts[4], const void *row, bool turned);
/* Copies that go on beside the thread, as cp.async: they come when it awaits those that it has closed, the latest that they may, or,
 * where threads go backward, at once: who writes over what others still read is seen by one of the two. `there` false: zeros come. */
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
