/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/device/cuda/cuda_device.h"

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT };

/* All that a plan depends on; without gaps, for memcmp. */
struct convolution_key {
    struct conv2d_shape shape;
    int32_t direction, stored, tf32, unused;
};

struct convolution_plan {
    struct convolution_plan *next;
    struct convolution_key key;
    bool possible;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    size_t bytes; /* of workspace */
};

/* One direction of it: the third is the result, the other two are read. w is packed. */
struct convolution {
    struct convolution_key key;
    void *x, *w, *y;
};

/* What cuDNN's kernels on tensor cores want of pointers. Where each image begins so does any part of a batch, so whether it is so
 * follows from shapes alone. */
#define ALIGNMENT 16

static bool is_aligned(const struct convolution *job)
{
    return ((uintptr_t)job->x | (uintptr_t)job->w | (uintptr_t)job->y) % ALIGNMENT == 0;
}

/* A window of one pixel is a product of matrices, which cuBLAS makes without rounding weight gradients. */
static bool is_product(const struct convolution_key *key)
{
    return key->stored != STORED_FLOAT32 && key->shape.kernel == 1 && key->shape.stride == 1 && key->shape.padding == 0;
}

/* A descriptor has up to 2^31 - 1 values. */
static bool fits(const struct convolution_key *key)
{
    const struct conv2d_shape *s = &key->shape;
    const int64_t value = stored_bytes((enum stored)key->stored), image = s->h * s->w * s->c,
                  result = s->oh * s->ow * s->o;
    return s->b > 0 && s->b <= INT_MAX && image <= INT_MAX && result <= INT_MAX && s->b * image <= INT_MAX &&
           s->b * result <= INT_MAX && image * value % ALIGNMENT == 0 && result * value % ALIGNMENT == 0 &&
           !is_product(key);
}

/* ---------------------------------------------------------------- plans */

static bool check_at(const struct cuda_call *call, cudnnStatus_t status, const struct cuda_place *place)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    cuda_call_fail_dnn(call, status, cudnn->cudnnGetErrorString(status), place);
    return false;
}
#define check(call, name, status) check_at(call, status, CUDA_PLACE(name))

/* There is another way to such a convolution. What this machine lacks, and another may have, is a failure: bits would follow it. */
static bool is_refused(cudnnStatus_t status)
{
    switch ((int)status) {
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
        return false;
    default:
        return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
    }
}

static cudnnDataType_t type_of(const struct convolution_key *key)
{
    return key->stored == STORED_BFLOAT16  ? CUDNN_DATA_BFLOAT16
           : key->stored == STORED_FLOAT16 ? CUDNN_DATA_HALF
                                           : CUDNN_DATA_FLOAT;
}

