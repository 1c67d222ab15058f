/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_sums.h"

#include <string.h>

#include "common/memory.h"
#include "worker/device/device.h"

/* Slices begin at multiples of it, so that copies are of whole cache lines where the part's are. */
#define SLICE_UNIT 32
/* The most parts that are queued at a time, because each needs several launches (crew_communicator_keep_up). */
#define PARTS_UNDER_WAY 4

/* A device of this process. */
struct lane {
    struct device *device;
    struct device_event *done;
    struct device_event *parts[PARTS_UNDER_WAY]; /* behind each of the last ones */
    float *foreign;  /* others' contributions to what it sums of a part, segment by segment */
    float **vectors; /* the contributions to the segment at hand, in the tree's order */
};

/* A stretch of the whole vector, and the place that sums it; with shards, the owner's mirror does so, too. */
struct segment {
    int64_t first, elements;
    unsigned owner;
};

struct device_sums {
    struct device_sums_options options;
    struct lane *lanes;
    struct device_stream **streams; /* one a lane */
    struct device_part *parts;
    unsigned part_count;
    struct segment *segments;
    unsigned *segment_ends; /* by part, one behind its last */
    unsigned segment_count, segment_capacity;
    unsigned places, first;  /* devices of all ranks, and the first of ours */
    unsigned *contributions; /* by place */
    unsigned inputs;         /* contributions of all places */
    struct reduction_merge *merges;
    struct communicator_operation *operations;
    unsigned operation_count, operation_capacity;
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

/* Plans the contributions of each place, and the additions that make one sum of them. */
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

static void add_segment(struct device_sums *sums, int64_t first, int64_t end, unsigned owner)
{
    if (end <= first)
        return;
    if (sums->segment_count == sums->segment_capacity) {
        sums->segment_capacity = 2 * sums->segment_capacity + 16;
        sums->segments = memory_resize(sums->segments, sums->segment_capacity, sizeof *sums->segments);
    }
    sums->segments[sums->segment_count++] = (struct segment){first, end - first, owner};
}

/* Each place sums a slice. */
static void cut_evenly(struct device_sums *sums, const struct device_part *part)
{
    for (unsigned place = 0; place < sums->places; place++) {
        int64_t first, end;
        device_part_slice(part->elements, place, sums->places, &first, &end);
        add_segment(sums, part->offset + first, part->offset + end, place);
    }
}

/* Each the pieces that are its own: stripe by stripe those of a rank's devices. */
static void cut_by_shards(struct device_sums *sums, const struct device_part *part)
{
    const struct shard_plan *plan = sums->options.plan;
    int64_t end = part->offset + part->elements, elements = shard_piece_elements(plan);
    for (int64_t at = part->offset, next; at < end; at = next) {
        int64_t piece = at < plan->statistics ? 0 : (at - plan->statistics) / elements;
        next = plan->statistics + (piece + 1) * elements;
        next = next < end ? next : end;
        add_segment(sums, at, next, (unsigned)(piece % sums->places));
    }
}

static void plan_segments(struct device_sums *sums)
{
    sums->segment_ends = memory_allocate(sums->part_count, sizeof *sums->segment_ends);
    for (unsigned i = 0; i < sums->part_count; i++) {
        if (sums->options.plan != NULL)
            cut_by_shards(sums, &sums->parts[i]);
        else
            cut_evenly(sums, &sums->parts[i]);
        sums->segment_ends[i] = sums->segment_count;
    }
}

static unsigned first_segment(const struct device_sums *sums, unsigned part)
{
    return part == 0 ? 0 : sums->segment_ends[part - 1];
}

/* Places that sum a segment, the owner first; returns how many. */
static unsigned summers_of(const struct device_sums *sums, const struct segment *segment, unsigned ret_places[2])
{
    const struct shard_plan *plan = sums->options.plan;
    ret_places[0] = segment->owner;
    ret_places[1] = segment->owner;
    if (plan != NULL)
        ret_places[1] =
            shard_mirror(plan, segment->owner / plan->devices) * plan->devices + segment->owner % plan->devices;
    return ret_places[1] == ret_places[0] ? 1 : 2;
}

static bool sums_it(const struct device_sums *sums, const struct segment *segment, unsigned place)
{
    unsigned summers[2], count = summers_of(sums, segment, summers);
    return summers[0] == place || summers[count - 1] == place;
}

/* Room for a contribution, so that each begins where copies like it. */
static int64_t room_for(const struct segment *segment)
{
    return (segment->elements + SLICE_UNIT - 1) / SLICE_UNIT * SLICE_UNIT;
}

/* Returns the most bytes that a place receives from others with one part. */
static size_t foreign_bytes(const struct device_sums *sums, unsigned place)
{
    int64_t most = 0, foreign = sums->inputs - sums->contributions[place];
    if (sums->options.in_any_order && sums->options.plan == NULL) /* the library's all-reduce */
        return 0;
    for (unsigned part = 0; part < sums->part_count; part++) {
        int64_t elements = 0;
        for (unsigned i = first_segment(sums, part); i < sums->segment_ends[part]; i++)
            if (sums_it(sums, &sums->segments[i], place))
                elements += foreign * room_for(&sums->segments[i]);
        most = elements > most ? elements : most;
    }
    return (size_t)most * sizeof(float);
}

/* The first launch of a kernel loads it, and may wait for everything that the GPU is doing, including NCCL's operations and so the peers.
 * It is therefore done before there are any. */
static int warm_up(const struct device_sums *sums, unsigned index, float *memory, struct error *error)
{
    const struct merge_vectors nothing = {.count = 1, .pair_count = 1, .pairs = {{memory, memory}}};
    device_merge_vectors(sums->streams[index], &nothing);
    return device_stream_synchronise(sums->streams[index], error);
}

static int open_lane(struct device_sums *sums, unsigned index, struct error *error)
{
    struct lane *lane = &sums->lanes[index];
    size_t foreign = foreign_bytes(sums, sums->first + index);
    lane->device = sums->options.devices[index].device;
    lane->vectors = memory_allocate(sums->inputs, sizeof *lane->vectors);
    if (device_stream_new(lane->device, &sums->streams[index], error) < 0 ||
        device_event_new(lane->device, &lane->done, error) < 0)
        return -1;
    for (unsigned i = 0; i < PARTS_UNDER_WAY; i++)
        if (device_event_new(lane->device, &lane->parts[i], error) < 0)
            return -1;
    if (foreign == 0)
        return 0;
    return device_allocate(lane->device, MEMORY_DEVICE, foreign, (void **)&lane->foreign, error) < 0
               ? -1
               : warm_up(sums, index, lane->foreign, error);
}

static void plan_all(struct device_sums *sums)
{
    const struct device_sums_options *options = &sums->options;
    sums->places = options->size * options->device_count;
    sums->first = options->rank * options->device_count;
    plan_tree(sums);
    if (options->elements > 0)
        cut(sums, options->elements);
    else
        plan_parts(sums);
    plan_segments(sums);
}

static void release_plan(struct device_sums *sums)
{
    free(sums->parts);
    free(sums->segments);
    free(sums->segment_ends);
    free(sums->contributions);
    free(sums->merges);
}

int64_t device_sums_incoming(const struct device_sums_options *options)
{
    struct device_sums sums = {.options = *options};
    int64_t most = 0;
    plan_all(&sums);
    for (unsigned place = 0; place < sums.places; place++) {
        int64_t bytes = (int64_t)foreign_bytes(&sums, place);
        most = bytes > most ? bytes : most;
    }
    release_plan(&sums);
    return most;
}

void device_sums_memory_plan(const struct device_sums_options *options, struct memory_plans *plans)
{
    plans->device.bytes[MEMORY_STREAMS] += device_stream_bytes(options->devices[0].device);
    plans->device.bytes[MEMORY_EXCHANGE] += device_sums_incoming(options);
}

int device_sums_new(const struct device_sums_options *options, struct device_sums **ret_sums, struct error *error)
{
    struct device_sums *sums = memory_allocate(1, sizeof *sums);
    sums->options = *options;
    sums->lanes = memory_allocate(options->device_count, sizeof *sums->lanes);
    sums->streams = memory_allocate(options->device_count, sizeof(struct device_stream *));
    plan_all(sums);
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
        for (unsigned part = 0; part < PARTS_UNDER_WAY; part++)
            device_event_free(lane->parts[part]);
        device_free(lane->device, lane->foreign);
        free(lane->vectors);
    }
    free(sums->lanes);
    free(sums->streams);
    release_plan(sums);
    free(sums->operations);
    free(sums);
}

