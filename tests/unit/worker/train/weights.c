/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in and out: our own names, Hugging Face's GPT-2 with turned matrices
 * and half precision, and the sentences for what does not fit.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/model/graph.h"
#include "worker/model/partition.h"
#include "worker/train/export.h"
#include "worker/train/initial_weights.h"

static const struct model_spec gpt = {
    .preset = PRESET_GPT2_124M, .width = 8, .depth = 2, .heads = 2, .context = 6, .vocabulary = 11};

struct bench {
    struct device *device;
    struct graph *graph;
    struct training_state state;
    char path[64];
};

static struct bench open_bench(const struct model_spec *model, int64_t seed)
{
    struct bench b = {.path = "/tmp/coxswain-weights-XXXXXX"};
    const struct optimizer_spec sgd = {.type = OPTIMIZER_SGD};
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &b.device, NULL), 0);
    cr_assert_eq(
        graph_new(&(struct graph_options){.device = b.device, .model = model, .max_examples = 1}, &b.graph, NULL), 0);
    cr_assert_eq(training_state_init(&b.state, b.device, graph_layout(b.graph), &sgd, seed, NULL), 0);
    close(mkstemp(b.path));
    return b;
}

static void close_bench(struct bench *b)
{
    unlink(b->path);
    training_state_release(&b->state);
    graph_free(b->graph);
    device_close(b->device);
}

static int load(struct bench *b, const char *path, struct error *error)
{
    struct safetensors_file file;
    cr_assert_eq(safetensors_open(path, &file, error), 0, "%s", error->message);
    int result = initial_weights_load(&b->state, graph_layout(b->graph), &file, error);
    safetensors_close(&file);
    return result;
}

static void write_out(struct bench *b, enum export_names names)
{
    struct error error = ERROR_INIT;
    struct export export = {.layout = &b->state.layout, .parameters = b->state.parameters, .names = names};
    cr_assert_eq(export_write(&export, b->path, NULL, &error), 0, "%s", error.message);
}

static bool same_values(const float *some, const float *others, int64_t count)
{
    return memcmp(some, others, (size_t)count * sizeof *some) == 0;
}

static void check_round_trip(enum export_names names)
{
    struct error error = ERROR_INIT;
    struct bench from = open_bench(&gpt, 1), to = open_bench(&gpt, 2);
    write_out(&from, names);
    cr_assert_eq(load(&to, from.path, &error), 0, "%s", error.message);
    cr_assert(same_values(from.state.parameters, to.state.parameters, from.state.layout.elements));
    close_bench(&from);
    close_bench(&to);
}

Test(weights, come_back_as_they_went_under_either_names)
{
    check_round_trip(EXPORT_OWN_NAMES);
    check_round_trip(EXPORT_HUGGING_FACE_NAMES);
}

/* Zeros must not pass for weights. */
Test(weights, a_file_that_is_cut_off_before_it_is_read_is_an_error)
{
    struct error error = ERROR_INIT;
    struct bench b = open_bench(&gpt, 1);
    struct safetensors_file file;
    write_out(&b, EXPORT_OWN_NAMES);
    cr_assert_eq(safetensors_open(b.path, &file, &error), 0, "%s", error.message);
    cr_assert_eq(truncate(b.path, 4096), 0);
    cr_expect_eq(initial_weights_load(&b.state, graph_layout(b.graph), &file, &error), -1);
    cr_expect(strstr(error.message, b.path) && strstr(error.message, "no longer has"), "%s", error.message);
    safetensors_close(&file);
    close_bench(&b);
}

Test(weights, hugging_face_files_hold_turned_matrices)
{
    struct error error = ERROR_INIT;
    struct bench b = open_bench(&gpt, 1);
    struct safetensors_file file;
    write_out(&b, EXPORT_HUGGING_FACE_NAMES);
    cr_assert_eq(safetensors_open(b.path, &file, &error), 0);
    const struct safetensors_tensor *turned = safetensors_find(&file, "h.1.attn.c_attn.weight");
    cr_assert(turned && turned->shape[0] == 8 && turned->shape[1] == 24);
    const float *own = b.state.parameters + parameter_layout_find(&b.state.layout, "h1.attention.qkv.weight")->offset;
    cr_assert_eq(((const float *)turned->data)[3 * 24 + 17], own[17 * 8 + 3]);
    cr_assert(safetensors_find(&file, "wte.weight") && !safetensors_find(&file, "lm_head.weight"));
    safetensors_close(&file);
    close_bench(&b);
}

