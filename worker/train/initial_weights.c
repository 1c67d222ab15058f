/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/initial_weights.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/finite_values.h"
#include "worker/train/tensor_names.h"

enum family { FAMILY_OWN, FAMILY_GPT2 };

/* Where one of our tensors comes from. */
struct origin {
    const struct safetensors_tensor *tensor;
    bool transposed;
};

struct loading {
    const struct parameter_layout
        *model; /* the whole model, with which the file is compared, even if the state has only a part of it */
    struct training_state *state;
    const struct safetensors_file *file;
    enum family family;
    const char *prefix;     /* of every name in the file */
    struct origin *origins; /* of the model's tensors */
};

static bool has(const struct safetensors_file *file, const char *name)
{
    return safetensors_find(file, name) != NULL;
}

/* Finds whose names the file has. A program's parameters may themselves have the names of a Llama or of GPT-2: then they are the model's
 * own. */
static int recognise(struct loading *loading, struct error *error)
{
    const struct safetensors_file *file = loading->file;
    const struct parameter_layout *model = loading->model;
    bool embeds = parameter_layout_find(model, "embedding.weight") != NULL;
    loading->prefix = "";
    loading->family = FAMILY_OWN;
    if (model->tensor_count > 0 && has(file, model->tensors[0].name))
        return 0;
    if (has(file, "transformer.wte.weight"))
        loading->prefix = "transformer.";
    if (has(file, "model.embed_tokens.weight"))
        return error_set(error, ERROR_UNSUPPORTED,
                         "it holds a model of the Llama family, whose layers (RMSNorm, rotary positions, SwiGLU) this "
                         "worker does not have; GPT-2's can be loaded");
    loading->family = has(file, "wte.weight") || *loading->prefix ? FAMILY_GPT2 : FAMILY_OWN;
    if (loading->family == FAMILY_GPT2 && !embeds)
        return error_set(error, ERROR_INVALID,
                         "it holds a GPT-2 model, but this job trains another; take a preset gpt2-…");
    return 0;
}

static const struct safetensors_tensor *find_foreign(const struct loading *loading, const char *name)
{
    char full[2 * FOREIGN_NAME_MAX];
    /* The output's weight stands beside the transformer, not in it. */
    snprintf(full, sizeof full, "%s%s", strncmp(name, "lm_head.", 8) == 0 ? "" : loading->prefix, name);
    return safetensors_find(loading->file, full);
}

static struct origin find_origin(const struct loading *loading, const struct parameter_tensor *tensor)
{
    char foreign[FOREIGN_NAME_MAX];
    struct origin origin = {NULL, false};
    if (loading->family == FAMILY_OWN)
        origin.tensor = safetensors_find(loading->file, tensor->name);
    else if (tensor_name_of_gpt2(tensor->name, foreign, &origin.transposed))
        origin.tensor = find_foreign(loading, foreign);
    return origin;
}

static bool shape_fits(const struct parameter_tensor *wanted, const struct origin *origin)
{
    const struct safetensors_tensor *found = origin->tensor;
    if (found->rank != wanted->rank)
        return false;
    if (origin->transposed)
        return found->shape[0] == wanted->shape[1] && found->shape[1] == wanted->shape[0];
    /* Later positions than the context has are left out. */
    bool positions = strcmp(wanted->name, "embedding.position") == 0;
    for (unsigned i = 0; i < wanted->rank; i++)
        if (found->shape[i] != wanted->shape[i] && !(positions && i == 0 && found->shape[0] > wanted->shape[0]))
            return false;
    return true;
}

static void print_shape(const int64_t *shape, unsigned rank, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < rank && length + 24 < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%lld", i ? " x " : "", (long long)shape[i]);
}

static int check_origin(const struct parameter_tensor *wanted, const struct origin *origin, struct error *error)
{
    if (!origin->tensor)
        return error_set(error, ERROR_INVALID, "it has no tensor for %s; is it of another model or depth?",
                         wanted->name);
    enum safetensors_dtype dtype = origin->tensor->dtype;
    if (dtype != SAFETENSORS_F32 && dtype != SAFETENSORS_F16 && dtype != SAFETENSORS_BF16)
        return error_set(error, ERROR_INVALID, "tensor %s is not of type F32, F16 or BF16", origin->tensor->name);
    if (shape_fits(wanted, origin))
        return 0;
    char found[128], needed[128];
    print_shape(origin->tensor->shape, origin->tensor->rank, found, sizeof found);
    print_shape(wanted->shape, wanted->rank, needed, sizeof needed);
    return error_set(
        error, ERROR_INVALID,
        "tensor %s is %s, but %s%s is %s; set the model's width, depth, context or vocabulary as the file has "
        "them",
        origin->tensor->name, found, wanted->name, origin->transposed ? " (turned)" : "", needed);
}

static bool is_used(const struct loading *loading, const struct safetensors_tensor *tensor)
{
    for (unsigned i = 0; i < loading->model->tensor_count; i++)
        if (loading->origins[i].tensor == tensor)
            return true;
    return false;
}

/* Returns whether a tensor of a checkpoint's file is one of the optimizer's, not a weight: "adam.m/conv1.weight", or a part of it, "…@0". */
static bool is_slot(const struct loading *loading, const char *name)
{
    const char *slash = strchr(name, '/');
    if (slash == NULL)
        return false;
    SCOPED_FREE char *of = memory_copy_bytes(slash + 1, strcspn(slash + 1, "@"));
    return parameter_layout_find(loading->model, of) != NULL;
}

