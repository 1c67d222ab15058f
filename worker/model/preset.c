/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/preset.h"

#include <stdarg.h>
#include <stdio.h>

#define LAYERS_MAX 4096

struct builder {
    struct arena *arena;
    struct layer_spec *layers;
    unsigned count;
};

static const char *name_of(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *name_of(struct arena *arena, const char *format, ...)
{
    char text[LAYER_NAME_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return arena_copy_string(arena, text);
}

/* A layer with every number unset; inputs default to the layer before. */
static struct layer_spec *append(struct builder *builder, const char *name, enum layer_type type)
{
    struct layer_spec *layer = &builder->layers[builder->count++];
    *layer = (struct layer_spec){
        .name = name,
        .type = type,
        .units = FIELD_UNSET,
        .filters = FIELD_UNSET,
        .kernel = FIELD_UNSET,
        .stride = FIELD_UNSET,
        .padding = FIELD_UNSET,
        .size = FIELD_UNSET,
        .heads = FIELD_UNSET,
        .bias = true,
        .device = FIELD_UNSET,
    };
    return layer;
}

static void dense(struct builder *builder, const char *name, int64_t units)
{
    append(builder, name, LAYER_DENSE)->units = units;
}

static void conv_block(struct builder *builder, int number, int64_t filters)
{
    struct layer_spec *conv = append(builder, name_of(builder->arena, "conv%d", number), LAYER_CONV2D);
    conv->filters = filters;
    conv->kernel = 3;
    append(builder, name_of(builder->arena, "relu%d", number), LAYER_RELU);
    append(builder, name_of(builder->arena, "pool%d", number), LAYER_MAX_POOL)->size = 2;
}

static int64_t given(int64_t value, int64_t otherwise)
{
    return value == FIELD_UNSET ? otherwise : value;
}

static void build_mlp(struct builder *builder, const struct model_spec *spec)
{
    int64_t depth = given(spec->depth, 1);
    append(builder, "flatten", LAYER_FLATTEN);
    for (int64_t i = 1; i <= depth; i++) {
        dense(builder, name_of(builder->arena, "dense%lld", (long long)i), given(spec->width, 512));
        append(builder, name_of(builder->arena, "relu%lld", (long long)i), LAYER_RELU);
    }
    dense(builder, "output", 10);
}

static void build_lenet(struct builder *builder, const struct model_spec *spec)
{
    (void)spec;
    conv_block(builder, 1, 32);
    conv_block(builder, 2, 64);
    append(builder, "flatten", LAYER_FLATTEN);
    dense(builder, "dense1", 128);
    append(builder, "relu3", LAYER_RELU);
    dense(builder, "output", 10);
}

/* x + f(x): `last` is the name of x, replaced by the sum's. */
static void add_to(struct builder *builder, const char *sum, const char **last, const char *branch)
{
    struct layer_spec *add = append(builder, sum, LAYER_ADD);
    add->inputs[0] = *last;
    add->inputs[1] = branch;
    add->input_count = 2;
    *last = sum;
}

static void build_block(struct builder *builder, int64_t number, int64_t width, int64_t heads, const char **last)
{
    struct arena *arena = builder->arena;
    long long h = (long long)number;
    const char *attended = name_of(arena, "h%lld.attention.output", h),
               *expanded = name_of(arena, "h%lld.mlp.output", h);
    append(builder, name_of(arena, "h%lld.norm1", h), LAYER_LAYER_NORM);
    dense(builder, name_of(arena, "h%lld.attention.qkv", h), 3 * width);
    append(builder, name_of(arena, "h%lld.attention", h), LAYER_ATTENTION)->heads = heads;
    dense(builder, attended, width);
    add_to(builder, name_of(arena, "h%lld.add1", h), last, attended);
    append(builder, name_of(arena, "h%lld.norm2", h), LAYER_LAYER_NORM);
    dense(builder, name_of(arena, "h%lld.mlp.input", h), 4 * width);
    append(builder, name_of(arena, "h%lld.mlp.gelu", h), LAYER_GELU);
    dense(builder, expanded, width);
    add_to(builder, name_of(arena, "h%lld.add2", h), last, expanded);
}

static void build_gpt(struct builder *builder, const struct model_spec *spec)
{
    int64_t width = given(spec->width, 128), depth = given(spec->depth, 4), heads = given(spec->heads, 4);
    const char *last = "embedding";
    struct layer_spec *embedding = append(builder, last, LAYER_EMBEDDING);
    embedding->size = 256;
    embedding->units = width;
    for (int64_t i = 0; i < depth; i++)
        build_block(builder, i, width, heads, &last);
    append(builder, "norm", LAYER_LAYER_NORM);
    struct layer_spec *output = append(builder, "output", LAYER_DENSE);
    output->units = 256;
    output->bias = false;
}

struct preset_model {
    void (*build)(struct builder *builder, const struct model_spec *spec);
    struct layer_shape input;
    int64_t layers_fixed, layers_per_depth, depth;
};

static const struct preset_model presets[] = {
    [PRESET_MLP] = {build_mlp, {{28, 28, 1}, 3, false}, 2, 2, 1},
    [PRESET_LENET] = {build_lenet, {{28, 28, 1}, 3, false}, 10, 0, 0},
    [PRESET_GPT_BYTES] = {build_gpt, {{256}, 1, true}, 3, 10, 4},
};

static int input_shape(const struct model_spec *spec, struct layer_shape *ret_shape, struct error *error)
{
    if (spec->input_rank < 1 || spec->input_rank > 3)
        return error_set(error, ERROR_INVALID, "model.inputShape: write H, W and C, or one length");
    *ret_shape = (struct layer_shape){.rank = spec->input_rank};
    for (unsigned i = 0; i < spec->input_rank; i++)
        ret_shape->dims[i] = spec->input_shape[i];
    for (unsigned i = 0; i < spec->input_rank; i++)
        if (spec->input_shape[i] < 1 || spec->input_shape[i] > 1 << 20)
            return error_set(error, ERROR_INVALID, "model.inputShape: %lld is outside 1..%d",
                             (long long)spec->input_shape[i], 1 << 20);
    return 0;
}

static int from_preset(const struct model_spec *spec, struct arena *arena, struct model_description *description,
                       struct error *error)
{
    const struct preset_model *preset = &presets[spec->preset];
    int64_t depth = given(spec->depth, preset->depth);
    int64_t count = preset->layers_fixed + preset->layers_per_depth * depth;
    if (depth < 0 || depth > LAYERS_MAX || count > LAYERS_MAX)
        return error_set(error, ERROR_INVALID, "model.depth: %lld gives more than %d layers", (long long)depth,
                         LAYERS_MAX);
    struct builder builder = {.arena = arena};
    builder.layers = arena_allocate(arena, (size_t)count, sizeof *builder.layers);
    preset->build(&builder, spec);
    *description = (struct model_description){.input = preset->input,
                                              .vocabulary = preset->input.integral ? 256 : 0,
                                              .layers = builder.layers,
                                              .layer_count = builder.count,
                                              .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
    if (preset->input.integral)
        description->input.dims[0] = given(spec->context, preset->input.dims[0]);
    else if (spec->input_rank > 0)
        return input_shape(spec, &description->input, error);
    return 0;
}

static int from_layers(const struct model_spec *spec, struct model_description *description, struct error *error)
{
    if (spec->layer_count < 1 || spec->layer_count > LAYERS_MAX)
        return error_set(error, ERROR_INVALID, "model: name a preset or list 1 to %d layers", LAYERS_MAX);
    *description = (struct model_description){.layers = spec->layers, .layer_count = spec->layer_count};
    description->loss = spec->loss;
    if (spec->layers[0].type == LAYER_EMBEDDING) {
        int64_t context = spec->input_rank > 0 ? spec->input_shape[0] : given(spec->context, 256);
        description->input = (struct layer_shape){{context}, 1, true};
        description->vocabulary = spec->layers[0].size;
        return 0;
    }
    return input_shape(spec, &description->input, error);
}

int model_description_from(const struct model_spec *spec, struct arena *arena,
                           struct model_description *ret_description, struct error *error)
{
    struct model_description description;
    int failed = spec->preset == PRESET_NONE ? from_layers(spec, &description, error)
                                             : from_preset(spec, arena, &description, error);
    if (failed)
        return -1;
    if (description.input.dims[0] < 1 || description.input.dims[0] > 1 << 20)
        return error_set(error, ERROR_INVALID, "model.context: %lld is outside 1..%d",
                         (long long)description.input.dims[0], 1 << 20);
    *ret_description = description;
    return 0;
}
