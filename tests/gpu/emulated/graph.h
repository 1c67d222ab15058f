/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the rest of the emulated runtime whether a call belongs to a capture of the calling thread, or invalidates it.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_GRAPH_H
#define COXSWAIN_TESTS_GPU_EMULATED_GRAPH_H

#include "tests/gpu/emulated/stream.h"

bool emulated_captures(cudaStream_t stream);
/* Whether any thread captures. */
bool emulated_someone_captures(void);
/* The next three may be called only while the thread captures. The job's bytes are copied. */
void emulated_capture_job(cudaHostFn_t *function, const void *job, size_t bytes);
void emulated_capture_event(cudaEvent_t event);
void emulated_spoil_capture(void);
/* For a call that a capture forbids: returns whether the thread captures, and invalidates the capture. */
bool emulated_forbids(void);

/* runtime.c: remembers it for cudaGetLastError. */
cudaError_t emulated_fail(cudaError_t error);

#endif
