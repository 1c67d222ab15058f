/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_parts.h"

/* ---- what the host sees */

static void copy(const struct pipeline_store *store, const float *from, float *to, int64_t elements)
{
    if (from != to)
        device_copy(store->stream, &(struct copy){.bytes = elements * (int64_t)sizeof(float), .from = from, .to = to});
}

/* Whether a copy takes a tensor of a layout. */
typedef bool tensor_choice(const struct pipeline *pipeline, const struct parameter_layout *layout, unsigned tensor);

static bool is_any(const struct pipeline *pipeline, const struct parameter_layout *layout, unsigned tensor)
{
    (void)pipeline, (void)layout, (void)tensor;
    return true;
}

static bool is_copy(const struct pipeline *pipeline, const struct parameter_layout *layout, unsigned tensor)
{
    (void)pipeline;
    return layout->tensors[tensor].copy;
}

/* A copy of a table takes what its holder's sum is, and does not give it. */
static bool is_own(const struct pipeline *pipeline, const struct parameter_layout *layout, unsigned tensor)
{
    return !is_copy(pipeline, layout, tensor);
}

/* The table of a layer that others borrow: its first tensor. */
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

/* The host's copy is laid out as the process's stages are, which may be more than the store's. */
static void copy_tensors(const struct pipeline *pipeline, const struct pipeline_store *store, float *gradient,
                         float *host, bool to_host, tensor_choice *takes)
{
    const struct parameter_layout *layout = store->layout, *whole = pipeline_layout(pipeline);
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        if (!takes(pipeline, layout, t))
            continue;
        const struct parameter_tensor *tensor = &layout->tensors[t];
        float *here = gradient + tensor->offset, *there = host + parameter_layout_place(whole, tensor);
        copy(store, to_host ? here : there, to_host ? there : here, tensor->elements);
    }
}

static void copy_gradient(const struct pipeline *pipeline, const struct pipeline_store *store, float *gradient,
                          float *host, bool to_host)
{
    if (pipeline_is_parted(pipeline))
        copy_tensors(pipeline, store, gradient, host, to_host, to_host ? is_own : is_any);
    else
        copy(store, to_host ? gradient : host, to_host ? host : gradient, store->layout->elements);
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
    for (unsigned i = 0; i < pipeline->store_count; i++) {
        const struct pipeline_store *store = &pipeline->stores[i];
        for (unsigned number = 0; number < store->share->cover_count; number++)
            copy_gradient(pipeline, store, store->gradients[number], store->share->host_gradients[number], true);
    }
    return pipeline_stores_synchronise(pipeline, error);
}

int pipeline_stores_from_host(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline); i++)
        copy_gradient(pipeline, &pipeline->stores[i], pipeline->stores[i].gradients[0],
                      pipeline->shares[0].host_gradients[0], false);
    return pipeline_stores_synchronise(pipeline, error);
}

unsigned pipeline_updating_store_count(const struct pipeline *pipeline)
{
    return pipeline_is_parted(pipeline) ? pipeline->store_count : 1;
}

/* ---- borrowed tables */

static int copy_tables(struct pipeline *pipeline, bool to_host, tensor_choice *takes, struct error *error)
{
    for (unsigned i = 0; i < pipeline_updating_store_count(pipeline); i++)
        copy_tensors(pipeline, &pipeline->stores[i], pipeline->stores[i].gradients[0],
                     pipeline->shares[0].host_gradients[0], to_host, takes);
    return pipeline_stores_synchronise(pipeline, error);
}

int pipeline_stores_tables_to_host(struct pipeline *pipeline, struct error *error)
{
    return copy_tables(pipeline, true, is_lent, error);
}

int pipeline_stores_tables_from_host(struct pipeline *pipeline, struct error *error)
{
    return copy_tables(pipeline, false, is_copy, error);
}

/* Returns the summed gradient of a copy's table in its replica, which may be on another GPU (pairs of GPUs were tested); NULL if it is in
 * another process. */
static const float *find_sum(const struct pipeline *pipeline, const struct pipeline_store *borrower,
                             const struct parameter_tensor *table)
{
    for (unsigned i = 0; i < pipeline->store_count; i++) {
        const struct parameter_layout *layout = pipeline->stores[i].layout;
        for (unsigned t = 0; pipeline->stores[i].share == borrower->share && t < layout->tensor_count; t++)
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
            const float *sum = table->copy ? find_sum(pipeline, store, table) : NULL;
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
