/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps the plans by which cuDNN computes convolutions: the descriptors of one direction
 * and shape, and whether cuDNN supports them. convolution.c asks for a plan at each convolution;
 * each stream keeps its own. Each direction has one fixed algorithm, which adds in one order. The
 * plan depends on shape and types; the number of examples affects only the workspace.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CONVOLUTION_PLAN_H
#define COXSWAIN_DEVICE_CUDA_CONVOLUTION_PLAN_H

#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/cuda_device.h"

enum convolution_direction { CONVOLUTION_FORWARD, CONVOLUTION_BACKWARD_DATA, CONVOLUTION_BACKWARD_WEIGHT };

/* Everything that a plan depends on. Has no gaps, for memcmp. */
struct convolution_key {
    struct conv2d_shape shape;
    int32_t direction, stored, tf32, unused;
};

struct convolution_plan {
    struct convolution_plan *next;
    struct convolution_key key;
    bool possible; /* cuDNN supports this shape within the available workspace */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    size_t workspace_bytes;
};

/* The operands of one direction: one of x, w and y is the result, the other two are read. w is
 * packed. */
struct convolution {
    struct convolution_key key;
    void *x, *w, *y;
};

/* Returns whether cuDNN may be asked: the sizes are within its limits, images begin at aligned
 * addresses, and the convolution is not simply a product. */
bool convolution_key_fits(const struct convolution_key *key);
/* Returns the stream's plan; makes it at the first convolution of its shape. NULL: the operands
 * are not aligned, or the stream has failed. */
struct convolution_plan *convolution_plan_find(const struct cuda_call *call, const struct convolution *job);
cudnnStatus_t convolution_launch(const struct cuda_call *call, const struct convolution_plan *plan,
                                 const struct convolution *job);
/* Returns whether the status means "not supported": nothing has failed, another kernel can
 * compute it, and every machine gives the same answer. */
bool convolution_is_refused(cudnnStatus_t status);
/* Returns whether `status` is success; if not, fails the call's stream. */
bool convolution_check_at(const struct cuda_call *call, cudnnStatus_t status, const struct cuda_place *place);
#define convolution_check(call, name, status) convolution_check_at(call, status, CUDA_PLACE(name))

#endif