/* By default cuDNN may cut float32 to TF32. */
static cudnnMathType_t math_of(const struct convolution_key *key)
{
    return key->stored != STORED_FLOAT32 ? CUDNN_TENSOR_OP_MATH : key->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static bool describe(const struct cuda_call *call, struct convolution_plan *plan)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    const struct conv2d_shape *s = &plan->key.shape;
    const cudnnDataType_t type = type_of(&plan->key);
    const int b = (int)s->b, c = (int)s->c, o = (int)s->o, kernel = (int)s->kernel, padding = (int)s->padding;
    const int stride = (int)s->stride;
    return check(call, "cudnnCreateTensorDescriptor", cudnn->cudnnCreateTensorDescriptor(&plan->x)) &&
           check(call, "cudnnSetTensor4dDescriptor",
                 cudnn->cudnnSetTensor4dDescriptor(plan->x, CUDNN_TENSOR_NHWC, type, b, c, (int)s->h, (int)s->w)) &&
           check(call, "cudnnCreateTensorDescriptor", cudnn->cudnnCreateTensorDescriptor(&plan->y)) &&
           check(call, "cudnnSetTensor4dDescriptor",
                 cudnn->cudnnSetTensor4dDescriptor(plan->y, CUDNN_TENSOR_NHWC, type, b, o, (int)s->oh, (int)s->ow)) &&
           check(call, "cudnnCreateFilterDescriptor", cudnn->cudnnCreateFilterDescriptor(&plan->w)) &&
           check(call, "cudnnSetFilter4dDescriptor",
                 cudnn->cudnnSetFilter4dDescriptor(plan->w, type, CUDNN_TENSOR_NHWC, o, c, kernel, kernel)) &&
           check(call, "cudnnCreateConvolutionDescriptor", cudnn->cudnnCreateConvolutionDescriptor(&plan->how)) &&
           check(call, "cudnnSetConvolution2dDescriptor",
                 cudnn->cudnnSetConvolution2dDescriptor(plan->how, padding, padding, stride, stride, 1, 1,
                                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) &&
           check(call, "cudnnSetConvolutionMathType",
                 cudnn->cudnnSetConvolutionMathType(plan->how, math_of(&plan->key)));
}

static cudnnStatus_t ask_for_workspace(const struct cuda_stream *stream, struct convolution_plan *plan)
{
    const struct cudnn *cudnn = &stream->device->cudnn;
    switch ((enum direction)plan->key.direction) {
    case FORWARD:
        return cudnn->cudnnGetConvolutionForwardWorkspaceSize(stream->convolutions, plan->x, plan->w, plan->how,
                                                              plan->y, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                              &plan->bytes);
    case BACKWARD_DATA:
        return cudnn->cudnnGetConvolutionBackwardDataWorkspaceSize(stream->convolutions, plan->w, plan->y, plan->how,
                                                                   plan->x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                                                   &plan->bytes);
    default:
        return cudnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(stream->convolutions, plan->x, plan->y, plan->how,
                                                                     plan->w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                                                     &plan->bytes);
    }
}

/* That there is no way is no failure. */
static void choose(const struct cuda_call *call, struct convolution_plan *plan)
{
    const cudnnStatus_t status = ask_for_workspace(call->owner, plan);
    plan->possible = status == CUDNN_STATUS_SUCCESS && plan->bytes <= CUDA_PATCHES_BYTES;
    if (!is_refused(status))
        check(call, "cudnnGetConvolutionWorkspaceSize", status);
}

static bool prepare(const struct cuda_call *call)
{
    struct cuda_stream *stream = call->owner;
    const struct cudnn *cudnn = &stream->device->cudnn;
    return stream->convolutions ||
           (check(call, "cudnnCreate", cudnn->cudnnCreate(&stream->convolutions)) &&
            check(call, "cudnnSetStream", cudnn->cudnnSetStream(stream->convolutions, stream->stream)));
}

static struct convolution_plan *find_plan(const struct cuda_call *call, const struct convolution_key *key)
{
    struct cuda_stream *stream = call->owner;
    struct convolution_plan *plan = stream->convolution_plans;
    while (plan && memcmp(&plan->key, key, sizeof *key) != 0)
        plan = plan->next;
    if (plan)
        return plan;
    plan = memory_allocate(1, sizeof *plan);
    *plan = (struct convolution_plan){.next = stream->convolution_plans, .key = *key};
    stream->convolution_plans = plan;
    if (describe(call, plan))
        choose(call, plan);
    return plan;
}

void convolution_plans_free(struct cuda_stream *stream)
{
    const struct cudnn *cudnn = &stream->device->cudnn;
    while (stream->convolution_plans) {
        struct convolution_plan *plan = stream->convolution_plans;
        stream->convolution_plans = plan->next;
        if (plan->how)
            (void)cudnn->cudnnDestroyConvolutionDescriptor(plan->how);
        if (plan->w)
            (void)cudnn->cudnnDestroyFilterDescriptor(plan->w);
        if (plan->y)
            (void)cudnn->cudnnDestroyTensorDescriptor(plan->y);
        if (plan->x)
            (void)cudnn->cudnnDestroyTensorDescriptor(plan->x);
        free(plan);
    }
    if (stream->convolutions)
        (void)cudnn->cudnnDestroy(stream->convolutions);
    stream->convolutions = NULL;
}

/* ---------------------------------------------------------------- convolutions */

static struct convolution_key key_of(const struct cuda_call *call, const struct conv2d_shape *shape,
                                     enum direction direction, bool tf32)
{
    return (struct convolution_key){
        .shape = *shape, .direction = (int32_t)direction, .stored = (int32_t)call->stored, .tf32 = tf32};
}

/* Whether cuDNN is to be asked at all. */
static bool is_asked(const struct cuda_call *call, const struct convolution *job)
{
    return call->owner->device->cudnn.library && fits(&job->key);
}

/* NULL: cuDNN does not compute it. */
static struct convolution_plan *plan_for(const struct cuda_call *call, const struct convolution *job)
{
    if (!is_aligned(job) || !prepare(call))
        return NULL;
    struct convolution_plan *plan = find_plan(call, &job->key);
    return plan->possible ? plan : NULL;
}

static cudnnStatus_t compute(const struct cuda_call *call, const struct convolution_plan *plan,
                             const struct convolution *job)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    cudnnHandle_t handle = call->owner->convolutions;
    const float one = 1, nought = 0;
    switch ((enum direction)plan->key.direction) {
    case FORWARD:
        return cudnn->cudnnConvolutionForward(handle, &one, plan->x, job->x, plan->w, job->w, plan->how,
                                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, call->patches,
                                              plan->bytes, &nought, plan->y, job->y);
    case BACKWARD_DATA:
        return cudnn->cudnnConvolutionBackwardData(handle, &one, plan->w, job->w, plan->y, job->y, plan->how,
                                                   CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, call->patches, plan->bytes,
                                                   &nought, plan->x, job->x);
    default:
        return cudnn->cudnnConvolutionBackwardFilter(handle, &one, plan->x, job->x, plan->y, job->y, plan->how,
                                                     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, call->patches, plan->bytes,
                                                     &nought, plan->w, job->w);
    }
}

