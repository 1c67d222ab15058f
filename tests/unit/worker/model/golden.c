/* SPDX-License-Identifier: Apache-2.0
 *
 * Two small models against PyTorch in double precision: loss, gradients and the
 * steps of running statistics, from files that tests/parity/parity.py --golden
 * has written.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/checkpoint/safetensors.h"
#include "worker/model/graph.h"

#define FOLDER "tests/unit/worker/model/golden/"

static const float *values(const struct safetensors_file *file, const char *prefix, const char *name)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct safetensors_tensor *tensor = safetensors_find(file, full);
    cr_assert_not_null(tensor, "%s", full);
    return tensor->data;
}

static float largest(const float *x, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

static void *integers(const float *x, int64_t count)
{
    int32_t *whole = calloc((size_t)count, sizeof *whole);
    for (int64_t i = 0; i < count; i++)
        whole[i] = (int32_t)x[i];
    return whole;
}

static void check(const char *path, const struct model_spec *model, int64_t examples)
{
    struct safetensors_file file;
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.message);
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 2}, &device, &error), 0);
    cr_assert_eq(device_stream_new(device, &stream, &error), 0);
    cr_assert_eq(
        graph_new(&(struct graph_options){.device = device, .model = model, .max_examples = examples}, &graph, &error),
        0, "%s", error.message);
    const struct parameter_layout *layout = graph_layout(graph);
    const struct example_format *format = graph_example_format(graph);
    float *parameters = calloc((size_t)layout->elements, sizeof *parameters);
    float *gradients = calloc((size_t)layout->elements, sizeof *gradients);
    for (unsigned t = 0; t < layout->tensor_count; t++)
        memcpy(parameters + layout->tensors[t].offset, values(&file, "w/", layout->tensors[t].name),
               (size_t)layout->tensors[t].elements * sizeof *parameters);
    int64_t targets = examples * format->target_elements;
    bool tokens = format->input_type == ELEMENT_INT32;
    const float *x = values(&file, "", "x");
    void *whole = integers(x, tokens ? examples * format->input_elements : 0);
    void *classes = integers(values(&file, "", "y"), targets);
    struct loss_sums sums;
    struct graph_pass pass = {.parameters = parameters,
                              .inputs = tokens ? whole : (const void *)x,
                              .targets = classes,
                              .examples = examples,
                              .scale = 1.0f / (float)targets,
                              .gradients = gradients,
                              .sums = &sums};
    cr_assert_eq(graph_forward_backward(graph, stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(stream, &error), 0, "%s", error.message);
    cr_expect_float_eq(sums.loss / (double)sums.count, *values(&file, "", "loss"), 1e-6);
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        const float *expected = values(&file, "g/", tensor->name), *found = gradients + tensor->offset;
        float limit = 1e-5f * largest(expected, tensor->elements) + 1e-8f;
        for (int64_t i = 0; i < tensor->elements; i++)
            cr_expect(fabsf(found[i] - expected[i]) <= limit, "%s[%lld]: %g, not %g", tensor->name, (long long)i,
                      (double)found[i], (double)expected[i]);
    }
    free(parameters), free(gradients), free(whole), free(classes);
    graph_free(graph);
    device_stream_free(stream);
    device_close(device);
    safetensors_close(&file);
}

Test(golden, a_residual_network)
{
    const struct model_spec model = {
        .preset = PRESET_RESNET20, .width = 2, .depth = 1, .classes = 5, .input_shape = {8, 8, 1}, .input_rank = 3};
    check(FOLDER "resnet.safetensors", &model, 4);
}

Test(golden, a_gpt_with_a_tied_output)
{
    const struct model_spec model = {
        .preset = PRESET_GPT2_124M, .width = 8, .depth = 1, .heads = 2, .context = 6, .vocabulary = 11};
    check(FOLDER "gpt.safetensors", &model, 3);
}
