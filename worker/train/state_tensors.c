/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/state_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/pieces.h"

/* Adds a tensor. If it is split over processes, each saves its own rows; a reader looks for the rows in the whole tensor. */
static void add_tensor(struct state_tensors *tensors, const struct parameter_tensor *parameter, const char *slot,
                       const float *flat)
{
    unsigned i = tensors->count++;
    bool split = parameter->whole_rows > parameter->shape[0];
    int length = snprintf(tensors->names[i], STATE_TENSOR_NAME_MAX, "%s%s%s", slot ? slot : "", slot ? "/" : "",
                          parameter->name);
    if (split && !tensors->reads)
        snprintf(tensors->names[i] + length, (size_t)(STATE_TENSOR_NAME_MAX - length), "#%lld",
                 (long long)parameter->first_row);
    tensors->parameters[i] = parameter;
    struct safetensors_tensor *tensor = &tensors->tensors[i];
    tensor->name = tensors->names[i];
    tensor->dtype = SAFETENSORS_F32;
    tensor->rank = parameter->rank;
    memcpy(tensor->shape, parameter->shape, parameter->rank * sizeof parameter->shape[0]);
    tensor->data = flat + parameter->offset;
    tensor->bytes = (size_t)parameter->elements * sizeof *flat;
}

/* The part of a parameter that a stripe holds, in elements; of none when they have nothing in common. */
struct overlap {
    int64_t first, elements;
};

static struct overlap overlap_of(const struct parameter_tensor *parameter, const struct shard_stripe *stripe)
{
    int64_t first = stripe->first > parameter->offset ? stripe->first : parameter->offset;
    int64_t end = parameter->offset + parameter->elements, stripe_end = stripe->first + stripe->elements;
    end = stripe_end < end ? stripe_end : end;
    return (struct overlap){first - parameter->offset, end > first ? end - first : 0};
}

static void add_piece(struct state_tensors *tensors, const struct parameter_tensor *parameter, const char *slot,
                      struct overlap part, const float *data)
{
    char whole[STATE_TENSOR_NAME_MAX];
    struct safetensors_tensor *tensor = &tensors->tensors[tensors->count];
    snprintf(whole, sizeof whole, "%s/%s", slot, parameter->name);
    piece_name_flat(whole, part.first, tensors->names[tensors->count]);
    *tensor = (struct safetensors_tensor){.name = tensors->names[tensors->count++],
                                          .dtype = SAFETENSORS_F32,
                                          .rank = 1,
                                          .shape = {part.elements},
                                          .data = data,
                                          .bytes = (size_t)part.elements * sizeof *data};
}

/* This rank's own shard. */
static void add_shard(struct state_tensors *tensors, const struct training_state *state, unsigned slot)
{
    for (int64_t i = 0; i < shard_stripes(&state->shards, state->shard_rank); i++) {
        struct shard_stripe stripe = shard_stripe(&state->shards, state->shard_rank, i);
        for (unsigned t = 0; t < state->layout.tensor_count; t++) {
            const struct parameter_tensor *parameter = &state->layout.tensors[t];
            struct overlap part = overlap_of(parameter, &stripe);
            const float *data = state->host.slots[slot] + stripe.slot + parameter->offset + part.first - stripe.first;
            if (part.elements > 0)
                add_piece(tensors, parameter, state->slot_names[slot], part, data);
        }
    }
}

static void add_slot(struct state_tensors *tensors, const struct training_state *state, unsigned slot, bool reads)
{
    const struct parameter_layout *layout = &state->layout;
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (layout->tensors[i].offset >= layout->statistics && /* running statistics have no slots */
            (reads || !layout->tensors[i].copy))
            add_tensor(tensors, &layout->tensors[i], state->slot_names[slot], state->host.slots[slot]);
}

/* Each slot has every tensor once, and once more for each stripe, which has two ends. */
static size_t most_tensors(const struct training_state *state)
{
    size_t stripes = state->shards.size ? (size_t)shard_stripes(&state->shards, state->shard_rank) : 0;
    return state->layout.tensor_count * (1 + (size_t)state->slot_count) + 2 * stripes * state->slot_count;
}

static void list_tensors(struct state_tensors *tensors, const struct training_state *state, bool reads)
{
    const struct parameter_layout *layout = &state->layout;
    size_t total = most_tensors(state);
    *tensors = (struct state_tensors){
        .tensors = memory_allocate(total, sizeof *tensors->tensors),
        .names = memory_allocate(total, sizeof *tensors->names),
        .parameters = memory_allocate(total, sizeof(struct parameter_tensor *)),
        .reads = reads,
    };
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (reads || !layout->tensors[i].copy)
            add_tensor(tensors, &layout->tensors[i], NULL, state->host.parameters);
    tensors->parameter_count = tensors->required_count = tensors->count;
    tensors->shared_count = state->shards.size > 0 ? tensors->count : 0;
    for (unsigned slot = 0; slot < state->slot_count; slot++) {
        if (state->shards.size > 0)
            add_shard(tensors, state, slot);
        else
            add_slot(tensors, state, slot, reads);
        if (slot < state->optimizer_slots && state->shards.size == 0)
            tensors->required_count = tensors->count;
    }
}

