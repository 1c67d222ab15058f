/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- what the host sees */

/* Either way, of one gradient of the store's share. */
static void copy_gradient(const struct pipeline_store *store, unsigned number, bool to_host)
{
    float *here = store->gradients[number], *there = store->share->host_gradients[number];
    if (here != there)
        device_copy(store->stream, &(struct copy){.bytes = store->layout->elements * (int64_t)sizeof(float),
                                                  .from = to_host ? here : there,
                                                  .to = to_host ? there : here});
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
            copy_gradient(&pipeline->stores[i], number, true);
    return pipeline_stores_synchronise(pipeline, error);
}

int pipeline_stores_from_host(struct pipeline *pipeline, struct error *error)
{
    copy_gradient(&pipeline->stores[0], 0, false);
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
