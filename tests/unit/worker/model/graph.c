/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/philox.h"
#include "worker/model/graph_describe.h"
#include "worker/model/memory_planner.h"

static struct device *open_device(void)
{
    struct device *device = NULL;
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &device, NULL), 0);
    return device;
}

static struct model_spec preset(enum preset name)
{
    return (struct model_spec){
        .preset = name, .width = FIELD_UNSET, .depth = FIELD_UNSET, .heads = FIELD_UNSET, .context = FIELD_UNSET};
}

Test(graph, presets_have_the_parameters_they_should)
{
    static const struct {
        enum preset name;
        int64_t parameters;
        double flops;
    } cases[] = {{PRESET_MLP, 407050, 1.64e6},
                 {PRESET_LENET, 225034, 15.4e6},
                 {PRESET_GPT_BYTES, 891648, 256 * 5.7e6},
                 {PRESET_RESNET20, 269722 + 1376, 3 * 2 * 40.55e6},
                 {PRESET_RESNET50, 25557032 + 53120, 3 * 2 * 4.09e9}};
    struct device *device = open_device();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_spec model = preset(cases[i].name);
        struct graph *graph = NULL;
        struct error error = ERROR_INIT;
        struct graph_options options = {.device = device, .model = &model, .max_examples = 2};
        cr_assert_eq(graph_new(&options, &graph, &error), 0, "%s", error.message);
        cr_expect_eq(graph_layout(graph)->elements, cases[i].parameters, "%lld",
                     (long long)graph_layout(graph)->elements);
        cr_expect_float_eq(graph_flops_per_example(graph) / cases[i].flops, 1.0, 0.06, "%g",
                           graph_flops_per_example(graph));
        struct memory_plan plan;
        graph_memory_plan(graph, 2, &plan);
        cr_expect_eq(plan.bytes[MEMORY_OPTIMIZER], 8 * cases[i].parameters);
        graph_free(graph);
    }
    device_close(device);
}

/* Each is counted once, also where layers share tensors. */
Test(graph, the_parameters_of_a_description_are_those_of_the_layout)
{
    static const enum preset names[] = {PRESET_LENET, PRESET_RESNET20, PRESET_GPT_BYTES, PRESET_GPT2_124M};
    struct device *device = open_device();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_spec model = preset(names[i]);
        struct graph *graph = NULL;
        struct graph_options options = {.device = device, .model = &model, .max_examples = 1, .layout_only = true};
        cr_assert_eq(graph_new(&options, &graph, NULL), 0);
        SCOPED_JSON *described = graph_describe(graph);
        int64_t sum = 0, place = 0;
        for (const struct json *layer = json_first(json_at(described, "layers")); layer; layer = json_next(layer)) {
            sum += json_integer_at(layer, "parameters", 0);
            for (const struct json *input = json_first(json_at(layer, "inputs")); input; input = json_next(input))
                cr_expect(json_integer(input, place) < place, "a layer reads what comes before it");
            place++;
        }
        cr_expect_eq(sum, graph_layout(graph)->elements, "%zu: %lld", i, (long long)sum);
        cr_expect_eq(json_integer_at(described, "parameters", 0), graph_layout(graph)->elements);
        graph_free(graph);
    }
    device_close(device);
}

/* docs/gpus.md has this number: products, the tied output's among them, and half of each square of attention. */
Test(graph, flops_of_gpt2_are_those_of_its_products)
{
    struct device *device = open_device();
    struct model_spec model = preset(PRESET_GPT2_124M);
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    const struct graph_options options = {.device = device, .model = &model, .max_examples = 1, .layout_only = true};
    cr_assert_eq(graph_new(&options, &graph, &error), 0, "%s", error.message);
    double width = 768, layers = 12, context = 1024, vocabulary = 50257;
    double products = 12 * width * width * layers + vocabulary * width, attention = context * width * layers;
    cr_expect_float_eq(graph_flops_per_example(graph) / (6 * context * (products + attention)), 1.0, 1e-12, "%g",
                       graph_flops_per_example(graph) / context);
    graph_free(graph);
    device_close(device);
}

Test(graph, tensors_are_named_packed_and_of_pytorch_shape)
{
    struct device *device = open_device();
    struct model_spec model = preset(PRESET_LENET);
    struct graph *graph = NULL;
    cr_assert_eq(
        graph_new(
            &(struct graph_options){.device = device, .model = &model, .max_examples = 1, .evaluation_only = true},
            &graph, NULL),
        0);
    const struct parameter_layout *layout = graph_layout(graph);
    const struct parameter_tensor *conv = parameter_layout_find(layout, "conv2.weight");
    cr_assert(conv && conv->rank == 4 && conv->shape[0] == 64 && conv->shape[1] == 32 && conv->shape[3] == 3);
    int64_t next = 0;
    for (unsigned i = 0; i < layout->tensor_count; i++) {
        cr_assert_eq(layout->tensors[i].offset, next);
        next += layout->tensors[i].elements;
    }
    cr_assert_eq(next, layout->elements);
    cr_assert_null(parameter_layout_find(layout, "conv9.weight"));
    graph_free(graph);
    device_close(device);
}