/* False: it is refused, now and from now on. What is refused for being recorded is not: the recording fails, for bits do not follow
 * from how launches are made. */
static bool launch(const struct cuda_call *call, struct convolution_plan *plan, const struct convolution *job)
{
    const cudnnStatus_t status = compute(call, plan, job);
    plan->possible = !is_refused(status) || call->owner->records;
    if (plan->possible)
        check(call, "cudnnConvolution", status);
    return plan->possible;
}

/* `weight` is packed first, unless NULL: its gradient is computed. */
static bool convolve(const struct cuda_call *call, const struct convolution *job, const float *weight)
{
    struct cuda_device *device = call->owner->device;
    if (!is_asked(call, job))
        return false;
    struct convolution_plan *plan = plan_for(call, job);
    if (plan && weight)
        cuda_pack_convolution(call, &job->key.shape, weight, job->w);
    const bool computed = plan && launch(call, plan, job);
    atomic_fetch_add(computed ? &device->convolutions : &device->refused_convolutions, 1);
    return computed;
}

bool cuda_convolve_forward(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct convolution job = {key_of(call, &op->shape, FORWARD, op->tf32), (void *)op->x, op->workspace, op->y};
    return convolve(call, &job, op->weight);
}

bool cuda_convolve_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct convolution job = {key_of(call, &op->shape, BACKWARD_DATA, op->tf32), op->dx, op->workspace,
                                    (void *)op->dy};
    return convolve(call, &job, op->weight);
}

/* A finished gradient is added, so that shard by shard gives the bits of adding those. */
bool cuda_convolve_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op)
{
    const struct convolution job = {key_of(call, &op->shape, BACKWARD_WEIGHT, op->tf32), (void *)op->x, op->workspace,
                                    (void *)op->dy};
    if (!convolve(call, &job, NULL))
        return false;
    cuda_unpack_convolution(call, &op->shape, op->workspace, op->dweight, op->accumulate);
    return true;
}
