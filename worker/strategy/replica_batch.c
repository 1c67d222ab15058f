/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/strategy/replica_parts.h"

/* Where device memory begins, at least (cudaMalloc). */
#define NEAR_ALIGNMENT 256

/* ---------------------------------------------------------------- shapes */

int64_t replica_largest_shard(const struct strategy_options *options, unsigned shards)
{
    return (options->global_batch + shards - 1) / shards;
}

/* Bytes from the beginning of one shard on the device to that of the next. */
static size_t near_stride(const struct replica *replica, size_t example_bytes)
{
    size_t bytes = (size_t)replica_largest_shard(&replica->options, replica->shards) * example_bytes;
    return (bytes + NEAR_ALIGNMENT - 1) / NEAR_ALIGNMENT * NEAR_ALIGNMENT;
}

int64_t replica_batch_share(const struct replica *replica, int64_t size, int64_t *ret_first)
{
    int64_t last, count;
    sampler_shard(size, replica->shards, replica->first, ret_first);
    count = sampler_shard(size, replica->shards, replica->end - 1, &last);
    return last + count - *ret_first;
}

bool replica_batch_is(const struct batch *batch, int64_t data_epoch, int64_t position)
{
    return batch->filled && batch->data_epoch == data_epoch && batch->position == position;
}

/* ---------------------------------------------------------------- on the device */

static struct batch_shard shard_on_host(const struct replica *replica, const struct batch *batch, unsigned shard)
{
    const struct example_format *format = graph_example_format(replica->options.graph);
    struct batch_shard part;
    int64_t own_first;
    part.count = sampler_shard(batch->size, replica->shards, shard, &part.first);
    sampler_shard(batch->size, replica->shards, replica->first, &own_first);
    size_t offset = (size_t)(part.first - own_first);
    part.inputs = (const char *)batch->inputs + offset * example_input_bytes(format);
    part.targets = (const char *)batch->targets + offset * example_target_bytes(format);
    return part;
}

static void *near_place(const struct replica *replica, void *memory, size_t example_bytes, unsigned shard)
{
    return (char *)memory + near_stride(replica, example_bytes) * (shard - replica->first);
}

struct batch_shard replica_batch_shard(const struct replica *replica, const struct batch *batch, unsigned shard)
{
    const struct example_format *format = graph_example_format(replica->options.graph);
    struct batch_shard part = shard_on_host(replica, batch, shard);
    if (replica->copies == NULL)
        return part;
    part.inputs = near_place(replica, batch->near_inputs, example_input_bytes(format), shard);
    part.targets = near_place(replica, batch->near_targets, example_target_bytes(format), shard);
    return part;
}

static void copy(const struct replica *replica, const void *from, const void *to, int64_t count, size_t example_bytes)
{
    if (count > 0)
        device_copy(replica->copies, &(struct copy){count * (int64_t)example_bytes, from, (void *)to});
}

static void start_copies(struct replica *replica, struct batch *batch)
{
    const struct example_format *format = graph_example_format(replica->options.graph);
    if (replica->copies == NULL)
        return;
    device_stream_wait(replica->copies, batch->used);
    for (unsigned shard = replica->first; shard < replica->end; shard++) {
        struct batch_shard from = shard_on_host(replica, batch, shard), to = replica_batch_shard(replica, batch, shard);
        copy(replica, from.inputs, to.inputs, from.count, example_input_bytes(format));
        copy(replica, from.targets, to.targets, from.count, example_target_bytes(format));
    }
    device_event_record(batch->copied, replica->copies);
}

void replica_batch_begin_use(struct replica *replica, struct batch *batch)
{
    if (replica->copies != NULL)
        device_stream_wait(replica->stream, batch->copied);
}

void replica_batch_end_use(struct replica *replica, struct batch *batch)
{
    if (replica->copies != NULL)
        device_event_record(batch->used, replica->stream);
}

/* ---------------------------------------------------------------- reading */

/* The host's buffer may still be on its way to the device. */
static int await_copies(const struct replica *replica, struct batch *batch, struct error *error)
{
    return replica->copies != NULL ? device_event_wait(batch->copied, error) : 0;
}

int replica_batch_read(struct replica *replica, struct batch *batch, int64_t data_epoch, int64_t position,
                       struct error *error)
{
    const struct strategy_options *options = &replica->options;
    if (replica_batch_is(batch, data_epoch, position))
        return 0;
    batch->filled = false;
    if (await_copies(replica, batch, error) < 0)
        return -1;
    int64_t size = sampler_batch(options->sampler, options->global_batch, position);
    int64_t first, count = replica_batch_share(replica, size, &first);
    for (int64_t i = 0; i < count; i++)
        replica->indices[i] = sampler_index(options->sampler, data_epoch, position + first + i);
    const struct dataset_epoch epoch = {options->sampler->seed, data_epoch};
    if (dataset_read_in_epoch(options->dataset, epoch, replica->indices, count, batch->inputs, batch->targets, error) <
        0)
        return -1;
    batch->filled = true;
    batch->data_epoch = data_epoch;
    batch->position = position;
    batch->size = size;
    start_copies(replica, batch);
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

static int allocate_near(struct replica *replica, struct batch *batch, struct error *error)
{
    struct device *device = replica->options.device;
    const struct example_format *format = graph_example_format(replica->options.graph);
    size_t shards = replica->end - replica->first;
    if (device_allocate(device, MEMORY_DEVICE, shards * near_stride(replica, example_input_bytes(format)),
                        &batch->near_inputs, error) < 0 ||
        device_allocate(device, MEMORY_DEVICE, shards * near_stride(replica, example_target_bytes(format)),
                        &batch->near_targets, error) < 0)
        return -1;
    return device_event_new(device, &batch->copied, error) < 0 || device_event_new(device, &batch->used, error) < 0 ? -1
                                                                                                                    : 0;
}

int replica_batches_allocate(struct replica *replica, struct error *error)
{
    struct device *device = replica->options.device;
    const struct example_format *format = graph_example_format(replica->options.graph);
    int64_t own = replica->end - replica->first;
    replica->max_examples = own * replica_largest_shard(&replica->options, replica->shards);
    replica->indices = memory_allocate((size_t)replica->max_examples, sizeof(*replica->indices));
    bool near = !device_memory_is_shared(device);
    if (near && device_stream_new(device, &replica->copies, error) < 0)
        return -1;
    for (unsigned i = 0; i < 2; i++) {
        struct batch *batch = &replica->batches[i];
        size_t examples = (size_t)replica->max_examples;
        if (device_allocate(device, MEMORY_SHARED, examples * example_input_bytes(format), &batch->inputs, error) < 0 ||
            device_allocate(device, MEMORY_SHARED, examples * example_target_bytes(format), &batch->targets, error) < 0)
            return -1;
        if (near && allocate_near(replica, batch, error) < 0)
            return -1;
    }
    return 0;
}

void replica_batches_free(struct replica *replica)
{
    struct device *device = replica->options.device;
    device_stream_free(replica->copies);
    for (unsigned i = 0; i < 2; i++) {
        struct batch *batch = &replica->batches[i];
        device_free(device, batch->inputs);
        device_free(device, batch->targets);
        device_free(device, batch->near_inputs);
        device_free(device, batch->near_targets);
        device_event_free(batch->copied);
        device_event_free(batch->used);
    }
    free(replica->indices);
}
