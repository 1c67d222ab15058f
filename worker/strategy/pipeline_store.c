/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- what the host sees */

static void copy(const struct pipeline_store *store, const float *from, float *to, int64_t elements)
{
    if (from != to)
        device_copy(store->stream, &(struct copy){.bytes = elements * (int64_t)sizeof(float), .from = from, .to = to});
}

/* The host's copy is laid out as the process's stages are, which may be more than the store's: a copy of a table takes what its
 * holder's sum is, and does not give it. */
static void copy_to_host(const struct pipeline *pipeline, const struct pipeline_store *store, unsigned number)
{
    const struct parameter_layout *layout = store->layout, *whole = pipeline_layout(pipeline);
    float *here = store->gradients[number], *there = store->share->host_gradients[number];
    if (!pipeline_is_parted(pipeline)) {
        copy(store, here, there, layout->elements);
        return;
    }
    for (unsigned t = 0; t < layout->tensor_count; t++)
        if (!layout->tensors[t].copy)
            copy(store, here + layout->tensors[t].offset, there + parameter_layout_place(whole, &layout->tensors[t]),
                 layout->tensors[t].elements);
}

static void copy_from_host(const struct pipeline *pipeline, const struct pipeline_store *store, const float *host)
{
    const struct parameter_layout *layout = store->layout, *whole = pipeline_layout(pipeline);
    if (!pipeline_is_parted(pipeline)) {
        copy(store, host, store->gradients[0], layout->elements);
        return;
    }
    for (unsigned t = 0; t < layout->tensor_count; t++)
        copy(store, host + parameter_layout_place(whole, &layout->tensors[t]),
             store->gradients[0] + layout->tensors[t].offset, layout->tensors[t].elements);
}

int pipeline_stores_synchronise(struct pipeline *pipeline, struct error *error)
{
    int result = 0;
    for (unsigned i = 0; i < pipeline->store_count; i++)
        if (device_stream_synchronise(pipeline->stores[i].stream, result == 0 ? error : NULL) < 0)
            result = -1;
    return result;
}

int pipeline_stores_to_host(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline->store_count; i++)
        for (unsigned number = 0; number < pipeline->stores[i].share->cover_count; number++)
            copy_to_host(pipeline, &pipeline->stores[i], number);
    return pipeline_stores_synchronise(pipeline, error);
}

int pipeline_stores_from_host(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline); i++)
        copy_from_host(pipeline, &pipeline->stores[i], pipeline->shares[0].host_gradients[0]);
    return pipeline_stores_synchronise(pipeline, error);
}

unsigned pipeline_updating_store_count(const struct pipeline *pipeline)
{
    return pipeline_is_parted(pipeline) ? pipeline->store_count : 1;
}

/* ---- borrowed tables */

/* A layer's table is its first tensor. */
static bool is_lent(const struct pipeline *pipeline, const struct parameter_layout *layout, unsigned tensor)
{
    const struct parameter_tensor *table = &layout->tensors[tensor];
    if (table->copy || (tensor > 0 && layout->tensors[tensor - 1].layer == table->layer))
        return false;
    for (unsigned i = 0; i < pipeline->gradient_count; i++)
        if (pipeline->gradients[i].table && pipeline->gradients[i].layer == table->layer)
            return true;
    return false;
}

int pipeline_stores_tables_to_host(struct pipeline *pipeline, struct error *error)
{
    float *host = pipeline->shares[0].host_gradients[0];
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline); i++) {
        const struct pipeline_store *store = &pipeline->stores[i];
        for (unsigned t = 0; t < store->layout->tensor_count; t++) {
            const struct parameter_tensor *table = &store->layout->tensors[t];
            if (is_lent(pipeline, store->layout, t))
                copy(store, store->gradients[0] + table->offset,
                     host + parameter_layout_place(pipeline_layout(pipeline), table), table->elements);
        }
    }
    return pipeline_stores_synchronise(pipeline, error);
}

int pipeline_stores_tables_from_host(struct pipeline *pipeline, struct error *error)
{
    const float *host = pipeline->shares[0].host_gradients[0];
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline); i++) {
        const struct pipeline_store *store = &pipeline->stores[i];
        for (unsigned t = 0; t < store->layout->tensor_count; t++) {
            const struct parameter_tensor *table = &store->layout->tensors[t];
            if (table->copy)
                copy(store, host + parameter_layout_place(pipeline_layout(pipeline), table),
                     store->gradients[0] + table->offset, table->elements);
        }
    }
    return pipeline_stores_synchronise(pipeline, error);
}

/* The gradient of a copy's table, where it is summed; NULL: not here. */
static const float *find_sum(const struct pipeline *pipeline, const struct parameter_tensor *table)
{
    for (unsigned i = 0; i < pipeline->store_count; i++) {
        const struct parameter_layout *layout = pipeline->stores[i].layout;
        for (unsigned t = 0; t < layout->tensor_count; t++)
            if (layout->tensors[t].number == table->number && !layout->tensors[t].copy)
                return pipeline->stores[i].gradients[0] + layout->tensors[t].offset;
    }
    return NULL;
}

int pipeline_stores_give_tables(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline->store_count; i++) {
        const struct pipeline_store *store = &pipeline->stores[i];
        for (unsigned t = 0; t < store->layout->tensor_count; t++) {
            const struct parameter_tensor *table = &store->layout->tensors[t];
            const float *sum = table->copy ? find_sum(pipeline, table) : NULL;
            if (sum != NULL)
                copy(store, sum, store->gradients[0] + table->offset, table->elements);
        }
    }
    return pipeline_stores_synchronise(pipeline, error);
}

/* ---- life cycle */

int pipeline_store_init(struct pipeline_store *store, struct error *error)
{
    size_t bytes = (size_t)store->layout->elements * sizeof(float);
    if (device_stream_new(store->device, &store->stream, error) < 0)
        return -1;
    for (unsigned i = 0; i < store->share->cover_count; i++)
        if (device_allocate(store->device, MEMORY_DEVICE, bytes, (void **)&store->gradients[i], error) < 0)
            return -1;
    for (unsigned slot = pipeline_share_partial_sums(store->share); slot > 0; slot--)
        if (device_allocate(store->device, MEMORY_DEVICE, bytes, (void **)&store->partial[slot], error) < 0)
            return -1;
    return 0;
}

void pipeline_store_release(struct pipeline_store *store)
{
    if (store->stream)
        device_stream_free(store->stream);
    for (unsigned i = 0; i < REDUCTION_COVER_MAX; i++)
        device_free(store->device, store->gradients[i]);
    for (unsigned i = 0; i < REDUCTION_DEPTH_MAX; i++)
        device_free(store->device, store->partial[i]);
    *store = (struct pipeline_store){0};
}
