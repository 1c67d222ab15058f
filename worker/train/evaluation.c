/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

/* A program has a loss of its own. */
static bool has_squared_error(const struct example_format *format)
{
    return format->classes == 0 && format->target_type == ELEMENT_FLOAT32 && format->input_count == 0;
}

struct evaluation_metrics evaluation_metrics(const struct example_format *format, double target_unit,
                                             const struct loss_sums *sums)
{
    struct evaluation_metrics metrics = {.accuracy = NAN, .perplexity = NAN, .rmse = NAN};
    if (sums->count == 0)
        return metrics;
    metrics.loss = sums->loss / (double)sums->count;
    if (format->classes > 0 && format->target_elements == 1)
        metrics.accuracy = (double)sums->correct / (double)sums->count;
    else if (format->classes > 0)
        metrics.perplexity = exp(metrics.loss);
    else if (has_squared_error(format))
        metrics.rmse = sqrt(metrics.loss) * target_unit;
    return metrics;
}

struct evaluation_metrics evaluation_metrics_of(const struct graph *graph, const struct dataset *dataset,
                                                const struct loss_sums *sums)
{
    return evaluation_metrics(graph_example_format(graph), dataset_target_unit(dataset), sums);
}

/* Shared memory of one batch. */
struct evaluation_buffers {
    struct device *device;
    void *inputs, *targets, *sums;
    int64_t *indices;
};

static void release(struct evaluation_buffers *buffers)
{
    device_free(buffers->device, buffers->inputs);
    device_free(buffers->device, buffers->targets);
    device_free(buffers->device, buffers->sums);
    free(buffers->indices);
}

static int allocate(struct evaluation_buffers *buffers, const struct graph *graph, struct error *error)
{
    const struct example_format *format = graph_example_format(graph);
    size_t batch = (size_t)graph_max_examples(graph);
    buffers->indices = memory_allocate(batch, sizeof *buffers->indices);
    if (device_allocate(buffers->device, MEMORY_SHARED, batch * example_input_bytes(format), &buffers->inputs, error) <
        0)
        return -1;
    if (device_allocate(buffers->device, MEMORY_SHARED, batch * example_target_bytes(format), &buffers->targets,
                        error) < 0)
        return -1;
    return device_allocate(buffers->device, MEMORY_SHARED, sizeof(struct loss_sums), &buffers->sums, error);
}

static int run_batch(struct graph *graph, struct device_stream *stream, const float *parameters,
                     const struct evaluation_examples *examples, const struct evaluation_buffers *buffers,
                     int64_t first, int64_t count, struct error *error)
{
    for (int64_t i = 0; i < count; i++)
        buffers->indices[i] = first + i;
    if (dataset_read(examples->dataset, buffers->indices, count, buffers->inputs, buffers->targets, error) < 0)
        return -1;
    struct graph_pass pass = {
        .parameters = parameters,
        .inputs = buffers->inputs,
        .targets = buffers->targets,
        .examples = count,
        .sums = buffers->sums,
        .weights_stand = first > examples->first,
    };
    if (graph_evaluate(graph, stream, &pass, error) < 0)
        return -1;
    return device_stream_synchronise(stream, error);
}

int evaluation_run(struct graph *graph, struct device *device, struct device_stream *stream, const float *parameters,
                   const struct evaluation_examples *examples, struct loss_sums *ret_sums, struct error *error)
{
    SCOPED(release) struct evaluation_buffers buffers = {.device = device};
    if (allocate(&buffers, graph, error) < 0)
        return error_wrap(error, "evaluation");
    struct loss_sums total = {0};
    int64_t batch = graph_max_examples(graph), end = examples->first + examples->count;
    size_t target_bytes = example_target_bytes(graph_example_format(graph));
    for (int64_t at = examples->first; at < end; at += batch) {
        int64_t length = end - at < batch ? end - at : batch;
        if (run_batch(graph, stream, parameters, examples, &buffers, at, length, error) < 0)
            return error_wrap(error, "evaluation of examples %lld to %lld", (long long)at,
                              (long long)(at + length - 1));
        if (examples->targets)
            memcpy((char *)examples->targets + (size_t)(at - examples->first) * target_bytes, buffers.targets,
                   (size_t)length * target_bytes);
        const struct loss_sums *sums = buffers.sums;
        total.loss += sums->loss;
        total.correct += sums->correct;
        total.count += sums->count;
    }
    *ret_sums = total;
    return 0;
}
