/* SPDX-License-Identifier: Apache-2.0
 *
 * How cuDNN computes a convolution of a given shape, kept per stream: by one fixed
 * algorithm for each direction, which adds in one order. Shapes and types decide,
 * and the batch only what workspace it takes.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CONVOLUTION_PLAN_H
#define COXSWAIN_DEVICE_CUDA_CONVOLUTION_PLAN_H

#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/cuda_device.h"

enum convolution_direction { CONVOLUTION_FORWARD, CONVOLUTION_BACKWARD_DATA, CONVOLUTION_BACKWARD_WEIGHT };

/* All that a plan depends on; without gaps, for memcmp. */
struct convolution_key {
    struct conv2d_shape shape;
    int32_t direction, stored, tf32, unused;
};

struct convolution_plan {
    struct convolution_plan *next;
    struct convolution_key key;
    bool possible; /* cuDNN has this shape, in the workspace that there is */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    size_t workspace_bytes;
};

/* One direction of it: the third is the result, the other two are read. w is packed. */
struct convolution {
    struct convolution_key key;
    void *x, *w, *y;
};

/* Whether cuDNN can be asked for it. */
bool convolution_key_fits(const struct convolution_key *key);
/* The stream's plan, made at the first convolution of its shape. NULL: the operands are not aligned, or the stream has failed. */
struct convolution_plan *convolution_plan_find(const struct cuda_call *call, const struct convolution *job);
cudnnStatus_t convolution_launch(const struct cuda_call *call, const struct convolution_plan *plan,
                                 const struct convolution *job);
/* There is another way, and nothing has failed: so any machine says. */
bool convolution_is_refused(cudnnStatus_t status);
/* Whether it is success; if not the call's stream has failed. */
bool convolution_check_at(const struct cuda_call *call, cudnnStatus_t status, const struct cuda_place *place);
#define convolution_check(call, name, status) convolution_check_at(call, status, CUDA_PLACE(name))

#endif
