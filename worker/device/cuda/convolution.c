/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"

#include "worker/device/cuda/convolution_plan.h"
#include "worker/device/cuda/quickest_launch.h"

static struct convolution_key key_of(const struct cuda_call *call, const struct conv2d_shape *shape,
                                     enum convolution_direction direction, bool tf32)
{
    return (struct convolution_key){
        .shape = *shape, .direction = (int32_t)direction, .stored = (int32_t)call->stored, .tf32 = tf32};
}

static struct convolution forward_job(const struct cuda_call *call, const struct conv2d_forward *op)
{
    return (struct convolution){key_of(call, &op->shape, CONVOLUTION_FORWARD, op->tf32), (void *)op->x, op->workspace,
                                op->y};
}

static struct convolution backward_data_job(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    return (struct convolution){key_of(call, &op->shape, CONVOLUTION_BACKWARD_DATA, op->tf32), op->dx, op->workspace,
                                (void *)op->dy};
}

static struct convolution backward_weight_job(const struct cuda_call *call, const struct conv2d_backward_weight *op)
{
    return (struct convolution){key_of(call, &op->shape, CONVOLUTION_BACKWARD_WEIGHT, op->tf32), (void *)op->x,
                                op->workspace, (void *)op->dy};
}

/* Whether cuDNN is to be asked at all. */
static bool is_asked(const struct cuda_call *call, const struct convolution *job)
{
    return call->owner->device->cudnn.library && convolution_key_fits(&job->key);
}

/* NULL: cuDNN does not compute it. */
static struct convolution_plan *plan_for(const struct cuda_call *call, const struct convolution *job)
{
    struct convolution_plan *plan = convolution_plan_find(call, job);
    return plan && plan->possible ? plan : NULL;
}

/* False: it is refused, now and from now on, one that was measured after the fixed one has been tried in its place. Only what any
 * machine refuses counts, for all of a crew went by the same. What is refused for being recorded is not: the recording fails, for
 * bits do not follow from how launches are made. */
static bool launch(const struct cuda_call *call, struct convolution_plan *plan, const struct convolution *job)
{
    cudnnStatus_t status;
    bool refused;
    do {
        status = convolution_launch(call, plan, &plan->way, job);
        refused = convolution_is_refused(status) && !call->owner->records;
    } while (refused && convolution_plan_go_by_first(call, plan));
    plan->possible = !refused;
    if (plan->possible)
        convolution_check(call, "cudnnConvolution", status);
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
    const struct convolution job = forward_job(call, op);
    return convolve(call, &job, op->weight);
}

bool cuda_convolve_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct convolution job = backward_data_job(call, op);
    return convolve(call, &job, op->weight);
}

/* A finished gradient is added, so that shard by shard gives the bits of adding those. */
bool cuda_convolve_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op)
{
    const struct convolution job = backward_weight_job(call, op);
    if (!convolve(call, &job, NULL))
        return false;
    cuda_unpack_convolution(call, &op->shape, op->workspace, op->dweight, op->accumulate);
    return true;
}

/* ---------------------------------------------------------------- measuring */

struct candidates {
    const struct convolution_plan *plan;
    const struct convolution *job;
    struct convolution_way ways[CONVOLUTION_WAYS_MAX];
};

static bool launch_way(const struct cuda_call *call, const void *context, int number)
{
    const struct candidates *candidates = context;
    const struct convolution_way *way = &candidates->ways[number];
    const cudnnStatus_t status = convolution_launch(call, candidates->plan, way, candidates->job);
    return !convolution_is_unfit(status, candidates->plan, way) && convolution_check(call, "cudnnConvolution", status);
}

/* By this search, whatever the batch. */
static bool is_searched(const struct cuda_stream *stream, const struct convolution_plan *plan)
{
    for (const struct convolution_plan *other = stream->convolution_plans; other; other = other->next)
        if (other->searched && convolution_plans_are_alike(plan, other))
            return true;
    return false;
}

/* Where there is but one way there is nothing to time. */
static void find_quickest(const struct cuda_call *call, struct convolution_plan *plan, const struct convolution *job)
{
    struct algorithm_search *search = call->owner->search;
    struct candidates candidates = {.plan = plan, .job = job};
    const int count = convolution_plan_ways(call, plan, candidates.ways);
    const int chosen =
        count <= 1 ? count - 1
                   : quickest_launch(call, count, launch_way, &candidates, &search->tallies[ALGORITHM_CONVOLUTION].ms);
    if (chosen < 0)
        return;
    struct algorithm_choice choice;
    convolution_choice_make(plan, &candidates.ways[chosen], &choice);
    quickest_note(search, &choice, convolution_is_first(plan, &candidates.ways[chosen]));
}

static void measure(const struct cuda_call *call, const struct convolution *job)
{
    struct algorithm_search *search = call->owner->search;
    struct convolution_plan *plan = is_asked(call, job) ? convolution_plan_find(call, job) : NULL;
    if (!plan || !plan->described || is_searched(call->owner, plan))
        return;
    plan->searched = true;
    if (quickest_is_over(search, ALGORITHM_CONVOLUTION))
        search->tallies[ALGORITHM_CONVOLUTION].left_out++;
    else
        find_quickest(call, plan, job);
}

void cuda_convolution_measure(const struct cuda_call *call, enum device_operation operation, const void *arguments)
{
    struct convolution job;
    if (operation == OPERATION_conv2d_forward)
        job = forward_job(call, arguments);
    else if (operation == OPERATION_conv2d_backward_data)
        job = backward_data_job(call, arguments);
    else if (operation == OPERATION_conv2d_backward_weight)
        job = backward_weight_job(call, arguments);
    else
        return;
    measure(call, &job);
}
