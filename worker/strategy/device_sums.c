/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_sums.h"

#include <string.h>

#include "common/memory.h"
#include "worker/device/device.h"

/* Slices begin at multiples of it, so that copies are of whole cache lines where the part's are. */
#define SLICE_UNIT 32

struct device_sums {
    struct device_sums_options options;
    struct device_stream *stream;
    struct device_event *done;
    struct device_part *parts;
    unsigned part_count;
    unsigned inputs; /* contributions of all ranks */
    int64_t stride;  /* the longest of this rank's slices */
    float *foreign;  /* others' contributions to a slice, `stride` apart */
    float **vectors; /* the contributions to the slice at hand, in the order of the ranks */
    struct communicator_operation *operations;
    unsigned operation_count;
};

/* ---------------------------------------------------------------- shapes */

unsigned device_parts_plan(const struct graph_bucket *buckets, unsigned count, int64_t least,
                           struct device_part *ret_parts)
{
    unsigned parts = 0;
    for (unsigned i = 0; i < count; i++) {
        bool begins = parts == 0 || ret_parts[parts - 1].elements >= least;
        if (begins)
            ret_parts[parts++] = (struct device_part){0};
        struct device_part *part = &ret_parts[parts - 1];
        part->offset = buckets[i].offset;
        part->elements += buckets[i].elements;
        part->last = i;
    }
    return parts;
}

static int64_t slice_start(int64_t elements, unsigned owner, unsigned size)
{
    return owner == size ? elements : elements * owner / size / SLICE_UNIT * SLICE_UNIT;
}

void device_part_slice(int64_t elements, unsigned owner, unsigned size, int64_t *ret_first, int64_t *ret_end)
{
    *ret_first = slice_start(elements, owner, size);
    *ret_end = slice_start(elements, owner + 1, size);
}

/* ---------------------------------------------------------------- life cycle */

static void plan_parts(struct device_sums *sums)
{
    const struct graph *graph = sums->options.graph;
    unsigned count = graph_bucket_count(graph);
    SCOPED_FREE struct graph_bucket *buckets = memory_allocate(count, sizeof *buckets);
    for (unsigned i = 0; i < count; i++)
        buckets[i] = graph_bucket(graph, i);
    sums->parts = memory_allocate(count, sizeof *sums->parts);
    sums->part_count = device_parts_plan(buckets, count, DEVICE_PART_ELEMENTS, sums->parts);
    for (unsigned i = 0; i < sums->part_count; i++) {
        int64_t first, end;
        device_part_slice(sums->parts[i].elements, sums->options.rank, sums->options.size, &first, &end);
        sums->stride = end - first > sums->stride ? end - first : sums->stride;
    }
}

static int allocate(struct device_sums *sums, struct error *error)
{
    unsigned own = sums->options.contributions[sums->options.rank];
    size_t foreign = sums->inputs - own;
    sums->vectors = memory_allocate(sums->inputs, sizeof *sums->vectors);
    /* What others put into our slice, and we into theirs; the sums need less. */
    sums->operations =
        memory_allocate(foreign + (size_t)own * sums->options.size + sums->options.size, sizeof *sums->operations);
    if (sums->options.in_any_order || foreign == 0 || sums->stride == 0)
        return 0;
    return device_allocate(sums->options.device, MEMORY_DEVICE, foreign * (size_t)sums->stride * sizeof(float),
                           (void **)&sums->foreign, error);
}

int device_sums_new(const struct device_sums_options *options, struct device_sums **ret_sums, struct error *error)
{
    struct device_sums *sums = memory_allocate(1, sizeof *sums);
    sums->options = *options;
    for (unsigned rank = 0; rank < options->size; rank++)
        sums->inputs += options->contributions[rank];
    plan_parts(sums);
    if (allocate(sums, error) < 0 || device_stream_new(options->device, &sums->stream, error) < 0 ||
        device_event_new(options->device, &sums->done, error) < 0) {
        device_sums_free(sums);
        return -1;
    }
    *ret_sums = sums;
    return 0;
}

void device_sums_free(struct device_sums *sums)
{
    if (sums == NULL)
        return;
    device_stream_free(sums->stream);
    device_event_free(sums->done);
    device_free(sums->options.device, sums->foreign);
    free(sums->parts);
    free(sums->vectors);
    free(sums->operations);
    free(sums);
}

/* ---------------------------------------------------------------- a step */

/* With nothing to be sent or received there is no operation, for either side. */
static void plan_operation(struct device_sums *sums, enum communicator_operation_kind kind, unsigned peer,
                           float *vector, int64_t elements)
{
    if (elements > 0)
        sums->operations[sums->operation_count++] =
            (struct communicator_operation){kind, peer, vector, (size_t)elements};
}

static int queue(struct device_sums *sums, struct crew_communicator *crew, struct error *error)
{
    unsigned count = sums->operation_count;
    sums->operation_count = 0;
    return crew_communicator_queue(crew, sums->stream, sums->operations, count, error);
}

