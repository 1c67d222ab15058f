/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/preset.h"

#include <stdarg.h>
#include <stdio.h>

#include "worker/model/split.h"

#define LAYERS_MAX 4096

struct builder {
    struct arena *arena;
    struct layer_spec *layers;
    unsigned count;
    enum batch_statistics statistics; /* of batch normalisations */
};

/* The sizes of a preset: its own, or the spec's. */
struct preset_sizes {
    int64_t width, depth, heads, vocabulary, classes;
    double dropout;
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
    return value < 1 ? otherwise : value; /* FIELD_UNSET, too */
}

static void build_mlp(struct builder *builder, const struct preset_sizes *sizes)
{
    append(builder, "flatten", LAYER_FLATTEN);
    for (int64_t i = 1; i <= sizes->depth; i++) {
        dense(builder, name_of(builder->arena, "dense%lld", (long long)i), sizes->width);
        append(builder, name_of(builder->arena, "relu%lld", (long long)i), LAYER_RELU);
    }
    dense(builder, "output", sizes->classes);
}

static void build_lenet(struct builder *builder, const struct preset_sizes *sizes)
{
    conv_block(builder, 1, 32);
    conv_block(builder, 2, 64);
    append(builder, "flatten", LAYER_FLATTEN);
    dense(builder, "dense1", 128);
    append(builder, "relu3", LAYER_RELU);
    dense(builder, "output", sizes->classes);
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

/* ---------------------------------------------------------------- residual networks */

struct convolution {
    int64_t filters, kernel, stride;
    const char *from; /* NULL: the layer before */
    bool rectified;
};

/* Adds <name>, a convolution without bias, <name>.norm, and maybe <name>.relu. Returns the name
 * of the last. */
static const char *normalised_conv(struct builder *builder, const char *name, const struct convolution *convolution)
{
    struct layer_spec *conv = append(builder, name, LAYER_CONV2D);
    conv->filters = convolution->filters;
    conv->kernel = convolution->kernel;
    conv->stride = convolution->stride;
    conv->padding = convolution->kernel / 2;
    conv->bias = false;
    conv->inputs[0] = convolution->from;
    conv->input_count = convolution->from != NULL;
    const char *norm = name_of(builder->arena, "%s.norm", name), *relu = name_of(builder->arena, "%s.relu", name);
    append(builder, norm, LAYER_BATCH_NORM)->statistics = builder->statistics;
    if (!convolution->rectified)
        return norm;
    append(builder, relu, LAYER_RELU);
    return relu;
}

static const char *block_part(struct builder *builder, const char *block, const char *part)
{
    return name_of(builder->arena, "%s.%s", block, part);
}

/* The sum of the branch and of what goes past it, rectified; `last` becomes its name. */
static void end_block(struct builder *builder, const char *block, const char *past, const char *branch,
                      const char **last)
{
    add_to(builder, block_part(builder, block, "add"), &past, branch);
    *last = block_part(builder, block, "relu");
    append(builder, *last, LAYER_RELU);
}

static void basic_block(struct builder *builder, const char *block, int64_t filters, int64_t stride, const char **last)
{
    const char *past = *last;
    normalised_conv(builder, block_part(builder, block, "conv1"),
                    &(struct convolution){filters, 3, stride, *last, true});
    const char *branch = normalised_conv(builder, block_part(builder, block, "conv2"),
                                         &(struct convolution){filters, 3, 1, NULL, false});
    if (stride > 1) {
        past = block_part(builder, block, "shortcut");
        struct layer_spec *shortcut = append(builder, past, LAYER_SHORTCUT);
        shortcut->filters = filters;
        shortcut->stride = stride;
        shortcut->inputs[0] = *last;
        shortcut->input_count = 1;
    }
    end_block(builder, block, past, branch, last);
}

static void bottleneck(struct builder *builder, const char *block, int64_t filters, int64_t stride, bool project,
                       const char **last)
{
    const char *past = *last;
    normalised_conv(builder, block_part(builder, block, "conv1"), &(struct convolution){filters, 1, 1, *last, true});
    normalised_conv(builder, block_part(builder, block, "conv2"),
                    &(struct convolution){filters, 3, stride, NULL, true});
    const char *branch = normalised_conv(builder, block_part(builder, block, "conv3"),
                                         &(struct convolution){4 * filters, 1, 1, NULL, false});
    if (project)
        past = normalised_conv(builder, block_part(builder, block, "projection"),
                               &(struct convolution){4 * filters, 1, stride, *last, false});
    end_block(builder, block, past, branch, last);
}

static void end_in_classes(struct builder *builder, int64_t classes)
{
    append(builder, "pool", LAYER_GLOBAL_AVERAGE_POOL);
    dense(builder, "output", classes);
}

static void build_resnet20(struct builder *builder, const struct preset_sizes *sizes)
{
    const char *last = normalised_conv(builder, "conv1", &(struct convolution){sizes->width, 3, 1, NULL, true});
    for (int group = 0; group < 3; group++)
        for (int64_t i = 0; i < sizes->depth; i++)
            basic_block(builder, name_of(builder->arena, "group%d.block%lld", group + 1, (long long)i + 1),
                        sizes->width << group, group > 0 && i == 0 ? 2 : 1, &last);
    end_in_classes(builder, sizes->classes);
}

static void build_resnet50(struct builder *builder, const struct preset_sizes *sizes)
{
    static const int blocks[] = {3, 4, 6, 3};
    normalised_conv(builder, "conv1", &(struct convolution){sizes->width, 7, 2, NULL, true});
    const char *last = "pool1";
    struct layer_spec *pool = append(builder, last, LAYER_MAX_POOL);
    pool->size = 3;
    pool->stride = 2;
    pool->padding = 1;
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < blocks[group]; i++)
            bottleneck(builder, name_of(builder->arena, "group%d.block%d", group + 1, i + 1), sizes->width << group,
                       group > 0 && i == 0 ? 2 : 1, i == 0, &last);
    end_in_classes(builder, sizes->classes);
}

