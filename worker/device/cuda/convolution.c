/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"

#include "worker/device/cuda/convolution_plan.h"

static struct convolution_key key_of(const struct cuda_call *call, const struct conv2d_shape *shape,
                                     enum convolution_direction direction, bool tf32)
{
    return (struct convolution_key){
        .shape = *shape, .direction = (int32_t)direction, .stored = (int32_t)call->stored, .tf32 = tf32};
}

/* False: it is refused, now and from now on. Only what any machine refuses counts, since all machines of a crew compute alike. A
 * refusal while launches are recorded is not kept: the recording fails, because bits must not follow from how launches are made. */
static bool launch(const struct cuda_call *call, struct convolution_plan *plan, const struct convolution *job)
{
    const cudnnStatus_t status = convolution_launch(call, plan, job);
    plan->possible = !convolution_is_refused(status) || call->owner->records;
    if (plan->possible)
        convolution_check(call, "cudnnConvolution", status);
    return plan->possible;
}

/* `weight` is packed first, unless NULL: its gradient is computed. */
static bool convolve(const struct cuda_call *call, const struct convolution *job, const float *weight)
{
    struct cuda_device *device = call->owner->device;
    if (!device->cudnn.library || !convolution_key_fits(&job->key))
        return false;
    struct convolution_plan *plan = convolution_plan_find(call, job);
    bool computed = plan && plan->possible;
    if (computed && weight)
        cuda_pack_convolution(call, &job->key.shape, weight, job->w);
    computed = computed && launch(call, plan, job);
    atomic_fetch_add(computed ? &device->convolutions : &device->refused_convolutions, 1);
    return computed;
}

bool cuda_convolve_forward(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct convolution job = {key_of(call, &op->shape, CONVOLUTION_FORWARD, op->tf32), (void *)op->x,
                                    op->workspace, op->y};
    return convolve(call, &job, op->weight);
}

bool cuda_convolve_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct convolution job = {key_of(call, &op->shape, CONVOLUTION_BACKWARD_DATA, op->tf32), op->dx,
                                    op->workspace, (void *)op->dy};
    return convolve(call, &job, op->weight);
}

/* A finished gradient is added, so that shard by shard gives the bits of adding those. */
bool cuda_convolve_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op)
{
    const struct convolution job = {key_of(call, &op->shape, CONVOLUTION_BACKWARD_WEIGHT, op->tf32), (void *)op->x,
                                    op->workspace, (void *)op->dy};
    if (!convolve(call, &job, NULL))
        return false;
    cuda_unpack_convolution(call, &op->shape, op->workspace, op->dweight, op->accumulate);
    return true;
}