/* ---------------------------------------------------------------- a step */

/* The sum of a part. own[device][contribution] is the whole vector of that contribution. */
struct work {
    struct device_sums *sums;
    struct crew_communicator *crew;
    unsigned part;
    float *const *own[STRATEGY_DEVICES_MAX];
};

static void plan_operation(struct device_sums *sums, struct communicator_operation operation)
{
    if (sums->operation_count == sums->operation_capacity) {
        sums->operation_capacity = 2 * sums->operation_capacity + 64;
        sums->operations = memory_resize(sums->operations, sums->operation_capacity, sizeof *sums->operations);
    }
    sums->operations[sums->operation_count++] = operation;
}

static void plan_passing(const struct work *work, enum communicator_operation_kind kind, unsigned device, unsigned peer,
                         float *vector, const struct segment *segment)
{
    const struct device_sums_options *options = &work->sums->options;
    unsigned rank = options->stride > 0 ? options->first_rank + peer * options->stride : peer;
    plan_operation(work->sums, (struct communicator_operation){kind, device, rank, vector, (size_t)segment->elements});
}

static int queue(const struct work *work, struct error *error)
{
    unsigned count = work->sums->operation_count;
    work->sums->operation_count = 0;
    return crew_communicator_queue(work->crew, work->sums->streams, work->sums->operations, count, error);
}