/* A deeper model's file has all tensors that a shallower one needs, so tensors that are left over are an error. */
static int check_rest(const struct loading *loading, struct error *error)
{
    bool tied = parameter_layout_find(loading->model, "output.weight") == NULL;
    for (unsigned i = 0; i < loading->file->count; i++) {
        const struct safetensors_tensor *tensor = &loading->file->tensors[i];
        if (is_used(loading, tensor) || (loading->family == FAMILY_OWN && is_slot(loading, tensor->name)) ||
            (loading->family == FAMILY_GPT2 && tensor_name_is_no_weight(tensor->name, tied)))
            continue;
        return error_set(error, ERROR_INVALID,
                         "nothing in the model takes its tensor %s; is it of another model or depth?", tensor->name);
    }
    return 0;
}

static float value_at(const struct safetensors_tensor *tensor, int64_t index)
{
    float value = 0;
    uint16_t half;
    if (tensor->dtype == SAFETENSORS_F32) {
        memcpy(&value, (const char *)tensor->data + 4 * index, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)tensor->data + 2 * index, sizeof half);
    half = le16toh(half);
    if (tensor->dtype == SAFETENSORS_BF16) {
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0) /* zero and subnormals: fraction * 2^-24 */
        value = (float)fraction / 16777216.0f;
    else {
        uint32_t bits = (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
        memcpy(&value, &bits, sizeof value);
    }
    return half >> 15 ? -value : value;
}

static int64_t columns_of(const struct parameter_tensor *wanted)
{
    return wanted->rank == 2 ? wanted->shape[1] : 1;
}

/* A slice takes its rows of the whole tensor. */
static void copy_row(const struct parameter_tensor *wanted, const struct origin *origin, int64_t r, float *to)
{
    int64_t columns = columns_of(wanted), row = wanted->first_row + r;
    for (int64_t c = 0; c < columns; c++)
        to[c] = value_at(origin->tensor, origin->transposed ? c * wanted->whole_rows + row : row * columns + c);
}

static void copy_values(const struct parameter_tensor *wanted, const struct origin *origin, float *to)
{
    int64_t columns = columns_of(wanted), rows = wanted->elements / columns;
    for (int64_t r = 0; r < rows; r++)
        copy_row(wanted, origin, r, to + r * columns);
}

static int check_values(const struct parameter_tensor *wanted, const struct origin *origin, struct error *error)
{
    int64_t columns = columns_of(wanted), rows = wanted->elements / columns;
    SCOPED_FREE float *row = memory_allocate((size_t)columns, sizeof *row);
    for (int64_t r = 0; r < rows; r++) {
        copy_row(wanted, origin, r, row);
        if (finite_values_check(row, r * columns, columns, error) < 0)
            return error_wrap(error, "tensor %s", origin->tensor->name);
    }
    return 0;
}

static int find_all(struct loading *loading, struct error *error)
{
    const struct parameter_layout *model = loading->model;
    for (unsigned i = 0; i < model->tensor_count; i++) {
        loading->origins[i] = find_origin(loading, &model->tensors[i]);
        if (check_origin(&model->tensors[i], &loading->origins[i], error) < 0)
            return -1;
    }
    return check_rest(loading, error);
}

static const struct origin *origin_of(const struct loading *loading, const struct parameter_tensor *tensor)
{
    return &loading->origins[parameter_layout_find(loading->model, tensor->name) - loading->model->tensors];
}

static int load(struct loading *loading, struct error *error)
{
    const struct parameter_layout *held = &loading->state->layout;
    if (recognise(loading, error) < 0 || find_all(loading, error) < 0)
        return -1;
    for (unsigned i = 0; i < held->tensor_count; i++)
        if (check_values(&held->tensors[i], origin_of(loading, &held->tensors[i]), error) < 0)
            return -1;
    for (unsigned i = 0; i < held->tensor_count; i++) {
        const struct parameter_tensor *tensor = &held->tensors[i];
        copy_values(tensor, origin_of(loading, tensor), loading->state->host.parameters + tensor->offset);
    }
    if (safetensors_check(loading->file, error) < 0)
        return -1;
    return training_state_to_device(loading->state, error);
}

int initial_weights_load(struct training_state *state, const struct parameter_layout *model,
                         const struct safetensors_file *file, struct error *error)
{
    struct loading loading = {.model = model, .state = state, .file = file};
    loading.origins = memory_allocate(model->tensor_count, sizeof *loading.origins);
    int result = load(&loading, error);
    free(loading.origins);
    return result;
}

int initial_weights_compute(struct training_state *state, struct program *program, struct error *error)
{
    float *values = state->host.parameters;
    if (program_initialise(program, (uint64_t)state->progress.seed, values, error) < 0)
        return -1;
    for (unsigned i = 0; i < state->layout.tensor_count; i++) {
        const struct parameter_tensor *tensor = &state->layout.tensors[i];
        if (finite_values_check(values + tensor->offset, 0, tensor->elements, error) < 0)
            return error_wrap(error, "program initialise: %s", tensor->name);
    }
    return training_state_to_device(state, error);
}
