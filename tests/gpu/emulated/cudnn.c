/* SPDX-License-Identifier: Apache-2.0
 *
 * libcudnn.so.0, which a worker for emulated GPUs opens in cuDNN's place: convolutions as plain loops, and only the calls that the
 * worker makes. Its sums go over a window from the end, unlike those of our kernels. It has one algorithm in each direction, the
 * one that the worker asks for; any other is an error.
 *
 *   EMULATED_DNN           none: it has no algorithm for any shape; refuses: it has one, but does not compute with it; greedy: its
 *                          algorithms need more workspace than a worker has; torn: one of its own libraries is missing; broken:
 *                          it fails; uncaptured: it refuses work on a capturing stream
 *   EMULATED_DNN_VERSION   its version
 */
#include "worker/device/cuda/cudnn.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/emulated/graph.h"
#include "tests/gpu/emulated/number.h"
#include "tests/gpu/emulated/stream.h"

#define VERSION 92801
#define GREED ((size_t)1 << 30)

struct cudnnContext {
    cudaStream_t stream;
    int device;
};

struct cudnnTensorStruct {
    bool is_set;
    cudaDataType type;
    int64_t n, c, h, w;
};

struct cudnnFilterStruct {
    bool is_set;
    cudaDataType type;
    int64_t o, c, h, w;
};

struct cudnnConvolutionStruct {
    bool is_set;
    int64_t padding, stride;
    cudnnMathType_t math;
};

enum { FORWARD, BACKWARD_DATA, BACKWARD_FILTER, DIRECTIONS };
enum { ALGORITHM = 1 }; /* its number in all directions */

/* Images x[n,h,w,c], filters w[o,kh,kw,c], images y[n,oh,ow,o]. */
struct convolution {
    struct cudnnTensorStruct x_is, y_is;
    struct cudnnFilterStruct w_is;
    int64_t padding, stride;
    bool tf32;
    const void *x, *w, *y;
    void *result; /* replaces one of them */
    void *workspace;
    size_t workspace_bytes;
};

static bool plays(const char *what)
{
    const char *setting = getenv("EMULATED_DNN");
    return setting && strcmp(setting, what) == 0;
}

/* ---------------------------------------------------------------- sums */

static float factor(const struct convolution *job, const void *numbers, int64_t i)
{
    const float value = number(numbers, job->x_is.type, i);
    return job->tf32 ? cut_to_tf32(value) : value;
}

/* Returns the index of the pixel under place (i, j) of the window of output (row, column); -1 if it is in the padding. */
static int64_t pixel_of(const struct convolution *job, int64_t image, int64_t row, int64_t column, int64_t i, int64_t j)
{
    const int64_t h = row * job->stride - job->padding + i, w = column * job->stride - job->padding + j;
    if (h < 0 || w < 0 || h >= job->x_is.h || w >= job->x_is.w)
        return -1;
    return (image * job->x_is.h + h) * job->x_is.w + w;
}

/* Adds the products of an output and a pixel, over all channels of both, at one place of the window, to the sums of x, w or y. */
static void add(const struct convolution *job, int direction, int64_t output, int64_t pixel, int64_t place, float *sums)
{
    const int64_t channels = job->x_is.c, outputs = job->y_is.c, window = job->w_is.h * job->w_is.w;
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t c = 0; c < channels; c++) {
            const int64_t x = pixel * channels + c, y = output * outputs + o, w = (o * window + place) * channels + c;
            if (direction == FORWARD)
                sums[y] += factor(job, job->x, x) * factor(job, job->w, w);
            else if (direction == BACKWARD_DATA)
                sums[x] += factor(job, job->y, y) * factor(job, job->w, w);
            else
                sums[w] += factor(job, job->y, y) * factor(job, job->x, x);
        }
}

static void add_all(const struct convolution *job, int direction, float *sums)
{
    const int64_t oh = job->y_is.h, ow = job->y_is.w, outputs = oh * ow, window = job->w_is.h * job->w_is.w;
    for (int64_t i = job->y_is.n * outputs; i-- > 0;)
        for (int64_t j = window; j-- > 0;) {
            const int64_t image = i / outputs, at = i % outputs;
            const int64_t pixel = pixel_of(job, image, at / ow, at % ow, j / job->w_is.w, j % job->w_is.w);
            if (pixel >= 0)
                add(job, direction, i, pixel, j, sums);
        }
}

