/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events: a stream is a thread with a queue, so work really runs
 * beside whoever asked for it, and who forgets to wait reads too early.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_STREAM_H
#define COXSWAIN_TESTS_GPU_EMULATED_STREAM_H

#include "tests/gpu/emulated/block.h"

/* Copies the grid and its context. */
void emulated_queue_grid(cudaStream_t stream, const struct emulated_grid *grid);
/* The device that was the thread's when it was made. */
int emulated_stream_device(cudaStream_t stream);
/* runtime.c: that a copy goes by a stream of the device; EMULATED_COPY_COUNTS tells how many go from one GPU to another by the way
 * that cudaDeviceEnablePeerAccess opens, and how many without, and what goes to the host. Whether it arrives otherwise than it went
 * (EMULATED_PEERS_SPOIL). */
bool emulated_spoils_copy(int device, const void *to, const void *from, size_t bytes);
/* Runs function(context) in the stream's order. */
void emulated_queue_function(cudaStream_t stream, cudaHostFn_t *function, void *context);
/* Likewise, with a copy of the job's bytes, which the function frees. */
void emulated_queue_job(cudaStream_t stream, cudaHostFn_t *function, const void *job, size_t bytes);

#endif
