/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events. A stream is a thread with a queue, so work really runs beside the thread that queued it, and a missing wait reads
 * too early.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_STREAM_H
#define COXSWAIN_TESTS_GPU_EMULATED_STREAM_H

#include "tests/gpu/emulated/block.h"

/* Copies the grid and its context. */
void emulated_queue_grid(cudaStream_t stream, const struct emulated_grid *grid);
/* Returns the device that was current when the stream was made. */
int emulated_stream_device(cudaStream_t stream);
/* runtime.c: counts a copy on a stream of the device. EMULATED_COPY_COUNTS reports how many copies between GPUs used the path that
 * cudaDeviceEnablePeerAccess opens, how many did not, and the bytes to the host. Returns whether the copy must arrive changed
 * (EMULATED_PEERS_SPOIL). */
bool emulated_spoils_copy(int device, const void *to, const void *from, size_t bytes);
/* Runs function(context) in the stream's order. */
void emulated_queue_function(cudaStream_t stream, cudaHostFn_t *function, void *context);
/* The same, with a copy of the job's bytes, which the function frees. */
void emulated_queue_job(cudaStream_t stream, cudaHostFn_t *function, const void *job, size_t bytes);

#endif