Test(graph, initial_values_follow_the_seed_and_the_rule)
{
    struct device *device = open_device();
    struct model_spec model = preset(PRESET_MLP);
    struct graph *graph = NULL;
    cr_assert_eq(
        graph_new(
            &(struct graph_options){.device = device, .model = &model, .max_examples = 1, .evaluation_only = true},
            &graph, NULL),
        0);
    const struct parameter_layout *layout = graph_layout(graph);
    size_t bytes = (size_t)layout->elements * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    graph_initialise(layout, 7, a);
    graph_initialise(layout, 7, b);
    cr_assert_eq(memcmp(a, b, bytes), 0);
    graph_initialise(layout, 8, b);
    cr_assert_neq(memcmp(a, b, bytes), 0);
    const struct parameter_tensor *weight = parameter_layout_find(layout, "dense1.weight");
    double squares = 0;
    for (int64_t i = 0; i < weight->elements; i++)
        squares += (double)a[weight->offset + i] * (double)a[weight->offset + i];
    cr_assert_float_eq(sqrt(squares / (double)weight->elements), sqrt(2.0 / 784), 2e-4);
    free(a), free(b);
    graph_free(graph);
    device_close(device);
}

/* Enough weights that several threads draw them. */
Test(graph, a_weight_at_the_start_depends_on_its_place_alone)
{
    enum { ROWS = 1500, COLUMNS = 1001, LATER = 1000 };
    static float whole[ROWS * COLUMNS], part[(ROWS - LATER) * COLUMNS];
    struct parameter_tensor tensor = {.number = 3,
                                      .rank = 2,
                                      .shape = {ROWS, COLUMNS},
                                      .elements = ROWS * COLUMNS,
                                      .start = START_NORMAL,
                                      .deviation = 0.02f};
    struct parameter_layout layout = {.tensors = &tensor, .tensor_count = 1};
    graph_initialise(&layout, 7, whole);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < tensor.elements; i++) {
        sum += (double)whole[i];
        squares += (double)whole[i] * (double)whole[i];
    }
    cr_expect_float_eq(sum / (double)tensor.elements, 0, 1e-4);
    cr_expect_float_eq(sqrt(squares / (double)tensor.elements), 0.02, 1e-4);
    tensor.first_row = LATER;
    tensor.shape[0] = ROWS - LATER;
    tensor.elements = (ROWS - LATER) * COLUMNS;
    graph_initialise(&layout, 7, part);
    cr_expect_arr_eq(part, whole + LATER * COLUMNS, sizeof part, "the later rows of a tensor that is cut");
    tensor.first_row = 0;
    tensor.shape[0] = 2;
    tensor.elements = 2 * COLUMNS;
    graph_initialise(&layout, 7, part);
    cr_expect_arr_eq(part, whole, 2 * COLUMNS * sizeof *part, "as one thread draws them");
}

static void refused(const struct model_spec *model, const char *words)
{
    struct device *device = open_device();
    struct error error = ERROR_INIT;
    struct graph *graph = NULL;
    cr_expect_eq(
        graph_new(&(struct graph_options){.device = device, .model = model, .max_examples = 4}, &graph, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect(strstr(error.message, words), "%s", error.message);
    device_close(device);
}

Test(graph, wrong_models_are_answered_with_a_sentence)
{
    struct layer_spec layer = {.type = LAYER_DENSE, .units = 3, .bias = true};
    struct model_spec model = {.input_shape = {4, 4, 1}, .input_rank = 3, .layers = &layer, .layer_count = 1};
    refused(&model, "flatten");
    layer = (struct layer_spec){.type = LAYER_CONV2D, .filters = 2, .kernel = 9, .stride = 1};
    refused(&model, "does not fit an image of 4x4");
    layer = (struct layer_spec){.type = LAYER_RELU};
    refused(&model, "nothing to learn");
    layer = (struct layer_spec){.type = LAYER_DENSE, .units = 3, .inputs = {"lost"}, .input_count = 1};
    refused(&model, "no earlier layer is called lost");
    model.layer_count = 0;
    refused(&model, "name a preset");
    struct model_spec gpt = preset(PRESET_GPT_BYTES);
    gpt.heads = 5;
    refused(&gpt, "cannot be shared by 5 heads");
}

Test(graph, a_pass_beyond_the_plan_is_refused)
{
    struct device *device = open_device();
    struct device_stream *stream = NULL;
    struct model_spec model = preset(PRESET_MLP);
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    cr_assert_eq(
        graph_new(
            &(struct graph_options){.device = device, .model = &model, .max_examples = 4, .evaluation_only = true},
            &graph, NULL),
        0);
    cr_assert_eq(graph_evaluate(graph, stream, &(struct graph_pass){.examples = 5}, &error), -1);
    cr_assert(strstr(error.message, "plan for 4"), "%s", error.message);
    graph_free(graph);
    device_stream_free(stream);
    device_close(device);
}

Test(graph, the_planner_shares_memory_only_between_times)
{
    struct memory_block blocks[] = {{100, 0, 2, 0}, {64, 1, 3, 0}, {128, 3, 4, 0}, {10, 0, 4, 0}};
    int64_t size = memory_planner_place(blocks, 4);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            bool same_time = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
            bool same_place = blocks[i].offset < blocks[j].offset + blocks[j].bytes &&
                              blocks[j].offset < blocks[i].offset + blocks[i].bytes;
            cr_assert_not(same_time && same_place);
        }
    cr_assert_leq(size, 256);
}

Test(graph, philox_gives_the_published_words)
{
    struct philox_words zero = philox(0, 0, 0), ones = philox(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const uint32_t expected_zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t expected_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    cr_assert_eq(memcmp(zero.word, expected_zero, sizeof expected_zero), 0);
    cr_assert_eq(memcmp(ones.word, expected_ones, sizeof expected_ones), 0);
}
