/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/model/bench.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/philox.h"

float bench_number(uint32_t seed, int64_t i)
{
    return (float)(philox(seed, (uint64_t)i, 0).word[0] >> 8) / 8388608.0f - 1.0f;
}

static void fill(void *memory, enum element_type type, int64_t count, int64_t classes, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++)
        if (type == ELEMENT_FLOAT32)
            ((float *)memory)[i] = bench_number(seed, i);
        else
            ((int32_t *)memory)[i] = (int32_t)(philox(seed, (uint64_t)i, 0).word[0] % (uint32_t)classes);
}

struct bench bench_open_graph(struct graph_options graph, int threads)
{
    struct error error = ERROR_INIT;
    int64_t examples = graph.max_examples;
    struct bench b = {.examples = examples, .scale = 1.0f};
    const struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = threads};
    cr_assert_eq(device_open(&options, &b.device, &error), 0, "%s", error.message);
    graph.device = b.device;
    cr_assert_eq(device_stream_new(b.device, &b.stream, &error), 0, "%s", error.message);
    cr_assert_eq(graph_new(&graph, &b.graph, &error), 0, "%s", error.message);
    const struct example_format *format = graph_example_format(b.graph);
    int64_t elements = graph_layout(b.graph)->elements;
    b.parameters = calloc((size_t)elements, sizeof(float));
    b.gradients = calloc((size_t)elements, sizeof(float));
    b.inputs = calloc((size_t)examples, example_input_bytes(format));
    b.targets = calloc((size_t)examples, example_target_bytes(format));
    graph_initialise(graph_layout(b.graph), 11, b.parameters);
    fill(b.inputs, format->input_type, examples * format->input_elements, format->classes, 2);
    fill(b.targets, format->target_type, examples * format->target_elements, format->classes, 3);
    return b;
}

struct bench bench_open_rows(const struct model_spec *model, int64_t examples, int threads, enum precision precision,
                             int64_t logit_rows)
{
    return bench_open_graph(
        (struct graph_options){
            .model = model, .max_examples = examples, .precision = precision, .logit_rows = logit_rows},
        threads);
}

struct bench bench_open(const struct model_spec *model, int64_t examples, int threads, enum precision precision)
{
    return bench_open_rows(model, examples, threads, precision, 0);
}

void bench_close(struct bench *b)
{
    free(b->parameters), free(b->gradients), free(b->inputs), free(b->targets);
    graph_free(b->graph);
    device_stream_free(b->stream);
    device_close(b->device);
}

struct graph_pass bench_pass(struct bench *b)
{
    return (struct graph_pass){.parameters = b->parameters,
                               .inputs = b->inputs,
                               .targets = b->targets,
                               .examples = b->examples,
                               .scale = b->scale,
                               .loss_scale = b->loss_scale,
                               .gradients = b->gradients,
                               .sums = &b->sums};
}

void bench_backward(struct bench *b, bool accumulate)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = bench_pass(b);
    pass.accumulate = accumulate;
    cr_assert_eq(graph_forward_backward(b->graph, b->stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(b->stream, &error), 0, "%s", error.message);
}