/* ---------------------------------------------------------------- transformers */

/* Adds dropout to the branch, if there is any; returns the name of the branch's last layer. */
static const char *drop(struct builder *builder, const char *name, double rate)
{
    if (!(rate > 0))
        return name;
    const char *dropped = name_of(builder->arena, "%s.dropout", name);
    append(builder, dropped, LAYER_DROPOUT)->rate = rate;
    return dropped;
}

static void build_block(struct builder *builder, int64_t number, const struct preset_sizes *sizes, const char **last)
{
    struct arena *arena = builder->arena;
    long long h = (long long)number;
    const char *attended = name_of(arena, "h%lld.attention.output", h),
               *expanded = name_of(arena, "h%lld.mlp.output", h);
    append(builder, name_of(arena, "h%lld.norm1", h), LAYER_LAYER_NORM);
    dense(builder, name_of(arena, "h%lld.attention.qkv", h), 3 * sizes->width);
    append(builder, name_of(arena, "h%lld.attention", h), LAYER_ATTENTION)->heads = sizes->heads;
    dense(builder, attended, sizes->width);
    attended = drop(builder, attended, sizes->dropout);
    add_to(builder, name_of(arena, "h%lld.add1", h), last, attended);
    append(builder, name_of(arena, "h%lld.norm2", h), LAYER_LAYER_NORM);
    dense(builder, name_of(arena, "h%lld.mlp.input", h), 4 * sizes->width);
    append(builder, name_of(arena, "h%lld.mlp.gelu", h), LAYER_GELU);
    dense(builder, expanded, sizes->width);
    expanded = drop(builder, expanded, sizes->dropout);
    add_to(builder, name_of(arena, "h%lld.add2", h), last, expanded);
}

static void build_transformer(struct builder *builder, const struct preset_sizes *sizes, bool tied)
{
    const char *embedding_name = "embedding";
    struct layer_spec *embedding = append(builder, embedding_name, LAYER_EMBEDDING);
    embedding->size = sizes->vocabulary;
    embedding->units = sizes->width;
    const char *last = drop(builder, embedding_name, sizes->dropout);
    for (int64_t i = 0; i < sizes->depth; i++)
        build_block(builder, i, sizes, &last);
    append(builder, "norm", LAYER_LAYER_NORM);
    struct layer_spec *output = append(builder, "output", LAYER_DENSE);
    output->units = sizes->vocabulary;
    output->bias = false;
    output->weights_of = tied ? embedding_name : NULL;
}

static void build_gpt(struct builder *builder, const struct preset_sizes *sizes)
{
    build_transformer(builder, sizes, false);
}

static void build_gpt2(struct builder *builder, const struct preset_sizes *sizes)
{
    build_transformer(builder, sizes, true);
}

