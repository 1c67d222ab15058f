/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the launches in a pass over ResNet-50 that only move values: rectifiers, residual sums, sums of gradients at branches. Nothing
 * is computed.
 */
#include <string.h>

#include "tests/gpu/learner.h"
#include "worker/device/backend.h"
#include "worker/model/graph_internal.h"

static const struct device_backend *own;
static int launches[OPERATION_COUNT];

static void count_launch(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    (void)stream, (void)arguments;
    launches[operation]++;
}

static void count_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                         const void *arguments)
{
    (void)stored;
    count_launch(stream, operation, arguments);
}

static void run_pass(struct side *gpu, const struct work *work, bool evaluates)
{
    struct error error = ERROR_INIT;
    struct learner learner;
    learner_open(&learner, work, gpu);
    own = gpu->stream->backend;
    struct device_backend counting = *own;
    counting.launch = count_launch;
    counting.launch_stored = count_stored;
    memset(launches, 0, sizeof launches);
    gpu->stream->backend = &counting;
    struct graph_pass pass = learner_pass(&learner);
    if (evaluates)
        must(graph_evaluate(learner.graph, gpu->stream, &pass, &error), &error);
    else
        must(graph_forward_backward(learner.graph, gpu->stream, &pass, &error), &error);
    gpu->stream->backend = own;
    must(device_stream_synchronise(gpu->stream, &error), &error);
    learner_close(&learner);
}

static void check_pass(struct side *gpu, const struct work *work, bool evaluates, int additions)
{
    run_pass(gpu, work, evaluates);
    const int apart = launches[OPERATION_relu_forward] + launches[OPERATION_relu_backward];
    verdict(apart + launches[OPERATION_add_forward] == 0, work->name, "%d rectifiers and %d sums", apart,
            launches[OPERATION_add_forward]);
    verdict(launches[OPERATION_axpy] == additions,
            "gradients are added up where a pool is read twice, and nowhere else", "%d times, not %d",
            launches[OPERATION_axpy], additions);
    verdict(launches[OPERATION_copy] <= 2, "nothing is copied but the batch", "%d copies", launches[OPERATION_copy]);
}

/* Values that mask a batch norm's backward pass must stay in memory until then: layer i runs backward at step 2 N - i. */
static void check_stays(struct side *gpu, const struct work *work)
{
    struct error error = ERROR_INIT;
    struct graph *graph = NULL;
    const struct graph_options options = {.device = gpu->device,
                                          .model = &work->model,
                                          .max_examples = work->batch,
                                          .precision = work->precision,
                                          .plan_only = true};
    int masks = 0, gone = 0;
    must(graph_new(&options, &graph, &error), &error);
    for (unsigned i = 0; i + 1 < graph->node_count; i++) {
        masks += graph->nodes[i].masks_sum;
        gone += graph->nodes[i].masks_sum &&
                graph->blocks[graph->nodes[i + 1].output].last < 2 * (int)graph->node_count - (int)i;
    }
    graph_free(graph);
    verdict(masks == 16 && gone == 0, "what rectifies a block is there when its batch norm goes back",
            "of %d blocks %d are not", masks, gone);
}

void check_moves(struct side *gpu)
{
    static const struct work resnet = {
        "resnet50 rectifies and adds within batch norms",
        {.preset = PRESET_RESNET50, .width = 4, .input_shape = {32, 32, 3}, .input_rank = 3, .classes = 5},
        {.type = OPTIMIZER_SGD, .learning_rate = 0.1},
        .batch = 1,
        .precision = PRECISION_BFLOAT16};
    check_pass(gpu, &resnet, false, 1);
    check_pass(gpu, &resnet, true, 0);
    check_stays(gpu, &resnet);
}
