/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the files that implement an NVIDIA GPU as a device share. Streams and events are
 * CUDA's, launches go straight to the driver's queue, and memory that host and GPU share is pinned
 * host memory.
 *
 * An invalid token or target fails its stream as on the CPU, with one difference: the work queued
 * after it still runs, on a token or target that is in range, because the host notices the fault
 * only when it waits.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUDA_DEVICE_H
#define COXSWAIN_DEVICE_CUDA_CUDA_DEVICE_H

#include <stdatomic.h>

#include "worker/device/backend.h"
#include "worker/device/cuda/cublas.h"
#include "worker/device/cuda/cuda.h"
#include "worker/device/cuda/cudnn.h"
#include "worker/device/cuda/nccl.h"

/* The errors of a stream. Lives as long as the device, because events outlive streams. */
struct cuda_health {
    volatile struct cuda_fault *fault; /* pinned: written by kernels */
    _Atomic bool failed;               /* a launch failed, with this error: */
    struct error error;
};

#define CUDA_STREAMS_MAX 64
#define CUDA_GPUS_MAX 64
struct cuda_device {
    struct device base;
    int index;
    char name[128];       /* "NVIDIA H200" */
    char architecture[8]; /* "sm_90" */
    /* The architecture, with suffixes for cuDNN and cuBLASLt: "sm_120+d92801+l", the longest that a
     * crew accepts. */
    char arithmetic[16];
    size_t shared_bytes; /* shared memory that a block may request */
    struct cublas cublas;
    struct cudnn cudnn;         /* loaded if ENV_GPU_DNN asks for it */
    struct nccl nccl;           /* loaded at the first communicator_prepare */
    bool spoils[CUDA_GPUS_MAX]; /* by GPU index: direct copies to it failed their trial (device_reach) */
    _Atomic int64_t finished_products, refused_products; /* device_count_library_work */
    _Atomic int64_t convolutions, refused_convolutions;  /* for device_count_library_work */
    _Atomic bool out_of_bounds; /* a call of NCCL does not return: waiting for the device would not return either */
    struct cuda_fault *faults;  /* one per stream */
    struct cuda_health healths[CUDA_STREAMS_MAX];
    bool taken[CUDA_STREAMS_MAX];
};

struct cuda_stream {
    struct device_stream base;
    struct cuda_device *device;
    cudaStream_t stream;
    struct cuda_health *health;
    float *scratch;             /* for operations, and cuBLAS's workspace: a stream runs one operation at a time */
    void *patches;              /* matrices of patches, for convolutions by cuBLAS */
    cublasHandle_t products;    /* created at the first product */
    cublasLtHandle_t fused;     /* created at the first fused product */
    struct fused_plan *plans;   /* for fused products */
    cudnnHandle_t convolutions; /* created at the first convolution that cuDNN may compute */
    struct convolution_plan *convolution_plans;
    bool records; /* launches are being recorded; failures go to record_error instead of `health` */
    struct error record_error;
};

struct cuda_event {
    struct device_event base;
    struct cuda_device *device;
    cudaEvent_t event;
    const struct cuda_health *health; /* of the stream that recorded it last; NULL: never recorded */
};

extern const struct device_backend cuda_backend;
extern const struct communicator_backend cuda_communicators;

/* Makes this device current in the calling thread. */
void cuda_device_enter(const struct cuda_device *device);
/* Returns 0, or -1 with an error that quotes CUDA's message and says what it means and what to
 * do (cuda_failure.h). */
int cuda_check_at(cudaError_t result, const char *doing, const struct cuda_place *place, struct error *error);
#define CUDA_PLACE(call) (&(struct cuda_place){call, __FILE__, __LINE__})
#define cuda_check(call, doing, error) cuda_check_at(call, doing, CUDA_PLACE(#call), error)
/* Returns whether `status` is success; if not, fails the call's stream. */
bool cublas_check_at(const struct cuda_call *call, cublasStatus_t status, const struct cuda_place *place);
#define cublas_check(call, name, status) cublas_check_at(call, status, CUDA_PLACE(name))
/* Fails the call's stream with an error of cuDNN; `words` is cuDNN's message. */
void cuda_call_fail_dnn(const struct cuda_call *call, cudnnStatus_t status, const char *words,
                        const struct cuda_place *place);
/* Returns -1 with the first error of a stream, if any. */
int cuda_health_check(const struct cuda_health *health, struct error *error);

int cuda_reach(struct device *device, struct device *other, struct error *error);
int cuda_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error);
void cuda_stream_free(struct device_stream *stream);
/* Records the result of ordering a stream (waits, events): a failure is the stream's, like that
 * of a launch. */
void cuda_stream_note(struct cuda_stream *stream, cudaError_t result, const char *name);
int cuda_stream_synchronise(struct device_stream *stream, struct error *error);
void cuda_stream_wait(struct device_stream *stream, struct device_event *event);
void cuda_stream_call(struct device_stream *stream, device_host_function *function, void *context);
void cuda_launch(struct device_stream *stream, enum device_operation operation, const void *arguments);
void cuda_launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                        const void *arguments);

int cuda_record_begin(struct device_stream *stream, struct error *error);
int cuda_record_end(struct device_stream *stream, struct device_recording **ret_recording, struct error *error);
void cuda_replay(struct device_stream *stream, struct device_recording *recording);
void cuda_recording_free(struct device_recording *recording);

int cuda_event_new(struct device *device, struct device_event **ret_event, struct error *error);
void cuda_event_free(struct device_event *event);
void cuda_event_record(struct device_event *event, struct device_stream *stream);
bool cuda_event_is_done(const struct device_event *event);
int cuda_event_wait(struct device_event *event, struct error *error);

#endif