/* Fills the device's `vectors` with all contributions to a segment that it sums. *foreign is the address of the next contribution of
 * another device. */
static void place_vectors(const struct work *work, unsigned device, const struct segment *segment, float **foreign)
{
    const struct device_sums *sums = work->sums;
    unsigned input = 0;
    for (unsigned place = 0; place < sums->places; place++)
        for (unsigned i = 0; i < sums->contributions[place]; i++) {
            bool own = place == sums->first + device;
            sums->lanes[device].vectors[input++] = own ? work->own[device][i] + segment->first : *foreign;
            *foreign += own ? 0 : room_for(segment);
        }
}

static void receive_all(const struct work *work, unsigned device, const struct segment *segment, float **foreign)
{
    const struct device_sums *sums = work->sums;
    unsigned input = 0;
    place_vectors(work, device, segment, foreign);
    for (unsigned place = 0; place < sums->places; place++)
        for (unsigned i = 0; i < sums->contributions[place]; i++, input++)
            if (place != sums->first + device)
                plan_passing(work, COMMUNICATOR_RECEIVE, device, place, sums->lanes[device].vectors[input], segment);
}

/* The contributions of all places to what the device sums come here, its own go to all others that sum. */
static void scatter(const struct work *work, unsigned device)
{
    const struct device_sums *sums = work->sums;
    unsigned own = sums->first + device;
    float *foreign = sums->lanes[device].foreign;
    for (unsigned s = first_segment(sums, work->part); s < sums->segment_ends[work->part]; s++) {
        const struct segment *segment = &sums->segments[s];
        unsigned summers[2], count = summers_of(sums, segment, summers);
        for (unsigned k = 0; k < count; k++) {
            if (summers[k] == own)
                receive_all(work, device, segment, &foreign);
            for (unsigned i = 0; summers[k] != own && i < sums->contributions[own]; i++)
                plan_passing(work, COMMUNICATOR_SEND, device, summers[k], work->own[device][i] + segment->first,
                             segment);
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

/* The sum arrives in the first of all contributions, and must be in the device's own first contribution. */
static void sum_segments(const struct work *work, unsigned device)
{
    const struct device_sums *sums = work->sums;
    float **vectors = sums->lanes[device].vectors, *foreign = sums->lanes[device].foreign;
    for (unsigned s = first_segment(sums, work->part); s < sums->segment_ends[work->part]; s++) {
        const struct segment *segment = &sums->segments[s];
        float *result = work->own[device][0] + segment->first;
        if (!sums_it(sums, segment, sums->first + device))
            continue;
        place_vectors(work, device, segment, &foreign);
        merge(sums->streams[device], sums->merges, sums->inputs - 1, vectors, segment->elements);
        if (vectors[0] != result)
            device_copy(
                sums->streams[device],
                &(struct copy){.bytes = segment->elements * (int64_t)sizeof(float), .from = vectors[0], .to = result});
    }
}

/* Sends the owners' sums to the places that have not summed the segments themselves. */
static void gather(const struct work *work, unsigned device)
{
    const struct device_sums *sums = work->sums;
    unsigned own = sums->first + device;
    for (unsigned s = first_segment(sums, work->part); s < sums->segment_ends[work->part]; s++) {
        const struct segment *segment = &sums->segments[s];
        float *vector = work->own[device][0] + segment->first;
        for (unsigned place = 0; segment->owner == own && place < sums->places; place++)
            if (!sums_it(sums, segment, place))
                plan_passing(work, COMMUNICATOR_SEND, device, place, vector, segment);
        if (!sums_it(sums, segment, own))
            plan_passing(work, COMMUNICATOR_RECEIVE, device, segment->owner, vector, segment);
    }
}

static int gather_all(const struct work *work, struct error *error)
{
    for (unsigned device = 0; device < work->sums->options.device_count; device++)
        gather(work, device);
    return queue(work, error);
}

/* Shards stay where they are summed. */
static int sum_in_order(const struct work *work, struct error *error)
{
    unsigned devices = work->sums->options.device_count;
    for (unsigned device = 0; device < devices; device++)
        scatter(work, device);
    if (queue(work, error) < 0)
        return -1;
    for (unsigned device = 0; device < devices; device++)
        sum_segments(work, device);
    return work->sums->options.plan != NULL ? 0 : gather_all(work, error);
}

static void sum_own(const struct work *work, unsigned device)
{
    const struct device_part *part = &work->sums->parts[work->part];
    struct reduction_merge merges[REDUCTION_COVER_MAX];
    float **vectors = work->sums->lanes[device].vectors;
    unsigned count = work->sums->contributions[work->sums->first + device];
    for (unsigned i = 0; i < count; i++) {
        vectors[i] = work->own[device][i] + part->offset;
        merges[i] = (struct reduction_merge){0, i + 1};
    }
    merge(work->sums->streams[device], merges, count - 1, vectors, part->elements);
}

static int sum_in_any_order(const struct work *work, struct error *error)
{
    struct device_sums *sums = work->sums;
    const struct device_part *part = &sums->parts[work->part];
    for (unsigned device = 0; device < sums->options.device_count; device++) {
        sum_own(work, device);
        plan_operation(sums,
                       (struct communicator_operation){COMMUNICATOR_SUM, device, sums->first + device,
                                                       work->own[device][0] + part->offset, (size_t)part->elements});
    }
    return queue(work, error);
}

static int sum(const struct work *work, struct error *error)
{
    if (work->sums->places == 1)
        return 0;
    bool any = work->sums->options.in_any_order && work->sums->options.plan == NULL;
    return (any ? sum_in_any_order : sum_in_order)(work, error);
}

static int make_room(const struct work *work, struct error *error)
{
    const struct device_sums *sums = work->sums;
    for (unsigned device = 0; work->part >= PARTS_UNDER_WAY && device < sums->options.device_count; device++)
        if (crew_communicator_keep_up(work->crew, sums->lanes[device].parts[work->part % PARTS_UNDER_WAY], error) < 0)
            return -1;
    return 0;
}

static void record_part(const struct work *work)
{
    const struct device_sums *sums = work->sums;
    for (unsigned device = 0; device < sums->options.device_count; device++)
        device_event_record(sums->lanes[device].parts[work->part % PARTS_UNDER_WAY], sums->streams[device]);
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
    for (; work.part < sums->part_count; work.part++) {
        unsigned last = sums->parts[work.part].last;
        if (make_room(&work, error) < 0)
            return -1;
        for (unsigned device = 0; device < options->device_count; device++)
            device_stream_wait(sums->streams[device], replica_set_bucket_event(set, device, last));
        if (sum(&work, error) < 0)
            return -1;
        record_part(&work);
    }
    record_done(sums);
    return 0;
}

static int start_each(struct work work, int (*start)(const struct work *work, struct error *error), struct error *error)
{
    struct device_sums *sums = work.sums;
    for (; work.part < sums->part_count; work.part++) {
        if (make_room(&work, error) < 0 || start(&work, error) < 0)
            return -1;
        record_part(&work);
    }
    record_done(sums);
    return 0;
}

int device_sums_start_vector(struct device_sums *sums, struct crew_communicator *crew, float *vector,
                             struct error *error)
{
    return device_sums_start_vectors(sums, crew, &vector, error);
}

int device_sums_start_vectors(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                              struct error *error)
{
    return start_each((struct work){.sums = sums, .crew = crew, .own = {vectors}}, sum, error);
}

static struct work work_on(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors)
{
    struct work work = {.sums = sums, .crew = crew};
    for (unsigned device = 0; device < sums->options.device_count; device++)
        work.own[device] = &vectors[device];
    return work;
}

int device_sums_start_gather(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error)
{
    return start_each(work_on(sums, crew, vectors), gather_all, error);
}

static int spread(const struct work *work, struct error *error)
{
    const struct device_part *part = &work->sums->parts[work->part];
    const struct segment whole = {.first = part->offset, .elements = part->elements};
    for (unsigned device = 1; device < work->sums->options.device_count; device++) {
        plan_passing(work, COMMUNICATOR_SEND, 0, device, work->own[0][0] + whole.first, &whole);
        plan_passing(work, COMMUNICATOR_RECEIVE, device, 0, work->own[device][0] + whole.first, &whole);
    }
    return queue(work, error);
}

int device_sums_start_spread(struct device_sums *sums, struct crew_communicator *crew, float *const *vectors,
                             struct error *error)
{
    return start_each(work_on(sums, crew, vectors), spread, error);
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
