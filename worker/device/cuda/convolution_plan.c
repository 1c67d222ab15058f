/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution_plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* Alignment that cuDNN's kernels for tensor cores require of pointers. If each image is aligned, so is any part of a batch; so the shape
 * alone decides. */
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
bool convolution_key_fits(const struct convolution_key *key)
{
    const struct conv2d_shape *s = &key->shape;
    const int64_t value = stored_bytes((enum stored)key->stored), image = s->h * s->w * s->c,
                  result = s->oh * s->ow * s->o;
    return s->b > 0 && s->b <= INT_MAX && image <= INT_MAX && result <= INT_MAX && s->b * image <= INT_MAX &&
           s->b * result <= INT_MAX && image * value % ALIGNMENT == 0 && result * value % ALIGNMENT == 0 &&
           !is_product(key);
}

bool convolution_check_at(const struct cuda_call *call, cudnnStatus_t status, const struct cuda_place *place)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    cuda_call_fail_dnn(call, status, cudnn->cudnnGetErrorString(status), place);
    return false;
}

/* Returns whether cuDNN refuses the convolution, which is then computed in another way. If it refuses because this machine lacks
 * something, that is a failure instead, since the bits would depend on the machine. */
bool convolution_is_refused(cudnnStatus_t status)
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
    return convolution_check(call, "cudnnCreateTensorDescriptor", cudnn->cudnnCreateTensorDescriptor(&plan->x)) &&
           convolution_check(
               call, "cudnnSetTensor4dDescriptor",
               cudnn->cudnnSetTensor4dDescriptor(plan->x, CUDNN_TENSOR_NHWC, type, b, c, (int)s->h, (int)s->w)) &&
           convolution_check(call, "cudnnCreateTensorDescriptor", cudnn->cudnnCreateTensorDescriptor(&plan->y)) &&
           convolution_check(
               call, "cudnnSetTensor4dDescriptor",
               cudnn->cudnnSetTensor4dDescriptor(plan->y, CUDNN_TENSOR_NHWC, type, b, o, (int)s->oh, (int)s->ow)) &&
           convolution_check(call, "cudnnCreateFilterDescriptor", cudnn->cudnnCreateFilterDescriptor(&plan->w)) &&
           convolution_check(
               call, "cudnnSetFilter4dDescriptor",
               cudnn->cudnnSetFilter4dDescriptor(plan->w, type, CUDNN_TENSOR_NHWC, o, c, kernel, kernel)) &&
           convolution_check(call, "cudnnCreateConvolutionDescriptor",
                             cudnn->cudnnCreateConvolutionDescriptor(&plan->how)) &&
           convolution_check(call, "cudnnSetConvolution2dDescriptor",
                             cudnn->cudnnSetConvolution2dDescriptor(plan->how, padding, padding, stride, stride, 1, 1,
                                                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) &&
           convolution_check(call, "cudnnSetConvolutionMathType",
                             cudnn->cudnnSetConvolutionMathType(plan->how, math_of(&plan->key)));
}

/* ---------------------------------------------------------------- algorithms */

/* Each of them adds in one order (NVIDIA's manual: deterministic). CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
 * CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 and ..._3 add atomically. */
#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define BACKWARD_DATA CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define BACKWARD_WEIGHT CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1

static cudnnStatus_t ask_for_workspace(const struct cuda_stream *stream, struct convolution_plan *plan)
{
    const struct cudnn *cudnn = &stream->device->cudnn;
    switch ((enum convolution_direction)plan->key.direction) {
    case CONVOLUTION_FORWARD:
        return cudnn->cudnnGetConvolutionForwardWorkspaceSize(stream->convolutions, plan->x, plan->w, plan->how,
                                                              plan->y, FORWARD, &plan->workspace_bytes);
    case CONVOLUTION_BACKWARD_DATA:
        return cudnn->cudnnGetConvolutionBackwardDataWorkspaceSize(stream->convolutions, plan->w, plan->y, plan->how,
                                                                   plan->x, BACKWARD_DATA, &plan->workspace_bytes);
    default:
        return cudnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(stream->convolutions, plan->x, plan->y, plan->how,
                                                                     plan->w, BACKWARD_WEIGHT, &plan->workspace_bytes);
    }
}

