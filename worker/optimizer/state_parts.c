/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/state_parts.h"

#include "common/memory.h"

struct state_parts {
    struct parameter_layout whole;
    struct state_part *parts;
    struct device_stream **copies; /* by part: its stream for copies */
    unsigned count, slots;
};

/* ---------------------------------------------------------------- copies */

/* Returns whether an earlier part has the tensor too; the host copies it from the first that has
 * it. */
static bool is_read_before(const struct state_parts *parts, unsigned part, const struct parameter_tensor *tensor)
{
    for (unsigned p = 0; p < part; p++)
        if (parameter_layout_place(parts->parts[p].layout, tensor) >= 0)
            return true;
    return false;
}

static void copy_array(struct state_parts *parts, unsigned part, float *array, float *host, bool to_host)
{
    const struct parameter_layout *layout = parts->parts[part].layout;
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        float *here = array + tensor->offset, *there = host + parameter_layout_place(&parts->whole, tensor);
        if (!to_host || !is_read_before(parts, part, tensor))
            device_copy(parts->copies[part], &(struct copy){.bytes = tensor->elements * (int64_t)sizeof(float),
                                                            .from = to_host ? here : there,
                                                            .to = to_host ? there : here});
    }
}

static int copy_all(struct state_parts *parts, float *parameters, float *const *slots, bool to_host,
                    struct error *error)
{
    int result = 0;
    for (unsigned part = 0; part < parts->count; part++) {
        copy_array(parts, part, parts->parts[part].parameters, parameters, to_host);
        for (unsigned s = 0; slots != NULL && s < parts->slots; s++)
            copy_array(parts, part, parts->parts[part].slots[s], slots[s], to_host);
    }
    for (unsigned part = 0; part < parts->count; part++)
        if (device_stream_synchronise(parts->copies[part], result == 0 ? error : NULL) < 0)
            result = -1;
    return result;
}

int state_parts_to_host(struct state_parts *parts, float *parameters, float *const *slots, struct error *error)
{
    return copy_all(parts, parameters, slots, true, error);
}

int state_parts_to_devices(struct state_parts *parts, float *parameters, float *const *slots, struct error *error)
{
    return copy_all(parts, parameters, slots, false, error);
}

/* ---------------------------------------------------------------- life cycle */

const struct state_part *state_parts_at(const struct state_parts *parts, unsigned part)
{
    return &parts->parts[part];
}

static int allocate_array(const struct state_part *part, float **ret_array, struct error *error)
{
    void *memory;
    size_t bytes = (size_t)part->layout->elements * sizeof(float);
    if (device_allocate(part->device, MEMORY_DEVICE, bytes, &memory, error) < 0)
        return -1;
    *ret_array = memory;
    return 0;
}

static int open_part(struct state_parts *parts, unsigned number, struct error *error)
{
    struct state_part *part = &parts->parts[number];
    if (device_stream_new(part->device, &parts->copies[number], error) < 0 ||
        allocate_array(part, &part->parameters, error) < 0)
        return error_wrap(error, "parameters on device %u", number);
    for (unsigned s = 0; s < parts->slots; s++)
        if (allocate_array(part, &part->slots[s], error) < 0)
            return error_wrap(error, "optimizer slots on device %u", number);
    return 0;
}

int state_parts_new(const struct state_part *wanted, unsigned count, const struct parameter_layout *whole,
                    unsigned slots, struct state_parts **ret_parts, struct error *error)
{
    struct state_parts *parts = memory_allocate(1, sizeof *parts);
    *parts = (struct state_parts){.whole = *whole, .count = count, .slots = slots};
    parts->parts = memory_allocate(count, sizeof *parts->parts);
    parts->copies = memory_allocate(count, sizeof(struct device_stream *));
    for (unsigned p = 0; p < count; p++)
        parts->parts[p] = (struct state_part){.device = wanted[p].device, .layout = wanted[p].layout};
    for (unsigned p = 0; p < count; p++)
        if (open_part(parts, p, error) < 0) {
            state_parts_free(parts);
            return -1;
        }
    *ret_parts = parts;
    return 0;
}

void state_parts_free(struct state_parts *parts)
{
    if (parts == NULL)
        return;
    for (unsigned p = 0; p < parts->count; p++) {
        struct state_part *part = &parts->parts[p];
        device_stream_free(parts->copies[p]);
        device_free(part->device, part->parameters);
        for (unsigned s = 0; s < parts->slots; s++)
            device_free(part->device, part->slots[s]);
    }
    free(parts->parts);
    free(parts->copies);
    free(parts);
}