/* The contributions of all ranks to our slice come here, ours go to the slices of the others. */
static int scatter(struct device_sums *sums, struct crew_communicator *crew, const struct device_part *part,
                   float *const *own, struct error *error)
{
    const struct device_sums_options *options = &sums->options;
    unsigned input = 0, foreign = 0;
    int64_t first, end, from, to;
    device_part_slice(part->elements, options->rank, options->size, &first, &end);
    for (unsigned rank = 0; rank < options->size; rank++) {
        device_part_slice(part->elements, rank, options->size, &from, &to);
        for (unsigned i = 0; rank != options->rank && i < options->contributions[options->rank]; i++)
            plan_operation(sums, COMMUNICATOR_SEND, rank, own[i] + part->offset + from, to - from);
        for (unsigned i = 0; i < options->contributions[rank]; i++, input++) {
            bool ours = rank == options->rank;
            float *vector = ours ? own[i] + part->offset + first : sums->foreign + sums->stride * foreign++;
            if (!ours)
                plan_operation(sums, COMMUNICATOR_RECEIVE, rank, vector, end - first);
            sums->vectors[input] = vector;
        }
    }
    return queue(sums, crew, error);
}

/* Additions of `elements` from `vectors` on, in the order of `merges`. */
static void merge(struct device_sums *sums, const struct reduction_merge *merges, unsigned count, float *const *vectors,
                  int64_t elements)
{
    struct merge_vectors operation = {.count = elements};
    for (unsigned i = 0; i < count; i++) {
        operation.pairs[operation.pair_count++] = (struct merge_pair){vectors[merges[i].into], vectors[merges[i].from]};
        if (operation.pair_count < MERGE_PAIRS_MAX && i + 1 < count)
            continue;
        device_merge_vectors(sums->stream, &operation);
        operation.pair_count = 0;
    }
}

/* The root of the tree comes to lie in the first of all contributions; it is wanted in our own first. */
static void sum_slice(struct device_sums *sums, float *result, int64_t elements)
{
    merge(sums, sums->options.merges, sums->inputs - 1, sums->vectors, elements);
    if (sums->vectors[0] != result)
        device_copy(sums->stream,
                    &(struct copy){.bytes = elements * (int64_t)sizeof(float), .from = sums->vectors[0], .to = result});
}

static int gather(struct device_sums *sums, struct crew_communicator *crew, const struct device_part *part,
                  float *result, struct error *error)
{
    const struct device_sums_options *options = &sums->options;
    int64_t first, end, from, to;
    device_part_slice(part->elements, options->rank, options->size, &first, &end);
    for (unsigned rank = 0; rank < options->size; rank++) {
        if (rank == options->rank)
            continue;
        device_part_slice(part->elements, rank, options->size, &from, &to);
        plan_operation(sums, COMMUNICATOR_SEND, rank, result + first, end - first);
        plan_operation(sums, COMMUNICATOR_RECEIVE, rank, result + from, to - from);
    }
    return queue(sums, crew, error);
}

static int sum_in_order(struct device_sums *sums, struct crew_communicator *crew, const struct device_part *part,
                        float *const *own, struct error *error)
{
    int64_t first, end;
    device_part_slice(part->elements, sums->options.rank, sums->options.size, &first, &end);
    if (scatter(sums, crew, part, own, error) < 0)
        return -1;
    if (end > first)
        sum_slice(sums, own[0] + part->offset + first, end - first);
    return gather(sums, crew, part, own[0] + part->offset, error);
}

static int sum_in_any_order(struct device_sums *sums, struct crew_communicator *crew, const struct device_part *part,
                            float *const *own, struct error *error)
{
    struct reduction_merge merges[REDUCTION_COVER_MAX];
    unsigned count = sums->options.contributions[sums->options.rank];
    for (unsigned i = 0; i < count; i++) {
        sums->vectors[i] = own[i] + part->offset;
        merges[i] = (struct reduction_merge){0, i + 1};
    }
    merge(sums, merges, count - 1, sums->vectors, part->elements);
    plan_operation(sums, COMMUNICATOR_SUM, sums->options.rank, own[0] + part->offset, part->elements);
    return queue(sums, crew, error);
}

int device_sums_start(struct device_sums *sums, struct crew_communicator *crew, const struct replica_set *set,
                      struct error *error)
{
    float *const *own = (float *const *)replica_set_gradients(set);
    for (unsigned i = 0; i < sums->part_count; i++) {
        const struct device_part *part = &sums->parts[i];
        device_stream_wait(sums->stream, replica_set_bucket_event(set, part->last));
        if (sums->options.size == 1)
            continue;
        int result = sums->options.in_any_order ? sum_in_any_order(sums, crew, part, own, error)
                                                : sum_in_order(sums, crew, part, own, error);
        if (result < 0)
            return -1;
    }
    device_event_record(sums->done, sums->stream);
    return 0;
}

int device_sums_wait(struct device_sums *sums, struct crew_communicator *crew, struct error *error)
{
    return crew_communicator_await(crew, sums->done, error);
}

int device_sums_settle(struct device_sums *sums, struct error *error)
{
    return sums == NULL ? 0 : device_stream_synchronise(sums->stream, error);
}
