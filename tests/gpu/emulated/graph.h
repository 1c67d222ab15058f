/* SPDX-License-Identifier: Apache-2.0
 *
 * For the rest of the emulated runtime: whether what it is asked for belongs to a
 * capture of the calling thread, or spoils it.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_GRAPH_H
#define COXSWAIN_TESTS_GPU_EMULATED_GRAPH_H

#include "tests/gpu/emulated/stream.h"

bool emulated_captures(cudaStream_t stream);
/* In whatever thread. */
bool emulated_someone_captures(void);
/* Only where it does. The job's bytes are copied. */
void emulated_capture_job(cudaHostFn_t *function, const void *job, size_t bytes);
void emulated_capture_event(cudaEvent_t event);
void emulated_spoil_capture(void);
/* Whether the thread captures, which it then has spoilt: asked by whatever a capture forbids. */
bool emulated_forbids(void);

/* runtime.c: remembers it for cudaGetLastError. */
cudaError_t emulated_fail(cudaError_t error);

#endif
