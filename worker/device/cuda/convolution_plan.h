/* SPDX-License-Identifier: Apache-2.0
 *
 * How cuDNN makes a convolution of a shape, for each stream: by the algorithm of
 * the device's record, where it has one for the shape (algorithm_record.h) that
 * the batch leaves room for, else by one that is fixed. All of them add in one
 * order. Shapes and types decide, and of the batch only what workspace it takes.
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

/* An algorithm's number in its direction, and the workspace that it wants for a plan. */
struct convolution_way {
    int algorithm;
    size_t bytes;
};
#define CONVOLUTION_WAYS_MAX 8

struct convolution_plan {
    struct convolution_plan *next;
    struct convolution_key key;
    bool described, possible, searched; /* the last: by the search that is on, or was */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    struct convolution_way way;
};

/* One direction of it: the third is the result, the other two are read. w is packed. */
struct convolution {
    struct convolution_key key;
    void *x, *w, *y;
};

/* Whether cuDNN can be asked for it. */
bool convolution_key_fits(const struct convolution_key *key);
/* The stream's, made at the first convolution of its shape; NULL: its operands do not lie so, or the stream has failed. The device's
 * record may be another since: then all are made anew. */
struct convolution_plan *convolution_plan_find(const struct cuda_call *call, const struct convolution *job);
/* All that cuDNN has in the workspace that there is; the one that is taken without measuring is the first, if it is there. */
int convolution_plan_ways(const struct cuda_call *call, struct convolution_plan *plan,
                          struct convolution_way ret_ways[CONVOLUTION_WAYS_MAX]);
bool convolution_is_first(const struct convolution_plan *plan, const struct convolution_way *way);
/* In place of what the record has said. False: it goes by that one already, or cuDNN has it not for this shape. */
bool convolution_plan_go_by_first(const struct cuda_call *call, struct convolution_plan *plan);
/* But for the batch. */
bool convolution_plans_are_alike(const struct convolution_plan *one, const struct convolution_plan *other);
cudnnStatus_t convolution_launch(const struct cuda_call *call, const struct convolution_plan *plan,
                                 const struct convolution_way *way, const struct convolution *job);
/* There is another way, and nothing has failed: so any machine says. */
bool convolution_is_refused(cudnnStatus_t status);
/* Likewise while candidates are asked for and tried, where another than the first is left out for whatever it says. */
bool convolution_is_unfit(cudnnStatus_t status, const struct convolution_plan *plan, const struct convolution_way *way);
/* Whether it is success; if not the call's stream has failed. */
bool convolution_check_at(const struct cuda_call *call, cudnnStatus_t status, const struct cuda_place *place);
#define convolution_check(call, name, status) convolution_check_at(call, status, CUDA_PLACE(name))

/* What a record says of it; and whether the device can compute by what one says; if not the stream may have failed. */
void convolution_choice_make(const struct convolution_plan *plan, const struct convolution_way *way,
                             struct algorithm_choice *ret_choice);
bool convolution_choice_check(const struct cuda_call *call, const struct algorithm_choice *choice);

/* Tries what cuDNN has for the operation, and notes the quickest in what the stream measures; nothing of others than convolutions. */
void cuda_convolution_measure(const struct cuda_call *call, enum device_operation operation, const void *arguments);

#endif
