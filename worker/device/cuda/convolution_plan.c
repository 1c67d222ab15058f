/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution_plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

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

/* There is another way to such a convolution. What this machine lacks, and another may have, is a failure: bits would follow it. */
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

/* All that NVIDIA's manual calls deterministic and implemented; the first is taken without measuring, whatever the shape. Not
 * among them: CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 and ..._3 add atomically. */
static const int forward[] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                              CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                              CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
                              CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                              CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
                              CUDNN_CONVOLUTION_FWD_ALGO_FFT};
static const int backward_data[] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
                                    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
                                    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT};
static const int backward_weight[] = {
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
static const struct {
    const int *algorithms;
    int count;
} deterministic[] = {[CONVOLUTION_FORWARD] = {forward, COUNT(forward)},
                     [CONVOLUTION_BACKWARD_DATA] = {backward_data, COUNT(backward_data)},
                     [CONVOLUTION_BACKWARD_WEIGHT] = {backward_weight, COUNT(backward_weight)}};
_Static_assert(COUNT(forward) <= CONVOLUTION_WAYS_MAX, "room for all candidates");

static cudnnStatus_t ask_for_workspace(const struct cuda_stream *stream, struct convolution_plan *plan,
                                       struct convolution_way *way)
{
    const struct cudnn *cudnn = &stream->device->cudnn;
    switch ((enum convolution_direction)plan->key.direction) {
    case CONVOLUTION_FORWARD:
        return cudnn->cudnnGetConvolutionForwardWorkspaceSize(stream->convolutions, plan->x, plan->w, plan->how,
                                                              plan->y, (cudnnConvolutionFwdAlgo_t)way->algorithm,
                                                              &way->bytes);
    case CONVOLUTION_BACKWARD_DATA:
        return cudnn->cudnnGetConvolutionBackwardDataWorkspaceSize(
            stream->convolutions, plan->w, plan->y, plan->how, plan->x, (cudnnConvolutionBwdDataAlgo_t)way->algorithm,
            &way->bytes);
    default:
        return cudnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(
            stream->convolutions, plan->x, plan->y, plan->how, plan->w, (cudnnConvolutionBwdFilterAlgo_t)way->algorithm,
            &way->bytes);
    }
}

bool convolution_is_first(const struct convolution_plan *plan, const struct convolution_way *way)
{
    return way->algorithm == deterministic[plan->key.direction].algorithms[0];
}

bool convolution_is_unfit(cudnnStatus_t status, const struct convolution_plan *plan, const struct convolution_way *way)
{
    return convolution_is_first(plan, way)
               ? convolution_is_refused(status)
               : status >= CUDNN_STATUS_BAD_PARAM && status < CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

/* That there is no such way is no failure. */
static bool is_possible(const struct cuda_call *call, struct convolution_plan *plan, int algorithm,
                        struct convolution_way *ret_way)
{
    struct convolution_way way = {.algorithm = algorithm};
    const cudnnStatus_t status = ask_for_workspace(call->owner, plan, &way);
    if (convolution_is_unfit(status, plan, &way) ||
        !convolution_check(call, "cudnnGetConvolutionWorkspaceSize", status) || way.bytes > CUDA_PATCHES_BYTES)
        return false;
    *ret_way = way;
    return true;
}

int convolution_plan_ways(const struct cuda_call *call, struct convolution_plan *plan,
                          struct convolution_way ret_ways[CONVOLUTION_WAYS_MAX])
{
    int count = 0;
    for (int i = 0; i < deterministic[plan->key.direction].count; i++)
        count += is_possible(call, plan, deterministic[plan->key.direction].algorithms[i], &ret_ways[count]);
    return count;
}

/* ---------------------------------------------------------------- records */

/* What a record calls a convolution: all but the batch, so that parts of a batch are computed as the whole is. */
static void shape_of(const struct convolution_key *key, int64_t shape[ALGORITHM_NUMBERS])
{
    const struct conv2d_shape *s = &key->shape;
    const int64_t numbers[ALGORITHM_NUMBERS] = {s->h,       s->w,  s->c,  s->o,           s->kernel,   s->stride,
                                                s->padding, s->oh, s->ow, key->direction, key->stored, key->tf32};
    memcpy(shape, numbers, sizeof numbers);
}

/* Larger numbers than any device can have would be cut on their way to the library. */
#define NUMBER_MAX (1 << 20)

/* False: it is none of a convolution. What it was measured at says how much workspace it takes. */
static bool read_choice(const struct algorithm_choice *choice, struct convolution_key *ret_key, int *ret_algorithm)
{
    const int64_t *n = choice->shape, batch = (int64_t)choice->algorithm[1];
    for (int i = 0; i < ALGORITHM_NUMBERS; i++)
        if (n[i] > NUMBER_MAX)
            return false;
    if (n[9] > CONVOLUTION_BACKWARD_WEIGHT || n[10] > STORED_FLOAT16 || batch < 1 || batch > INT_MAX)
        return false;
    *ret_key = (struct convolution_key){.shape = {batch, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]},
                                        .direction = (int32_t)n[9],
                                        .stored = (int32_t)n[10],
                                        .tf32 = (int32_t)n[11]};
    for (int i = 0; i < deterministic[n[9]].count; i++) {
        *ret_algorithm = deterministic[n[9]].algorithms[i];
        if (choice->algorithm[0] == (uint64_t)*ret_algorithm)
            return convolution_key_fits(ret_key);
    }
    return false;
}

void convolution_choice_make(const struct convolution_plan *plan, const struct convolution_way *way,
                             struct algorithm_choice *ret_choice)
{
    *ret_choice = (struct algorithm_choice){.kind = ALGORITHM_CONVOLUTION,
                                            .algorithm = {(uint64_t)way->algorithm, (uint64_t)plan->key.shape.b}};
    shape_of(&plan->key, ret_choice->shape);
}

bool convolution_plans_are_alike(const struct convolution_plan *one, const struct convolution_plan *other)
{
    int64_t a[ALGORITHM_NUMBERS], b[ALGORITHM_NUMBERS];
    shape_of(&one->key, a);
    shape_of(&other->key, b);
    return memcmp(a, b, sizeof a) == 0;
}

/* False: there is none for the shape, or none that its batch leaves room for. */
static bool take_recorded(const struct cuda_call *call, struct convolution_plan *plan)
{
    int64_t shape[ALGORITHM_NUMBERS];
    shape_of(&plan->key, shape);
    const struct algorithm_choice *choice =
        algorithm_record_find(&call->owner->device->algorithms, ALGORITHM_CONVOLUTION, shape);
    return choice && is_possible(call, plan, (int)choice->algorithm[0], &plan->way);
}

static bool take_first(const struct cuda_call *call, struct convolution_plan *plan)
{
    return is_possible(call, plan, deterministic[plan->key.direction].algorithms[0], &plan->way);
}

bool convolution_plan_go_by_first(const struct cuda_call *call, struct convolution_plan *plan)
{
    return !convolution_is_first(plan, &plan->way) && take_first(call, plan);
}

static void choose(const struct cuda_call *call, struct convolution_plan *plan)
{
    plan->possible = take_recorded(call, plan) || take_first(call, plan);
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

static void free_plans(struct cuda_stream *stream)
{
    while (stream->convolution_plans) {
        struct convolution_plan *plan = stream->convolution_plans;
        stream->convolution_plans = plan->next;
        close_plan(&stream->device->cudnn, plan);
        free(plan);
    }
}

static struct convolution_plan *find(struct cuda_stream *stream, const struct convolution_key *key)
{
    if (stream->convolution_plans_turn != stream->device->algorithms_turn)
        free_plans(stream);
    stream->convolution_plans_turn = stream->device->algorithms_turn;
    struct convolution_plan *plan = stream->convolution_plans;
    while (plan && memcmp(&plan->key, key, sizeof *key) != 0)
        plan = plan->next;
    return plan;
}

struct convolution_plan *convolution_plan_find(const struct cuda_call *call, const struct convolution *job)
{
    struct cuda_stream *stream = call->owner;
    if (!is_aligned(job) || !prepare(call))
        return NULL;
    struct convolution_plan *plan = find(stream, &job->key);
    if (plan)
        return plan;
    plan = memory_allocate(1, sizeof *plan);
    *plan = (struct convolution_plan){.next = stream->convolution_plans, .key = job->key};
    stream->convolution_plans = plan;
    plan->described = describe(call, plan);
    if (plan->described)
        choose(call, plan);
    return plan;
}

void convolution_plans_free(struct cuda_stream *stream)
{
    free_plans(stream);
    if (stream->convolutions)
        (void)stream->device->cudnn.cudnnDestroy(stream->convolutions);
    stream->convolutions = NULL;
}

bool convolution_choice_check(const struct cuda_call *call, const struct algorithm_choice *choice)
{
    struct convolution_plan plan = {0};
    int algorithm;
    if (!read_choice(choice, &plan.key, &algorithm) || !prepare(call))
        return false;
    const bool possible = describe(call, &plan) && is_possible(call, &plan, algorithm, &plan.way);
    close_plan(&call->owner->device->cudnn, &plan);
    return possible;
}

cudnnStatus_t convolution_launch(const struct cuda_call *call, const struct convolution_plan *plan,
                                 const struct convolution_way *way, const struct convolution *job)
{
    const struct cudnn *cudnn = &call->owner->device->cudnn;
    cudnnHandle_t handle = call->owner->convolutions;
    const float one = 1, nought = 0;
    switch ((enum convolution_direction)plan->key.direction) {
    case CONVOLUTION_FORWARD:
        return cudnn->cudnnConvolutionForward(handle, &one, plan->x, job->x, plan->w, job->w, plan->how,
                                              (cudnnConvolutionFwdAlgo_t)way->algorithm, call->patches, way->bytes,
                                              &nought, plan->y, job->y);
    case CONVOLUTION_BACKWARD_DATA:
        return cudnn->cudnnConvolutionBackwardData(handle, &one, plan->w, job->w, plan->y, job->y, plan->how,
                                                   (cudnnConvolutionBwdDataAlgo_t)way->algorithm, call->patches,
                                                   way->bytes, &nought, plan->x, job->x);
    default:
        return cudnn->cudnnConvolutionBackwardFilter(handle, &one, plan->x, job->x, plan->y, job->y, plan->how,
                                                     (cudnnConvolutionBwdFilterAlgo_t)way->algorithm, call->patches,
                                                     way->bytes, &nought, plan->w, job->w);
    }
}
