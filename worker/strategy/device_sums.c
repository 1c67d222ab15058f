/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_sums.h"

#include <string.h>

#include "common/memory.h"
#include "worker/device/device.h"

/* Slices begin at multiples of it, so that copies are of whole cache lines where the part's are. */
#define SLICE_UNIT 32

/* A device of this process. */
struct lane {
    struct device *device;
    struct device_event *done;
    int64_t stride;  /* the longest of its slices */
    float *foreign;  /* others' contributions to a slice, `stride` apart */
    float **vectors; /* the contributions to the slice at hand, in the tree's order */
};

struct device_sums {
    struct device_sums_options options;
    struct lane *lanes;
    struct device_stream **streams; /* one a lane */
    struct device_part *parts;
    unsigned part_count;
    unsigned places, first;  /* devices of all ranks, and the first of ours */
    unsigned *contributions; /* by place */
    unsigned inputs;         /* contributions of all places */
    struct reduction_merge *merges;
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

/* What each place contributes, and how all of that becomes one sum. */
static void plan_tree(struct device_sums *sums)
{
    const struct device_sums_options *options = &sums->options;
    SCOPED_FREE struct reduction_subtree *inputs =
        memory_allocate((size_t)sums->places * REDUCTION_COVER_MAX, sizeof *inputs);
    sums->contributions = memory_allocate(sums->places, sizeof *sums->contributions);
    for (unsigned place = 0; place < sums->places; place++) {
        unsigned first, end, from, to;
        reduction_rank_leaves(options->shards, place / options->device_count, options->size, &first, &end);
        reduction_rank_leaves(end - first, place % options->device_count, options->device_count, &from, &to);
        sums->contributions[place] = reduction_cover(options->shards, first + from, first + to, inputs + sums->inputs);
        sums->inputs += sums->contributions[place];
    }
    unsigned root[REDUCTION_COVER_MAX];
    sums->merges = memory_allocate(sums->inputs, sizeof *sums->merges);
    reduction_merges(options->shards, 0, options->shards, inputs, sums->merges, root);
}

static void cut(struct device_sums *sums, int64_t elements)
{
    sums->parts = memory_allocate((size_t)(elements / DEVICE_PART_ELEMENTS + 1), sizeof *sums->parts);
    for (int64_t at = 0; at < elements; at += DEVICE_PART_ELEMENTS) {
        int64_t left = elements - at;
        sums->parts[sums->part_count++] =
            (struct device_part){.offset = at, .elements = left < DEVICE_PART_ELEMENTS ? left : DEVICE_PART_ELEMENTS};
    }
}

static void plan_parts(struct device_sums *sums)
{
    const struct graph *graph = sums->options.devices[0].graph;
    unsigned count = graph_bucket_count(graph);
    SCOPED_FREE struct graph_bucket *buckets = memory_allocate(count, sizeof *buckets);
    for (unsigned i = 0; i < count; i++)
        buckets[i] = graph_bucket(graph, i);
    sums->parts = memory_allocate(count, sizeof *sums->parts);
    sums->part_count = device_parts_plan(buckets, count, DEVICE_PART_ELEMENTS, sums->parts);
}

static void plan_slices(struct device_sums *sums, unsigned index)
{
    struct lane *lane = &sums->lanes[index];
    for (unsigned i = 0; i < sums->part_count; i++) {
        int64_t first, end;
        device_part_slice(sums->parts[i].elements, sums->first + index, sums->places, &first, &end);
        lane->stride = end - first > lane->stride ? end - first : lane->stride;
    }
}

static int open_lane(struct device_sums *sums, unsigned index, struct error *error)
{
    struct lane *lane = &sums->lanes[index];
    size_t foreign = sums->inputs - sums->contributions[sums->first + index];
    lane->device = sums->options.devices[index].device;
    lane->vectors = memory_allocate(sums->inputs, sizeof *lane->vectors);
    plan_slices(sums, index);
    if (device_stream_new(lane->device, &sums->streams[index], error) < 0 ||
        device_event_new(lane->device, &lane->done, error) < 0)
        return -1;
    if (sums->options.in_any_order || foreign == 0 || lane->stride == 0)
        return 0;
    return device_allocate(lane->device, MEMORY_DEVICE, foreign * (size_t)lane->stride * sizeof(float),
                           (void **)&lane->foreign, error);
}

/* What others put into our slices, and we into theirs; the sums need less. */
static void allocate_operations(struct device_sums *sums)
{
    size_t most = 0;
    for (unsigned i = 0; i < sums->options.device_count; i++) {
        size_t own = sums->contributions[sums->first + i];
        most += sums->inputs - own + (own + 1) * sums->places;
    }
    sums->operations = memory_allocate(most, sizeof *sums->operations);
}

int device_sums_new(const struct device_sums_options *options, struct device_sums **ret_sums, struct error *error)
{
    struct device_sums *sums = memory_allocate(1, sizeof *sums);
    sums->options = *options;
    sums->places = options->size * options->device_count;
    sums->first = options->rank * options->device_count;
    sums->lanes = memory_allocate(options->device_count, sizeof *sums->lanes);
    sums->streams = memory_allocate(options->device_count, sizeof(struct device_stream *));
    plan_tree(sums);
    if (options->elements > 0)
        cut(sums, options->elements);
    else
        plan_parts(sums);
    allocate_operations(sums);
    for (unsigned i = 0; i < options->device_count; i++)
        if (open_lane(sums, i, error) < 0) {
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
    for (unsigned i = 0; i < sums->options.device_count; i++) {
        struct lane *lane = &sums->lanes[i];
        device_stream_free(sums->streams[i]);
        device_event_free(lane->done);
        device_free(lane->device, lane->foreign);
        free(lane->vectors);
    }
    free(sums->lanes);
    free(sums->streams);
    free(sums->parts);
    free(sums->contributions);
    free(sums->merges);
    free(sums->operations);
    free(sums);
}

/* ---------------------------------------------------------------- a step */

/* A part, and where its gradients lie: own[device][contribution] is the whole vector. */
struct work {
    struct device_sums *sums;
    struct crew_communicator *crew;
    const struct device_part *part;
    float *const *own[STRATEGY_DEVICES_MAX];
};

static float *own_part(const struct work *work, unsigned device, unsigned contribution)
{
    return work->own[device][contribution] + work->part->offset;
}

/* With nothing to be sent or received there is no operation, for either side. */
static void plan_operation(struct device_sums *sums, struct communicator_operation operation, int64_t elements)
{
    operation.elements = (size_t)elements;
    if (elements > 0)
        sums->operations[sums->operation_count++] = operation;
}

static int queue(const struct work *work, struct error *error)
{
    unsigned count = work->sums->operation_count;
    work->sums->operation_count = 0;
    return crew_communicator_queue(work->crew, work->sums->streams, work->sums->operations, count, error);
}

/* The contributions of all places to the device's slice come here, its own go to the slices of the others. */
static void scatter(const struct work *work, unsigned device)
{
    struct device_sums *sums = work->sums;
    struct lane *lane = &sums->lanes[device];
    unsigned own = sums->first + device, input = 0, foreign = 0;
    int64_t first, end, from, to;
    device_part_slice(work->part->elements, own, sums->places, &first, &end);
    for (unsigned place = 0; place < sums->places; place++) {
        device_part_slice(work->part->elements, place, sums->places, &from, &to);
        for (unsigned i = 0; place != own && i < sums->contributions[own]; i++)
            plan_operation(
                sums,
                (struct communicator_operation){COMMUNICATOR_SEND, device, place, own_part(work, device, i) + from, 0},
                to - from);
        for (unsigned i = 0; i < sums->contributions[place]; i++, input++) {
            float *vector = place == own ? own_part(work, device, i) + first : lane->foreign + lane->stride * foreign++;
            if (place != own)
                plan_operation(sums, (struct communicator_operation){COMMUNICATOR_RECEIVE, device, place, vector, 0},
                               end - first);
            lane->vectors[input] = vector;
        }
    }
}

/* Additions of `elements` from `vectors` on, in the order of `merges`. */
static void merge(struct device_stream *stream, const struct reduction_merge *merges, unsigned count,
                  float *const *vectors, int64_t elements)
{
    struct merge_vectors operation = {.count = elements};
    for (unsigned i = 0; i < count; i++) {
        operation.pairs[operation.pair_count++] = (struct merge_pair){vectors[merges[i].into], vectors[merges[i].from]};
        if (operation.pair_count < MERGE_PAIRS_MAX && i + 1 < count)
            continue;
        device_merge_vectors(stream, &operation);
        operation.pair_count = 0;
    }
}

/* The root of the tree comes to lie in the first of all contributions; it is wanted in the device's own first. */
static void sum_slice(const struct work *work, unsigned device)
{
    const struct device_sums *sums = work->sums;
    float *const *vectors = sums->lanes[device].vectors;
    int64_t first, end;
    device_part_slice(work->part->elements, sums->first + device, sums->places, &first, &end);
    if (end == first)
        return;
    float *result = own_part(work, device, 0) + first;
    merge(sums->streams[device], sums->merges, sums->inputs - 1, vectors, end - first);
    if (vectors[0] != result)
        device_copy(sums->streams[device],
                    &(struct copy){.bytes = (end - first) * (int64_t)sizeof(float), .from = vectors[0], .to = result});
}

static void gather(const struct work *work, unsigned device)
{
    struct device_sums *sums = work->sums;
    unsigned own = sums->first + device;
    float *result = own_part(work, device, 0);
    int64_t first, end, from, to;
    device_part_slice(work->part->elements, own, sums->places, &first, &end);
    for (unsigned place = 0; place < sums->places; place++) {
        if (place == own)
            continue;
        device_part_slice(work->part->elements, place, sums->places, &from, &to);
        plan_operation(sums, (struct communicator_operation){COMMUNICATOR_SEND, device, place, result + first, 0},
                       end - first);
        plan_operation(sums, (struct communicator_operation){COMMUNICATOR_RECEIVE, device, place, result + from, 0},
                       to - from);
    }
}

static int sum_in_order(const struct work *work, struct error *error)
{
    unsigned devices = work->sums->options.device_count;
    for (unsigned device = 0; device < devices; device++)
        scatter(work, device);
    if (queue(work, error) < 0)
        return -1;
    for (unsigned device = 0; device < devices; device++)
        sum_slice(work, device);
    for (unsigned device = 0; device < devices; device++)
        gather(work, device);
    return queue(work, error);
}

static void sum_own(const struct work *work, unsigned device)
{
    struct reduction_merge merges[REDUCTION_COVER_MAX];
    float **vectors = work->sums->lanes[device].vectors;
    unsigned count = work->sums->contributions[work->sums->first + device];
    for (unsigned i = 0; i < count; i++) {
        vectors[i] = own_part(work, device, i);
        merges[i] = (struct reduction_merge){0, i + 1};
    }
    merge(work->sums->streams[device], merges, count - 1, vectors, work->part->elements);
}

static int sum_in_any_order(const struct work *work, struct error *error)
{
    struct device_sums *sums = work->sums;
    for (unsigned device = 0; device < sums->options.device_count; device++) {
        sum_own(work, device);
        plan_operation(sums,
                       (struct communicator_operation){COMMUNICATOR_SUM, device, sums->first + device,
                                                       own_part(work, device, 0), 0},
                       work->part->elements);
    }
    return queue(work, error);
}

static int sum(const struct work *work, struct error *error)
{
    if (work->sums->places == 1)
        return 0;
    return (work->sums->options.in_any_order ? sum_in_any_order : sum_in_order)(work, error);
}

static void record_done(struct device_sums *sums)
{
    for (unsigned device = 0; device < sums->options.device_count; device++)
        device_event_record(sums->lanes[device].done, sums->streams[device]);
}

int device_sums_start(struct device_sums *sums, struct crew_communicator *crew, const struct replica_set *set,
                      struct error *error)
{
    const struct device_sums_options *options = &sums->options;
    struct work work = {.sums = sums, .crew = crew};
    for (unsigned device = 0; device < options->device_count; device++)
        work.own[device] = replica_set_device_gradients(set, device);
    for (unsigned i = 0; i < sums->part_count; i++) {
        work.part = &sums->parts[i];
        for (unsigned device = 0; device < options->device_count; device++)
            device_stream_wait(sums->streams[device], replica_set_bucket_event(set, device, work.part->last));
        if (sum(&work, error) < 0)
            return -1;
    }
    record_done(sums);
    return 0;
}

int device_sums_start_vector(struct device_sums *sums, struct crew_communicator *crew, float *vector,
                             struct error *error)
{
    float *const own[] = {vector};
    struct work work = {.sums = sums, .crew = crew, .own = {own}};
    for (unsigned i = 0; i < sums->part_count; i++) {
        work.part = &sums->parts[i];
        if (sum(&work, error) < 0)
            return -1;
    }
    record_done(sums);
    return 0;
}

int device_sums_wait(struct device_sums *sums, struct crew_communicator *crew, struct error *error)
{
    for (unsigned device = 0; device < sums->options.device_count; device++)
        if (crew_communicator_await(crew, sums->lanes[device].done, error) < 0)
            return -1;
    return 0;
}

int device_sums_settle(struct device_sums *sums, struct error *error)
{
    int result = 0;
    for (unsigned device = 0; sums != NULL && device < sums->options.device_count; device++)
        if (device_stream_synchronise(sums->streams[device], result == 0 ? error : NULL) < 0)
            result = -1;
    return result;
}