void state_tensors_init(struct state_tensors *tensors, const struct training_state *state)
{
    list_tensors(tensors, state, false);
}

void state_tensors_release(struct state_tensors *tensors)
{
    free(tensors->tensors);
    free(tensors->names);
    free(tensors->parameters);
    *tensors = (struct state_tensors){0};
}

/* Both have dtype F32 in memory; the file's must too. */
static int check_match(const struct safetensors_tensor *wanted, const struct safetensors_tensor *found,
                       struct error *error)
{
    if (found == NULL)
        return error_set(error, ERROR_INVALID, "tensor %s is missing; the model or the optimizer has changed",
                         wanted->name);
    if (found->dtype != wanted->dtype || found->rank != wanted->rank ||
        memcmp(found->shape, wanted->shape, wanted->rank * sizeof wanted->shape[0]) != 0)
        return error_set(error, ERROR_INVALID, "tensor %s has another shape or type; the model has changed",
                         wanted->name);
    return 0;
}

static void copy_data(const struct safetensors_tensor *to, const struct safetensors_tensor *from)
{
    memcpy((void *)to->data, from->data, to->bytes);
}

/* Checks all tensors before the first is copied; the file may have them in pieces. */
static int fill_from_image(const struct state_tensors *tensors, const struct checkpoint_image *image,
                           struct error *error)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < tensors->required_count; i++) {
            struct safetensors_tensor wanted = tensors->tensors[i];
            const struct parameter_tensor *parameter = tensors->parameters[i];
            wanted.shape[0] = parameter->whole_rows;
            if (checkpoint_read_rows(image, &wanted, parameter->first_row, parameter->shape[0],
                                     pass ? (float *)wanted.data : NULL, error) < 0)
                return -1;
        }
    return 0;
}

/* Fills the tensors that a checkpoint may lack. */
static void fill_optional(const struct state_tensors *tensors, const struct checkpoint_image *image)
{
    for (unsigned i = tensors->required_count; i < tensors->count; i++) {
        const struct safetensors_tensor *found = checkpoint_image_find(image, tensors->names[i]);
        if (check_match(&tensors->tensors[i], found, NULL) == 0)
            copy_data(&tensors->tensors[i], found);
        else
            memset((void *)tensors->tensors[i].data, 0, tensors->tensors[i].bytes);
    }
}

/* `at`: where the shard of `owner` begins in each slot. */
static int fill_shard(const struct training_state *state, const struct checkpoint_image *image, unsigned slot,
                      unsigned owner, int64_t at, bool copies, struct error *error)
{
    for (unsigned t = 0; t < state->layout.tensor_count; t++) {
        const struct parameter_tensor *parameter = &state->layout.tensors[t];
        char name[STATE_TENSOR_NAME_MAX];
        int64_t from = 0;
        struct safetensors_tensor wanted = {.name = name, .dtype = SAFETENSORS_F32, .rank = parameter->rank};
        snprintf(name, sizeof name, "%s/%s", state->slot_names[slot], parameter->name);
        memcpy(wanted.shape, parameter->shape, parameter->rank * sizeof parameter->shape[0]);
        for (int64_t i = 0; i < shard_stripes(&state->shards, owner); i++) {
            struct shard_stripe stripe = shard_stripe(&state->shards, owner, i);
            struct overlap part = overlap_of(parameter, &stripe);
            float *to = state->host.slots[slot] + at + stripe.slot + parameter->offset + part.first - stripe.first;
            if (part.elements > 0 && checkpoint_read_elements(image, &wanted, part.first, part.elements, &from,
                                                              copies ? to : NULL, error) < 0)
                return -1;
        }
    }
    return 0;
}

/* The shards that are kept here; all is looked at before anything is copied. */
static int fill_shards(const struct training_state *state, const struct checkpoint_image *image, bool copies,
                       struct error *error)
{
    struct shard_kept kept[SHARDS_KEPT_MAX];
    unsigned count = state->shards.size > 0 ? shard_kept(&state->shards, state->shard_rank, kept) : 0;
    for (unsigned slot = 0; slot < state->slot_count; slot++)
        for (unsigned k = 0; k < count; k++)
            if (fill_shard(state, image, slot, kept[k].owner, kept[k].slot, copies, error) < 0)
                return -1;
    return 0;
}

int state_tensors_restore(struct training_state *state, const struct checkpoint_image *image, struct error *error)
{
    struct state_tensors tensors;
    list_tensors(&tensors, state, true);
    int result = fill_shards(state, image, false, error);
    if (result == 0)
        result = fill_from_image(&tensors, image, error);
    if (result == 0)
        result = fill_shards(state, image, true, error);
    if (result == 0 && state->shards.size == 0)
        fill_optional(&tensors, image);
    state_tensors_release(&tensors);
    if (result < 0 || checkpoint_image_check(image, error) < 0 || training_state_to_device(state, error) < 0)
        return -1;
    state->progress = (struct training_progress){
        .step = image->manifest.step,
        .data_epoch = image->manifest.data_epoch,
        .examples_consumed = image->manifest.examples_consumed,
        .seed = state->progress.seed, /* the job's, which what is drawn from here on follows */
        .scaling = {image->manifest.loss_scale, image->manifest.good_steps, image->manifest.skipped_steps},
    };
    return 0;
}