/* That cuDNN does not have this shape is no failure. */
static bool is_possible(const struct cuda_call *call, struct convolution_plan *plan)
{
    const cudnnStatus_t status = ask_for_workspace(call->owner, plan);
    return !convolution_is_refused(status) && convolution_check(call, "cudnnGetConvolutionWorkspaceSize", status) &&
           plan->workspace_bytes <= CUDA_PATCHES_BYTES;
}

/* ---------------------------------------------------------------- a stream's */

static bool prepare(const struct cuda_call *call)
{
    struct cuda_stream *stream = call->owner;
    const struct cudnn *cudnn = &stream->device->cudnn;
    return stream->convolutions ||
           (convolution_check(call, "cudnnCreate", cudnn->cudnnCreate(&stream->convolutions)) &&
            convolution_check(call, "cudnnSetStream", cudnn->cudnnSetStream(stream->convolutions, stream->stream)));
}

static void close_plan(const struct cudnn *cudnn, struct convolution_plan *plan)
{
    if (plan->how)
        (void)cudnn->cudnnDestroyConvolutionDescriptor(plan->how);
    if (plan->w)
        (void)cudnn->cudnnDestroyFilterDescriptor(plan->w);
    if (plan->y)
        (void)cudnn->cudnnDestroyTensorDescriptor(plan->y);
    if (plan->x)
        (void)cudnn->cudnnDestroyTensorDescriptor(plan->x);
}

struct convolution_plan *convolution_plan_find(const struct cuda_call *call, const struct convolution *job)
{
    struct cuda_stream *stream = call->owner;
    if (!is_aligned(job) || !prepare(call))
        return NULL;
    struct convolution_plan *plan = stream->convolution_plans;
    while (plan && memcmp(&plan->key, &job->key, sizeof job->key) != 0)
        plan = plan->next;
    if (plan)
        return plan;
    plan = memory_allocate(1, sizeof *plan);
    *plan = (struct convolution_plan){.next = stream->convolution_plans, .key = job->key};
    stream->convolution_plans = plan;
    plan->possible = describe(call, plan) && is_possible(call, plan);
    return plan;
}

void convolution_plans_free(struct cuda_stream *stream)
{
    while (stream->convolution_plans) {
        struct convolution_plan *plan = stream->convolution_plans;
        stream->convolution_plans = plan->next;
        close_plan(&stream->device->cudnn, plan);
        free(plan);
    }
    if (stream->convolutions)
        (void)stream->device->cudnn.cudnnDestroy(stream->convolutions);
    stream->convolutions = NULL;
}

cudnnStatus_t convolution_launch(const struct cuda_call *call, const struct convolution_plan *plan,
                                 const struct convolution *job)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    cudnnHandle_t handle = call->owner->convolutions;
    const float one = 1, nought = 0;
    switch ((enum convolution_direction)plan->key.direction) {
    case CONVOLUTION_FORWARD:
        return cudnn->cudnnConvolutionForward(handle, &one, plan->x, job->x, plan->w, job->w, plan->how, FORWARD,
                                              call->patches, plan->workspace_bytes, &nought, plan->y, job->y);
    case CONVOLUTION_BACKWARD_DATA:
        return cudnn->cudnnConvolutionBackwardData(handle, &one, plan->w, job->w, plan->y, job->y, plan->how,
                                                   BACKWARD_DATA, call->patches, plan->workspace_bytes, &nought,
                                                   plan->x, job->x);
    default:
        return cudnn->cudnnConvolutionBackwardFilter(handle, &one, plan->x, job->x, plan->y, job->y, plan->how,
                                                     BACKWARD_WEIGHT, call->patches, plan->workspace_bytes, &nought,
                                                     plan->w, job->w);
    }
}