/* ---------------------------------------------------------------- the table */

struct preset_model {
    void (*build)(struct builder *builder, const struct preset_sizes *sizes);
    struct layer_shape input;
    int64_t layers_fixed, layers_per_depth;
    struct preset_sizes sizes;
};

#define IMAGES(h, c)                                                                                                   \
    {                                                                                                                  \
        {h, h, c}, 3, false                                                                                            \
    }
#define TOKENS(context)                                                                                                \
    {                                                                                                                  \
        {context}, 1, true                                                                                             \
    }
#define GPT2(width_, depth_, heads_)                                                                                   \
    {                                                                                                                  \
        build_gpt2, TOKENS(1024), 4, 12,                                                                               \
        {                                                                                                              \
            .width = (width_), .depth = (depth_), .heads = (heads_), .vocabulary = 50257                               \
        }                                                                                                              \
    }

static const struct preset_model presets[] = {
    [PRESET_MLP] = {build_mlp, IMAGES(28, 1), 2, 2, {.width = 512, .depth = 1, .classes = 10}},
    [PRESET_LENET] = {build_lenet, IMAGES(28, 1), 10, 0, {.classes = 10}},
    [PRESET_RESNET20] = {build_resnet20, IMAGES(32, 3), 7, 21, {.width = 16, .depth = 3, .classes = 10}},
    [PRESET_RESNET50] = {build_resnet50, IMAGES(224, 3), 180, 0, {.width = 64, .classes = 1000}},
    [PRESET_GPT_BYTES] = {build_gpt, TOKENS(256), 4, 12, {.width = 128, .depth = 4, .heads = 4, .vocabulary = 256}},
    [PRESET_GPT2_124M] = GPT2(768, 12, 12),
    [PRESET_GPT2_355M] = GPT2(1024, 24, 16),
    [PRESET_GPT2_774M] = GPT2(1280, 36, 20),
    [PRESET_GPT2_1558M] = GPT2(1600, 48, 25),
};

static struct preset_sizes sizes_of(const struct preset_model *preset, const struct model_spec *spec)
{
    const struct preset_sizes *own = &preset->sizes;
    return (struct preset_sizes){
        .width = given(spec->width, own->width),
        .depth = given(spec->depth, own->depth),
        .heads = given(spec->heads, own->heads),
        .vocabulary = given(spec->vocabulary, own->vocabulary),
        .classes = given(spec->classes, own->classes),
        .dropout = spec->dropout > 0 ? spec->dropout : 0,
    };
}

static int64_t context_of(const struct preset_model *preset, const struct model_spec *spec)
{
    return given(spec->context, preset->input.dims[0]);
}

bool preset_gpt_sizes(const struct model_spec *spec, struct gpt_sizes *ret_sizes)
{
    const struct preset_model *preset = &presets[spec->preset];
    if (spec->preset == PRESET_NONE || !preset->input.integral)
        return false;
    const struct preset_sizes sizes = sizes_of(preset, spec);
    *ret_sizes = (struct gpt_sizes){.vocabulary = sizes.vocabulary,
                                    .context = context_of(preset, spec),
                                    .width = sizes.width,
                                    .depth = sizes.depth,
                                    .heads = sizes.heads,
                                    .dropout = sizes.dropout,
                                    .tied = preset->build == build_gpt2};
    return true;
}

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
    struct preset_sizes sizes = sizes_of(preset, spec);
    if (sizes.depth > LAYERS_MAX || preset->layers_fixed + preset->layers_per_depth * sizes.depth > LAYERS_MAX)
        return error_set(error, ERROR_INVALID, "model.depth: %lld gives more than %d layers", (long long)sizes.depth,
                         LAYERS_MAX);
    struct builder builder = {.arena = arena, .statistics = spec->statistics};
    size_t most = (size_t)(preset->layers_fixed + preset->layers_per_depth * sizes.depth);
    builder.layers = arena_allocate(arena, most, sizeof *builder.layers);
    preset->build(&builder, &sizes);
    *description = (struct model_description){.input = preset->input,
                                              .vocabulary = sizes.vocabulary,
                                              .layers = builder.layers,
                                              .layer_count = builder.count,
                                              .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
    if (preset->input.integral)
        description->input.dims[0] = context_of(preset, spec);
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
    if (model_split_layers(arena, &description, error) < 0)
        return -1;
    *ret_description = description;
    return 0;
}
