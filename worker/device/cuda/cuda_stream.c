/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_failure.h"
#include "worker/device/cuda/fused_product.h"

/* The table of operations behind a common signature. */
#define X(name)                                                                                                        \
    static void run_##name(const struct cuda_call *call, const void *arguments)                                        \
    {                                                                                                                  \
        cuda_##name(call, arguments);                                                                                  \
    }
DEVICE_OPERATIONS(X)
#undef X

static const struct {
    const char *name;
    void (*run)(const struct cuda_call *call, const void *arguments);
} operations[OPERATION_COUNT] = {
#define X(name) [OPERATION_##name] = {#name, run_##name},
    DEVICE_OPERATIONS(X)
#undef X
};

/* The first failure stays. */
static void fail(const struct cuda_call *call, const struct error *cause)
{
    struct cuda_health *health = call->owner->health;
    if (call->owner->records) {
        if (call->owner->record_error.kind == ERROR_NONE)
            call->owner->record_error = *cause;
        return;
    }
    if (atomic_load(&health->failed))
        return;
    health->error = *cause;
    atomic_store(&health->failed, true);
}

void cuda_call_fail_at(const struct cuda_call *call, cudaError_t result, const char *name, const char *file, int line)
{
    struct error cause = ERROR_INIT;
    cuda_failure_set(result, "computing", &(struct cuda_place){name, file, line}, &cause);
    fail(call, &cause);
}

void cuda_stream_note(struct cuda_stream *stream, cudaError_t result, const char *name)
{
    const struct cuda_call call = {.owner = stream};
    if (result == cudaSuccess)
        return;
    (void)cudaGetLastError(); /* it is this stream's: another's launch has not failed */
    cuda_call_fail(&call, result, name);
}

void cuda_call_refuse(const struct cuda_call *call, const char *why)
{
    struct error cause = ERROR_INIT;
    error_set(&cause, ERROR_UNSUPPORTED, "%s", why);
    fail(call, &cause);
}

static void launch(struct cuda_stream *stream, enum stored stored, enum device_operation operation,
                   const void *arguments)
{
    if (atomic_load(&stream->health->failed))
        return;
    cuda_device_enter(stream->device);
    struct cuda_call call = {
        .stream = stream->stream,
        .fault = (struct cuda_fault *)stream->health->fault,
        .scratch = stream->scratch,
        .patches = stream->patches,
        .owner = stream,
        .stored = stored,
        .shared_bytes = stream->device->shared_bytes,
    };
    operations[operation].run(&call, arguments);
    cudaError_t result = cudaGetLastError();
    if (result != cudaSuccess)
        cuda_call_fail(&call, result, operations[operation].name);
}

void cuda_launch(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    launch((struct cuda_stream *)stream, STORED_FLOAT32, operation, arguments);
}

void cuda_launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                        const void *arguments)
{
    launch((struct cuda_stream *)stream, stored, operation, arguments);
}

/* ---------------------------------------------------------------- products */

/* Returns CUDA's reason for a library's failure. The library has a CUDA runtime of its own, whose last error is not visible here; the
 * reason why the GPU failed is visible on the stream, except while it captures. */
static cudaError_t reason_behind(const struct cuda_call *call)
{
    cudaError_t reason = cudaGetLastError();
    if (reason != cudaSuccess || call->owner->records)
        return reason;
    reason = cudaStreamQuery(call->stream);
    (void)cudaGetLastError();
    return reason == cudaErrorNotReady ? cudaSuccess : reason;
}

bool cublas_check_at(const struct cuda_call *call, cublasStatus_t status, const struct cuda_place *place)
{
    struct error cause = ERROR_INIT;
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    cublas_failure_set(status, reason_behind(call), call->owner->device->cublas.cublasGetStatusString(status), place,
                       &cause);
    fail(call, &cause);
    return false;
}

void cuda_call_fail_dnn(const struct cuda_call *call, cudnnStatus_t status, const char *words,
                        const struct cuda_place *place)
{
    struct error cause = ERROR_INIT;
    cudnn_failure_set(status, reason_behind(call), words, place, &cause);
    fail(call, &cause);
}

/* One handle a stream, with a workspace of its own: then equal products have equal bits. Not in TF32 unasked,
 * which is cuBLAS's default too; and sums of products of two bytes stay float32, also where they are made in parts. */
