/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_reduction.h"

#include <string.h>

#include "common/memory.h"
#include "worker/strategy/replica_update.h"

struct addition {
    unsigned device;
    unsigned into, from;  /* vectors */
    unsigned part, parts; /* the slice */
    bool copies;          /* in place of adding */
};

struct device_reduction {
    unsigned devices;
    bool leaves_slices; /* each device can go on with its slice at once */
    struct addition *additions;
    unsigned count, capacity;
    unsigned *round_ends; /* index behind the last addition of each round */
    unsigned rounds;
};

static void add(struct device_reduction *reduction, struct addition addition)
{
    if (reduction->count == reduction->capacity) {
        reduction->capacity = reduction->capacity ? 2 * reduction->capacity : 64;
        reduction->additions = memory_resize(reduction->additions, reduction->capacity, sizeof(*reduction->additions));
    }
    reduction->additions[reduction->count++] = addition;
}

static void end_round(struct device_reduction *reduction)
{
    reduction->round_ends = memory_resize(reduction->round_ends, reduction->rounds + 1, sizeof(*reduction->round_ends));
    reduction->round_ends[reduction->rounds++] = reduction->count;
}

/* ---------------------------------------------------------------- the algorithms */

static void plan_slices(struct device_reduction *reduction, const struct device_reduction_options *options)
{
    for (unsigned device = 0; device < options->devices; device++)
        for (unsigned i = 0; i + 1 < options->inputs; i++)
            add(reduction, (struct addition){.device = device,
                                             .into = options->merges[i].into,
                                             .from = options->merges[i].from,
                                             .part = device,
                                             .parts = options->devices});
    end_round(reduction);
    reduction->leaves_slices = true;
}

static void plan_one(struct device_reduction *reduction, const struct device_reduction_options *options)
{
    for (unsigned i = 0; i + 1 < options->inputs; i++)
        add(reduction, (struct addition){.into = options->merges[i].into, .from = options->merges[i].from, .parts = 1});
    end_round(reduction);
}

/* The lowest level at which both are of one group, of 2^level devices; its first device adds for all. */
static unsigned merge_level(unsigned first_device, unsigned last_device)
{
    unsigned level = 0;
    while (first_device >> level != last_device >> level)
        level++;
    return level;
}

static void plan_levels(struct device_reduction *reduction, const struct device_reduction_options *options)
{
    unsigned levels = merge_level(0, options->devices - 1);
    for (unsigned level = 0; level <= levels; level++) {
        /* last[i]: the last device that the partial sum in vector i covers. */
        SCOPED_FREE unsigned *last = memory_allocate(options->inputs, sizeof(*last));
        memcpy(last, options->owners, options->inputs * sizeof(*last));
        for (unsigned i = 0; i + 1 < options->inputs; i++) {
            struct reduction_merge merge = options->merges[i];
            last[merge.into] = last[merge.from];
            if (merge_level(options->owners[merge.into], last[merge.into]) == level)
                add(reduction, (struct addition){.device = options->owners[merge.into] >> level << level,
                                                 .into = merge.into,
                                                 .from = merge.from,
                                                 .parts = 1});
        }
        end_round(reduction);
    }
}

/* The first vector of each device; the others are added to it beforehand. */
static void plan_own_sums(struct device_reduction *reduction, const struct device_reduction_options *options,
                          unsigned *first)
{
    for (unsigned i = 0; i < options->inputs; i++) {
        unsigned device = options->owners[i];
        if (i == 0 || options->owners[i - 1] != device)
            first[device] = i;
        else
            add(reduction, (struct addition){.device = device, .into = first[device], .from = i, .parts = 1});
    }
    end_round(reduction);
}

static void plan_ring(struct device_reduction *reduction, const struct device_reduction_options *options)
{
    unsigned devices = options->devices;
    SCOPED_FREE unsigned *first = memory_allocate(devices, sizeof(*first));
    plan_own_sums(reduction, options, first);
    for (unsigned round = 0; round + 1 < devices; round++) {
        for (unsigned device = 0; device < devices; device++)
            add(reduction, (struct addition){.device = device,
                                             .into = first[device],
                                             .from = first[(device + devices - 1) % devices],
                                             .part = (device + 2 * devices - round - 1) % devices,
                                             .parts = devices});
        end_round(reduction);
    }
    for (unsigned device = 1; device < devices; device++)
        add(reduction, (struct addition){.device = device,
                                         .from = first[device],
                                         .part = (device + 1) % devices,
                                         .parts = devices,
                                         .copies = true});
    end_round(reduction);
}

static const struct algorithm {
    enum collective_type type;
    void (*plan)(struct device_reduction *reduction, const struct device_reduction_options *options);
} algorithms[] = {
    {COLLECTIVE_AUTO, plan_slices},
    {COLLECTIVE_REDUCE_TO_ONE, plan_one},
    {COLLECTIVE_HIERARCHICAL, plan_levels},
    {COLLECTIVE_RING, plan_ring},
};

int device_reduction_new(const struct device_reduction_options *options, struct device_reduction **ret_reduction,
                         struct error *error)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        if (algorithms[i].type != options->algorithm)
            continue;
        struct device_reduction *reduction = memory_allocate(1, sizeof(*reduction));
        reduction->devices = options->devices;
        algorithms[i].plan(reduction, options);
        *ret_reduction = reduction;
        return 0;
    }
    return error_set(
        error, ERROR_UNSUPPORTED,
        "strategy.collective: several devices of one process sum by Auto, ReduceToOne, Hierarchical or Ring; take one "
        "of these");
}

void device_reduction_free(struct device_reduction *reduction)
{
    if (reduction == NULL)
        return;
    free(reduction->additions);
    free(reduction->round_ends);
    free(reduction);
}

/* ---------------------------------------------------------------- a run */

static void launch(const struct addition *addition, struct device_stream *stream, float *const *inputs,
                   const struct parameter_layout *layout)
{
    int64_t first, end;
    replica_slice(layout, addition->part, addition->parts, &first, &end);
    const float *from = inputs[addition->from] + first;
    float *into = inputs[addition->into] + first;
    if (first >= end)
        return;
    if (addition->copies)
        device_copy(stream, &(struct copy){.bytes = (end - first) * (int64_t)sizeof(float), .from = from, .to = into});
    else
        device_axpy(stream, &(struct axpy){.count = end - first, .factor = 1.0f, .x = from, .y = into});
}

int device_reduction_run(const struct device_reduction *reduction, struct device_stream *const *streams,
                         float *const *inputs, const struct parameter_layout *layout, struct error *error)
{
    unsigned next = 0;
    for (unsigned round = 0; round < reduction->rounds; round++) {
        for (; next < reduction->round_ends[round]; next++) {
            const struct addition *addition = &reduction->additions[next];
            launch(addition, streams[addition->device], inputs, layout);
        }
        for (unsigned device = 0; device < reduction->devices && !reduction->leaves_slices; device++)
            if (device_stream_synchronise(streams[device], error) < 0)
                return -1;
    }
    return 0;
}
