/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads cuDNN if COXSWAIN_GPU_DNN asks for it. A worker built with CUDA=1 starts on machines
 * without cuDNN and is built without its headers: this file declares the part of the binary
 * interface that the worker uses, which is the same in all of cuDNN 9 (NVIDIA, "cuDNN API"). The
 * names are the library's.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUDNN_H
#define COXSWAIN_DEVICE_CUDA_CUDNN_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "common/error.h"

/* The library's file is libcudnn.so.<this number>; emulated GPUs use another. */
#ifndef CUDNN_FILE_NUMBER
#define CUDNN_FILE_NUMBER 9
#endif

/* Lowest result of cudnnGetVersion that is accepted; 92801 is cuDNN 9.28.1. */
#define CUDNN_VERSION_LEAST 90000

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;

/* Each thousand is a category of failures; later libraries have more codes in them. */
typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1001,
    CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
    CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
    CUDNN_STATUS_BAD_PARAM = 2000,
    CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
    CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
    CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
    CUDNN_STATUS_NOT_SUPPORTED = 3000,
    CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
    CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
    CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
    CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
    CUDNN_STATUS_INTERNAL_ERROR = 4000,
    CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
    CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
    CUDNN_STATUS_EXECUTION_FAILED = 5000,
} cudnnStatus_t;
typedef enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 } cudnnDataType_t;
typedef enum { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_FMA_MATH = 3 } cudnnMathType_t;
typedef enum { CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;
typedef enum { CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;
/* The algorithms that the worker uses. They add in one order; others add atomically. */
typedef enum { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1 } cudnnConvolutionFwdAlgo_t;
typedef enum { CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1 } cudnnConvolutionBwdDataAlgo_t;
typedef enum { CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1 } cudnnConvolutionBwdFilterAlgo_t;

size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(cudnnStatus_t status);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution);
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t convolution,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_is,
                                      const void *x, const cudnnFilterDescriptor_t w_is, const void *w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y_is, void *y);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t convolution,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w_is,
                                           const void *w, const cudnnTensorDescriptor_t dy_is, const void *dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t bytes,
                                           const void *beta, const cudnnTensorDescriptor_t dx_is, void *dx);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t convolution,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_is, const void *x,
                                             const cudnnTensorDescriptor_t dy_is, const void *dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes,
                                             const void *beta, const cudnnFilterDescriptor_t dw_is, void *dw);

#define CUDNN_FUNCTIONS(X)                                                                                             \
    X(cudnnGetVersion)                                                                                                 \
    X(cudnnGetErrorString)                                                                                             \
    X(cudnnCreate)                                                                                                     \
    X(cudnnDestroy)                                                                                                    \
    X(cudnnSetStream)                                                                                                  \
    X(cudnnCreateTensorDescriptor)                                                                                     \
    X(cudnnSetTensor4dDescriptor)                                                                                      \
    X(cudnnDestroyTensorDescriptor)                                                                                    \
    X(cudnnCreateFilterDescriptor)                                                                                     \
    X(cudnnSetFilter4dDescriptor)                                                                                      \
    X(cudnnDestroyFilterDescriptor)                                                                                    \
    X(cudnnCreateConvolutionDescriptor)                                                                                \
    X(cudnnSetConvolution2dDescriptor)                                                                                 \
    X(cudnnSetConvolutionMathType)                                                                                     \
    X(cudnnDestroyConvolutionDescriptor)                                                                               \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                                                         \
    X(cudnnConvolutionForward)                                                                                         \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                                                                    \
    X(cudnnConvolutionBackwardData)                                                                                    \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                                                  \
    X(cudnnConvolutionBackwardFilter)

struct cudnn {
    void *library; /* NULL: not opened */
    int version;   /* 92801 */
#define X(name) __typeof__(name) *name;
    CUDNN_FUNCTIONS(X)
#undef X
};

/* Loads cuDNN. ERROR_UNSUPPORTED: the message says what is missing. It is never unloaded,
 * because it loads libraries that it does not unload. */
int cudnn_open(struct cudnn *cudnn, struct error *error);

#endif