static void convolve(struct convolution *job, int direction, int64_t count)
{
    float *sums = calloc((size_t)count, sizeof *sums);
    if (!sums)
        abort();
    if (job->workspace_bytes > 0)
        memset(job->workspace, 0xff, job->workspace_bytes);
    add_all(job, direction, sums);
    for (int64_t i = 0; i < count; i++)
        put(job->result, job->x_is.type, i, sums[i]);
    free(sums);
    free(job);
}

static int64_t tensor_count(const struct cudnnTensorStruct *tensor)
{
    return tensor->n * tensor->c * tensor->h * tensor->w;
}

static void forward(void *context)
{
    struct convolution *job = context;
    convolve(job, FORWARD, tensor_count(&job->y_is));
}

static void backward_data(void *context)
{
    struct convolution *job = context;
    convolve(job, BACKWARD_DATA, tensor_count(&job->x_is));
}

static void backward_filter(void *context)
{
    struct convolution *job = context;
    convolve(job, BACKWARD_FILTER, job->w_is.o * job->w_is.c * job->w_is.h * job->w_is.w);
}

/* ---------------------------------------------------------------- what is asked for */

static bool is_shape(const struct cudnnTensorStruct *x, const struct cudnnFilterStruct *w,
                     const struct cudnnConvolutionStruct *how, const struct cudnnTensorStruct *y)
{
    return x->n == y->n && x->c == w->c && y->c == w->o && y->h == (x->h + 2 * how->padding - w->h) / how->stride + 1 &&
           y->w == (x->w + 2 * how->padding - w->w) / how->stride + 1;
}

/* Returns whether the manual allows this math type for these numbers. */
static bool is_math(cudaDataType type, cudnnMathType_t math)
{
    return type == CUDA_R_32F ? math != CUDNN_TENSOR_OP_MATH : math == CUDNN_TENSOR_OP_MATH;
}

static size_t workspace_for(const struct cudnnTensorStruct *y)
{
    return plays("greedy") ? GREED : (size_t)(y->h * y->w) * 16;
}