static const struct model_spec mlp = {.preset = PRESET_MLP};

static void refused(const struct model_spec *model, const char *path, enum error_kind kind, const char *words)
{
    struct error error = ERROR_INIT;
    struct bench b = open_bench(model, 3);
    cr_expect_eq(load(&b, path, &error), -1);
    cr_expect_eq(error.kind, kind, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
    close_bench(&b);
}

Test(weights, another_models_are_refused_with_an_explanation)
{
    struct bench b = open_bench(&gpt, 1);
    write_out(&b, EXPORT_HUGGING_FACE_NAMES);
    struct model_spec other = gpt;
    other.depth = 1;
    refused(&other, b.path, ERROR_INVALID, "nothing in the model takes its tensor h.1.");
    other.depth = 3;
    refused(&other, b.path, ERROR_INVALID, "no tensor for h2.");
    other = gpt;
    other.vocabulary = 12;
    refused(&other, b.path, ERROR_INVALID, "vocabulary");
    other = gpt;
    other.context = 7;
    refused(&other, b.path, ERROR_INVALID, "wpe.weight is 6 x 8");
    refused(&mlp, b.path, ERROR_INVALID, "it holds a GPT-2");
    float zero = 0;
    const struct safetensors_tensor llama = {"model.embed_tokens.weight", SAFETENSORS_F32, {1}, 1, &zero, sizeof zero};
    uint32_t crc;
    int64_t bytes;
    cr_assert_eq(safetensors_write(b.path, &llama, 1, NULL, DISK_FILE_CACHED, &crc, &bytes, NULL), 0);
    refused(&gpt, b.path, ERROR_UNSUPPORTED, "Llama");
    close_bench(&b);
}

/* A program exported from Hugging Face's classes has their names for its parameters. */
Test(weights, a_program_may_have_the_names_of_a_llama_or_gpt2)
{
    static const char *const names[] = {"model.embed_tokens.weight", "transformer.wte.weight", "wte.weight"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct error error = ERROR_INIT;
        struct bench from = open_bench(&mlp, 1), to = open_bench(&mlp, 2);
        struct parameter_tensor tensors[16];
        struct parameter_layout layout = *graph_layout(from.graph);
        cr_assert_leq(layout.tensor_count, sizeof tensors / sizeof *tensors);
        memcpy(tensors, layout.tensors, layout.tensor_count * sizeof *tensors);
        snprintf(tensors[0].name, sizeof tensors[0].name, "%s", names[i]);
        layout.tensors = tensors;
        from.state.layout = to.state.layout = layout;
        write_out(&from, EXPORT_OWN_NAMES);
        struct safetensors_file file;
        cr_assert_eq(safetensors_open(from.path, &file, &error), 0, "%s", error.message);
        cr_expect_eq(initial_weights_load(&to.state, &layout, &file, &error), 0, "%s", error.message);
        cr_expect(same_values(from.state.parameters, to.state.parameters, layout.elements), "%s", names[i]);
        safetensors_close(&file);
        close_bench(&from);
        close_bench(&to);
    }
}

Test(weights, that_are_no_numbers_are_refused)
{
    struct bench b = open_bench(&gpt, 1);
    b.state.parameters[parameter_layout_find(&b.state.layout, "h1.attention.qkv.weight")->offset + 5] = NAN;
    write_out(&b, EXPORT_OWN_NAMES);
    refused(&gpt, b.path, ERROR_INVALID, "tensor h1.attention.qkv.weight: value 5 is nan");
    close_bench(&b);
}

/* A checkpoint's own file has the optimizer's slots beside the weights. */
Test(weights, slots_are_left_out_unless_they_are_of_another_model)
{
    struct error error = ERROR_INIT;
    struct bench from = open_bench(&mlp, 1), to = open_bench(&mlp, 2);
    const struct parameter_layout *layout = &from.state.layout;
    struct safetensors_tensor tensors[32];
    uint32_t crc;
    int64_t bytes;
    for (unsigned i = 0; i < layout->tensor_count; i++) {
        const struct parameter_tensor *t = &layout->tensors[i];
        tensors[i] = (struct safetensors_tensor){t->name,
                                                 SAFETENSORS_F32,
                                                 {0},
                                                 t->rank,
                                                 from.state.parameters + t->offset,
                                                 (size_t)t->elements * sizeof(float)};
        memcpy(tensors[i].shape, t->shape, sizeof t->shape[0] * t->rank);
    }
    char slot[64];
    struct safetensors_tensor *last = &tensors[layout->tensor_count];
    *last = tensors[0];
    last->name = slot;
    snprintf(slot, sizeof slot, "adam.m/%s", tensors[0].name);
    cr_assert_eq(
        safetensors_write(from.path, tensors, layout->tensor_count + 1, NULL, DISK_FILE_CACHED, &crc, &bytes, NULL), 0);
    cr_assert_eq(load(&to, from.path, &error), 0, "%s", error.message);
    cr_assert(same_values(from.state.parameters, to.state.parameters, layout->elements));
    snprintf(slot, sizeof slot, "adam.m/another.weight");
    cr_assert_eq(
        safetensors_write(from.path, tensors, layout->tensor_count + 1, NULL, DISK_FILE_CACHED, &crc, &bytes, NULL), 0);
    refused(&mlp, from.path, ERROR_INVALID, "nothing in the model takes its tensor adam.m/another.weight");
    close_bench(&from);
    close_bench(&to);
}

Test(weights, a_shorter_context_takes_the_first_positions)
{
    struct error error = ERROR_INIT;
    struct bench b = open_bench(&gpt, 1);
    struct model_spec shorter = gpt;
    shorter.context = 4;
    struct bench s = open_bench(&shorter, 2);
    write_out(&b, EXPORT_HUGGING_FACE_NAMES);
    cr_assert_eq(load(&s, b.path, &error), 0, "%s", error.message);
    const float *all = b.state.parameters + parameter_layout_find(&b.state.layout, "embedding.position")->offset;
    const float *some = s.state.parameters + parameter_layout_find(&s.state.layout, "embedding.position")->offset;
    cr_assert(same_values(all, some, (int64_t)4 * 8));
    close_bench(&b);
    close_bench(&s);
}

/* The state of the process that has one of two stages. */
static void open_stage(const struct bench *whole, const struct model_spec *model,
                       const struct graph_partition *partition, unsigned stage, struct bench *ret_bench)
{
    const struct optimizer_spec sgd = {.type = OPTIMIZER_SGD};
    const bool held[2] = {stage == 0, stage == 1};
    struct graph_options options = {
        .device = whole->device, .model = model, .max_examples = 1, .partition = partition, .held = held, .slots = 1};
    while (partition->stage_of_part[options.part] != stage)
        options.part++;
    cr_assert_eq(graph_new(&options, &ret_bench->graph, NULL), 0);
    cr_assert_eq(training_state_init(&ret_bench->state, whole->device, graph_layout(ret_bench->graph), &sgd, 9, NULL),
                 0);
}

static void expect_rows_of(const struct bench *whole, const struct bench *stage, const struct parameter_tensor *tensor)
{
    const struct parameter_tensor *all = parameter_layout_find(&whole->state.layout, tensor->name);
    const float *rows = whole->state.parameters + all->offset + tensor->first_row * all->elements / all->shape[0];
    cr_expect(same_values(stage->state.parameters + tensor->offset, rows, tensor->elements), "%s from row %lld",
              tensor->name, (long long)tensor->first_row);
}

static void check_stage(const struct bench *whole, const struct model_spec *model,
                        const struct graph_partition *partition, unsigned stage)
{
    struct error error = ERROR_INIT;
    struct safetensors_file file;
    struct bench part = {0};
    open_stage(whole, model, partition, stage, &part);
    cr_assert_eq(safetensors_open(whole->path, &file, &error), 0);
    int result = initial_weights_load(&part.state, graph_layout(whole->graph), &file, &error);
    cr_expect_eq(result, 0, "%s", error.message);
    for (unsigned i = 0; i < part.state.layout.tensor_count; i++)
        expect_rows_of(whole, &part, &part.state.layout.tensors[i]);
    safetensors_close(&file);
    training_state_release(&part.state);
    graph_free(part.graph);
}

/* The first half of the layers on one device, the others on another; or `given`: as they say. */
static void check_stages(const struct model_spec *model, bool given, enum export_names names)
{
    struct bench whole = open_bench(model, 1);
    struct graph_partition partition;
    unsigned layers = graph_layer_count(whole.graph), *stage_of = calloc(layers, sizeof *stage_of);
    for (unsigned i = layers / 2; i < layers; i++)
        stage_of[i] = 1;
    int result = given ? partition_given(whole.graph, 2, &partition, NULL)
                       : partition_from_list(whole.graph, 2, stage_of, &partition, NULL);
    cr_assert_eq(result, 0);
    write_out(&whole, names);
    for (unsigned stage = 0; stage < 2; stage++)
        check_stage(&whole, model, &partition, stage);
    free(stage_of);
    partition_release(&partition);
    close_bench(&whole);
}

Test(weights, each_stage_takes_its_own_from_the_gathered_models)
{
    check_stages(&gpt, false, EXPORT_OWN_NAMES);
    check_stages(&gpt, false, EXPORT_HUGGING_FACE_NAMES);
}

Test(weights, slices_take_theirs_from_the_whole_layers)
{
    static struct layer_spec layers[2];
    for (unsigned i = 0; i < 2; i++)
        layers[i] = (struct layer_spec){.name = i ? "behind" : "large",
                                        .type = LAYER_DENSE,
                                        .units = i ? 3 : 7,
                                        .bias = true,
                                        .filters = FIELD_UNSET,
                                        .kernel = FIELD_UNSET,
                                        .stride = FIELD_UNSET,
                                        .padding = FIELD_UNSET,
                                        .size = FIELD_UNSET,
                                        .heads = FIELD_UNSET,
                                        .device = FIELD_UNSET,
                                        .devices = {0, 1},
                                        .device_count = i ? 0 : 2};
    const struct model_spec model = {
        .input_shape = {5}, .input_rank = 1, .layers = layers, .layer_count = 2, .loss = LOSS_MEAN_SQUARED_ERROR};
    check_stages(&model, true, EXPORT_OWN_NAMES);
}

Test(weights, half_precision_becomes_float32)
{
    static struct layer_spec dense = {.name = "d",
                                      .type = LAYER_DENSE,
                                      .units = 3,
                                      .filters = FIELD_UNSET,
                                      .kernel = FIELD_UNSET,
                                      .stride = FIELD_UNSET,
                                      .padding = FIELD_UNSET,
                                      .size = FIELD_UNSET,
                                      .heads = FIELD_UNSET};
    const struct model_spec model = {
        .input_shape = {2}, .input_rank = 1, .layers = &dense, .layer_count = 1, .loss = LOSS_MEAN_SQUARED_ERROR};
    struct bench b = open_bench(&model, 1);
    struct error error = ERROR_INIT;
    const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555},
                   brain[] = {0x3f80, 0xc000, 0, 0x4049, 0, 0};
    uint32_t crc;
    int64_t bytes;
    struct safetensors_tensor tensor = {"d.weight", SAFETENSORS_F16, {3, 2}, 2, half, sizeof half};
    cr_assert_eq(safetensors_write(b.path, &tensor, 1, NULL, DISK_FILE_CACHED, &crc, &bytes, NULL), 0);
    cr_assert_eq(load(&b, b.path, &error), 0, "%s", error.message);
    const float *w = b.state.parameters;
    cr_assert(w[0] == 1.0f && w[1] == -2.0f && w[2] == 1.0f / 16777216.0f && w[3] == 65504.0f && w[4] == 0.0f);
    cr_assert_float_eq(w[5], 1.0 / 3, 1e-4);
    tensor.dtype = SAFETENSORS_BF16;
    tensor.data = brain;
    cr_assert_eq(safetensors_write(b.path, &tensor, 1, NULL, DISK_FILE_CACHED, &crc, &bytes, NULL), 0);
    cr_assert_eq(load(&b, b.path, &error), 0, "%s", error.message);
    cr_assert(w[0] == 1.0f && w[1] == -2.0f && w[3] == 3.140625f);
    close_bench(&b);
}
