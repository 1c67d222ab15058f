/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/split.h"

#include <stdio.h>

#define NAME_MAX_BYTES (LAYER_NAME_MAX + 16)

struct splitting {
    struct arena *arena;
    struct layer_spec *layers;
    struct layer_slice *slices;
    unsigned count;
    int64_t device; /* where a layer without one would be */
};

/* As graph_layers.c names it, by its place in the list that was given. */
static const char *name_of(const struct splitting *splitting, const struct layer_spec *spec, unsigned place)
{
    if (spec->name)
        return spec->name;
    char *name = arena_allocate(splitting->arena, NAME_MAX_BYTES, 1);
    snprintf(name, NAME_MAX_BYTES, "%s%u", layer_default_name(spec->type), place);
    return name;
}

static struct layer_spec *append(struct splitting *splitting, const struct layer_spec *spec, struct layer_slice slice)
{
    splitting->slices[splitting->count] = slice;
    splitting->layers[splitting->count] = *spec;
    return &splitting->layers[splitting->count++];
}

static void append_slice(struct splitting *splitting, const struct layer_spec *spec, const char *name,
                         struct layer_slice slice)
{
    char *own = arena_allocate(splitting->arena, NAME_MAX_BYTES, 1);
    slice.first = slice.whole * slice.index / slice.count;
    slice.rows = slice.whole * (slice.index + 1) / slice.count - slice.first;
    struct layer_spec *layer = append(splitting, spec, slice);
    snprintf(own, NAME_MAX_BYTES, "%s#%u", name, slice.index);
    layer->name = own;
    layer->units = slice.rows;
    layer->device = spec->devices[slice.index];
    layer->device_count = 0;
}

static int split(struct splitting *splitting, const struct layer_spec *spec, unsigned place, struct error *error)
{
    const char *name = name_of(splitting, spec, place);
    if (spec->type != LAYER_DENSE || spec->weights_of)
        return error_set(error, ERROR_INVALID,
                         "model.layers[%u] (%s): only a dense layer with weights of its own can be "
                         "split over devices; leave devices out",
                         place, name);
    if (spec->units < spec->device_count)
        return error_set(error, ERROR_INVALID,
                         "model.layers[%u] (%s): units must be given, and at least one for each of "
                         "its devices",
                         place, name);
    for (unsigned k = 0; k < spec->device_count; k++)
        append_slice(
            splitting, spec, name,
            (struct layer_slice){.place = place, .count = spec->device_count, .index = k, .whole = spec->units});
    const struct layer_spec *slices = &splitting->layers[splitting->count - spec->device_count];
    struct layer_spec *whole = append(splitting, spec, (struct layer_slice){.place = place});
    whole->type = LAYER_CONCAT;
    whole->name = name;
    whole->device = splitting->device;
    whole->input_count = spec->device_count;
    whole->device_count = 0;
    for (unsigned k = 0; k < spec->device_count; k++)
        whole->inputs[k] = slices[k].name;
    return 0;
}

int model_split_layers(struct arena *arena, struct model_description *description, struct error *error)
{
    unsigned count = description->layer_count;
    for (unsigned i = 0; i < description->layer_count; i++)
        count += description->layers[i].device_count;
    if (count == description->layer_count)
        return 0;
    struct splitting splitting = {.arena = arena,
                                  .layers = arena_allocate(arena, count, sizeof *splitting.layers),
                                  .slices = arena_allocate(arena, count, sizeof *splitting.slices)};
    for (unsigned i = 0; i < description->layer_count; i++) {
        const struct layer_spec *spec = &description->layers[i];
        splitting.device = spec->device == FIELD_UNSET ? splitting.device : spec->device;
        if (spec->device_count > 0) {
            if (split(&splitting, spec, i, error) < 0)
                return -1;
            continue;
        }
        struct layer_spec *layer = append(&splitting, spec, (struct layer_slice){.place = i});
        layer->name = name_of(&splitting, spec, i);
        layer->device = splitting.device;
    }
    description->layers = splitting.layers;
    description->slices = splitting.slices;
    description->layer_count = splitting.count;
    return 0;
}