static bool prepare_products(const struct cuda_call *call)
{
    struct cuda_stream *stream = call->owner;
    const struct cublas *cublas = &stream->device->cublas;
    if (stream->products)
        return true;
    const cublasMath_t mode = (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    return cublas_check(call, "cublasCreate", cublas->cublasCreate_v2(&stream->products)) &&
           cublas_check(call, "cublasSetStream", cublas->cublasSetStream_v2(stream->products, stream->stream)) &&
           cublas_check(call, "cublasSetMathMode", cublas->cublasSetMathMode(stream->products, mode)) &&
           cublas_check(call, "cublasSetWorkspace",
                        cublas->cublasSetWorkspace_v2(stream->products, stream->scratch, CUDA_SCRATCH_BYTES));
}

static cublasStatus_t multiply_float32(const struct cuda_stream *stream, const struct cuda_product *product,
                                       const float *start)
{
    const float one = 1;
    return stream->device->cublas.cublasSgemm_v2_64(stream->products, product->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                                    product->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, product->n,
                                                    product->m, product->k, &one, product->b, product->b_row,
                                                    product->a, product->a_row, start, product->c, product->c_row);
}

static const cudaDataType types[] = {
    [STORED_FLOAT32] = CUDA_R_32F, [STORED_BFLOAT16] = CUDA_R_16BF, [STORED_FLOAT16] = CUDA_R_16F};

static cublasStatus_t multiply_on_tensor_cores(const struct cuda_stream *stream, const struct cuda_product *product,
                                               const float *start)
{
    const float one = 1;
    const cudaDataType operands = types[product->operands];
    const cublasComputeType_t compute =
        product->operands == STORED_FLOAT32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return stream->device->cublas.cublasGemmEx_64(stream->products, product->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                                  product->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, product->n,
                                                  product->m, product->k, &one, product->b, operands, product->b_row,
                                                  product->a, operands, product->a_row, start, product->c,
                                                  types[product->result], product->c_row, compute, CUBLAS_GEMM_DEFAULT);
}

/* cuBLAS counts down columns: what it sees of row-major matrices are their transposes, and c^T = b^T a^T. */
void cuda_multiply(const struct cuda_call *call, const struct cuda_product *given)
{
    struct cuda_product rows = *given, *product = &rows;
    const float start = product->accumulate ? 1 : 0;
    if (product->m == 0 || product->n == 0)
        return;
    if (product->k == 0) {
        if (!product->accumulate)
            (void)cudaMemsetAsync(product->c, 0, (size_t)(product->m * product->n * stored_bytes(product->result)),
                                  call->stream);
        return;
    }
    if (!prepare_products(call))
        return;
    if (product->a_row == 0)
        product->a_row = product->a_transposed ? product->m : product->k;
    if (product->b_row == 0)
        product->b_row = product->b_transposed ? product->k : product->n;
    product->c_row = row_or_packed(product->c_row, product->n);
    if (product->operands != STORED_FLOAT32 || product->tf32)
        cublas_check(call, "cublasGemmEx", multiply_on_tensor_cores(call->owner, product, &start));
    else
        cublas_check(call, "cublasSgemm", multiply_float32(call->owner, product, &start));
}

/* ---------------------------------------------------------------- order */

void cuda_stream_wait(struct device_stream *base, struct device_event *event)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    cuda_device_enter(stream->device);
    if (stream->records)
        error_set(&stream->record_error, ERROR_INTERNAL, "internal error: a wait for an event cannot be recorded");
    else
        cuda_stream_note(stream, cudaStreamWaitEvent(stream->stream, ((struct cuda_event *)event)->event, 0),
                         "cudaStreamWaitEvent");
}

void cuda_stream_call(struct device_stream *base, device_host_function *function, void *context)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    cuda_device_enter(stream->device);
    if (stream->records)
        error_set(&stream->record_error, ERROR_INTERNAL, "internal error: a call of the host cannot be recorded");
    else
        cuda_stream_note(stream, cudaLaunchHostFunc(stream->stream, function, context), "cudaLaunchHostFunc");
}

int cuda_stream_synchronise(struct device_stream *base, struct error *error)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (atomic_load(&stream->device->out_of_bounds))
        return error_set(error, ERROR_TIMEOUT,
                         "GPU: NCCL did not abort and may still use this GPU; the process must end");
    cuda_device_enter(stream->device);
    if (cuda_check(cudaStreamSynchronize(stream->stream), "waiting for its work", error) < 0)
        return -1;
    return cuda_health_check(stream->health, error);
}

/* ---------------------------------------------------------------- life cycle */

static struct cuda_health *take_health(struct cuda_device *device)
{
    for (int i = 0; i < CUDA_STREAMS_MAX; i++) {
        if (device->taken[i])
            continue;
        device->taken[i] = true;
        device->faults[i] = (struct cuda_fault){0};
        atomic_store(&device->healths[i].failed, false);
        return &device->healths[i];
    }
    return NULL;
}

int cuda_stream_new(struct device *base, struct device_stream **ret_stream, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct cuda_health *health = take_health(device);
    if (!health)
        return error_set(error, ERROR_UNAVAILABLE, "all %d streams that the worker can have on a GPU are in use",
                         CUDA_STREAMS_MAX);
    cuda_device_enter(device);
    struct cuda_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct cuda_stream){.base.backend = &cuda_backend, .device = device, .health = health};
    if (cuda_check(cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking), "making a stream", error) < 0 ||
        cuda_check(cudaMalloc((void **)&stream->scratch, CUDA_SCRATCH_BYTES), "memory of a stream", error) < 0 ||
        cuda_check(cudaMalloc(&stream->patches, CUDA_PATCHES_BYTES), "memory of a stream", error) < 0) {
        cuda_stream_free(&stream->base);
        return -1;
    }
    *ret_stream = &stream->base;
    return 0;
}

void cuda_stream_free(struct device_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    struct cuda_device *device = stream->device;
    if (atomic_load(&device->out_of_bounds))
        return;
    cuda_device_enter(device);
    if (stream->stream)
        (void)cudaStreamSynchronize(stream->stream);
    fused_plans_free(stream);
    convolution_plans_free(stream);
    if (stream->products)
        (void)device->cublas.cublasDestroy_v2(stream->products);
    if (stream->stream)
        (void)cudaStreamDestroy(stream->stream);
    (void)cudaFree(stream->scratch);
    (void)cudaFree(stream->patches);
    device->taken[stream->health - device->healths] = false;
    free(stream);
}