static cudnnStatus_t look(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                          cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, int algorithm)
{
    if (!handle || !x || !w || !how || !y || !x->is_set || !w->is_set || !how->is_set || !y->is_set)
        return CUDNN_STATUS_BAD_PARAM;
    if (handle->stream && emulated_stream_device(handle->stream) != handle->device)
        return CUDNN_STATUS_BAD_PARAM;
    if (!is_shape(x, w, how, y))
        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    if (plays("torn"))
        return CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE;
    if (algorithm != ALGORITHM)
        return CUDNN_STATUS_BAD_PARAM;
    if (x->type != y->type || x->type != w->type || !is_math(x->type, how->math) || plays("none"))
        return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t tell_workspace(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, int algorithm,
                                    size_t *bytes)
{
    const cudnnStatus_t status = look(handle, x, w, how, y, algorithm);
    if (status == CUDNN_STATUS_SUCCESS)
        *bytes = workspace_for(y);
    return status;
}

static bool is_aligned(const void *memory)
{
    return memory && (uintptr_t)memory % 16 == 0;
}

static cudnnStatus_t queue(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, int direction, int algorithm,
                           const void *alpha, const void *beta, struct convolution *job)
{
    const cudnnStatus_t status = look(handle, x, w, how, y, algorithm);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    static cudaHostFn_t *const functions[DIRECTIONS] = {forward, backward_data, backward_filter};
    if (plays("refuses") || *(const float *)alpha != 1 || *(const float *)beta != 0)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (plays("uncaptured") && emulated_captures(handle->stream))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (plays("broken"))
        return CUDNN_STATUS_EXECUTION_FAILED;
    if (!is_aligned(job->x) || !is_aligned(job->w) || !is_aligned(job->y) ||
        (job->workspace_bytes > 0 && !is_aligned(job->workspace)))
        return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    if (job->workspace_bytes < workspace_for(y))
        return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
    job->x_is = *x;
    job->w_is = *w;
    job->y_is = *y;
    job->padding = how->padding;
    job->stride = how->stride;
    job->tf32 = x->type == CUDA_R_32F && how->math == CUDNN_DEFAULT_MATH;
    emulated_queue_job(handle->stream, functions[direction], job, sizeof *job);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t convolution,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes)
{
    return tell_workspace(handle, x, w, convolution, y, (int)algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_is,
                                      const void *x, const cudnnFilterDescriptor_t w_is, const void *w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y_is, void *y)
{
    struct convolution job = {.x = x, .w = w, .y = y, .result = y, .workspace = workspace, .workspace_bytes = bytes};
    return queue(handle, x_is, w_is, convolution, y_is, FORWARD, (int)algorithm, alpha, beta, &job);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t convolution,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes)
{
    return tell_workspace(handle, dx, w, convolution, dy, (int)algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w_is,
                                           const void *w, const cudnnTensorDescriptor_t dy_is, const void *dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t bytes,
                                           const void *beta, const cudnnTensorDescriptor_t dx_is, void *dx)
{
    struct convolution job = {.x = dx, .w = w, .y = dy, .result = dx, .workspace = workspace, .workspace_bytes = bytes};
    return queue(handle, dx_is, w_is, convolution, dy_is, BACKWARD_DATA, (int)algorithm, alpha, beta, &job);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t convolution,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes)
{
    return tell_workspace(handle, x, dw, convolution, dy, (int)algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_is, const void *x,
                                             const cudnnTensorDescriptor_t dy_is, const void *dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes,
                                             const void *beta, const cudnnFilterDescriptor_t dw_is, void *dw)
{
    struct convolution job = {.x = x, .w = dw, .y = dy, .result = dw, .workspace = workspace, .workspace_bytes = bytes};
    return queue(handle, x_is, dw_is, convolution, dy_is, BACKWARD_FILTER, (int)algorithm, alpha, beta, &job);
}

/* ---------------------------------------------------------------- handles and descriptors */

size_t cudnnGetVersion(void)
{
    const char *setting = getenv("EMULATED_DNN_VERSION");
    return setting ? (size_t)atoll(setting) : VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
        return "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_STATUS_BAD_PARAM";
    }
}

/* The object is zeroed, so `is_set` is false. */
static cudnnStatus_t make(size_t bytes, void *ret_made)
{
    void *made = calloc(1, bytes);
    memcpy(ret_made, &made, sizeof made);
    return made ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

/* Zeroes the object, so that its use after it was destroyed is likely to be seen. */
static cudnnStatus_t destroy(void *made, size_t bytes)
{
    if (!made)
        return CUDNN_STATUS_BAD_PARAM;
    memset(made, 0, bytes);
    free(made);
    return CUDNN_STATUS_SUCCESS;
}

/* The handle belongs to the thread's current device, and begins with its default stream. */
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    const cudnnStatus_t status = make(sizeof **handle, handle);
    if (status == CUDNN_STATUS_SUCCESS)
        (void)cudaGetDevice(&(*handle)->device);
    return status;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    return destroy(handle, sizeof *handle);
}

/* The handle's device is the thread's current one from now on. */
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (!handle || cudaGetDevice(&handle->device) != cudaSuccess)
        return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

static bool find_type(cudnnDataType_t type, cudaDataType *ret_type)
{
    *ret_type = type == CUDNN_DATA_FLOAT ? CUDA_R_32F : type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_16BF;
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor)
{
    return make(sizeof **tensor, tensor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    if (!tensor || format != CUDNN_TENSOR_NHWC || n < 1 || c < 1 || h < 1 || w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    if ((double)n * c * h * w > INT_MAX)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *tensor = (struct cudnnTensorStruct){.n = n, .c = c, .h = h, .w = w};
    tensor->is_set = find_type(type, &tensor->type);
    return tensor->is_set ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor)
{
    return destroy(tensor, sizeof *tensor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter)
{
    return make(sizeof **filter, filter);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    if (!filter || format != CUDNN_TENSOR_NHWC || k < 1 || c < 1 || h < 1 || w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *filter = (struct cudnnFilterStruct){.o = k, .c = c, .h = h, .w = w};
    filter->is_set = find_type(type, &filter->type);
    return filter->is_set ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter)
{
    return destroy(filter, sizeof *filter);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution)
{
    return make(sizeof **convolution, convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
    if (!convolution || pad_h < 0 || pad_h != pad_w || stride_h < 1 || stride_h != stride_w || dilation_h != 1 ||
        dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT)
        return CUDNN_STATUS_BAD_PARAM;
    *convolution = (struct cudnnConvolutionStruct){.is_set = true, .padding = pad_h, .stride = stride_h};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math)
{
    if (!convolution || !convolution->is_set)
        return CUDNN_STATUS_BAD_PARAM;
    convolution->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution)
{
    return destroy(convolution, sizeof *convolution);
}
