/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_share.h"

#include <stdlib.h>
#include <string.h>

#include "common/extremes.h"
#include "common/memory.h"
#include "worker/data/step_record.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/strategy/device_reduction.h"
#include "worker/train/ps_reader.h"
#include "worker/train/ps_staging.h"

/* After this many steps with the same share, the worker reads that share of the next step ahead. */
#define STEADY 2

/* The part of a share that one device computes. */
struct part {
    struct strategy_device device;
    struct device_stream *stream;
    struct loss_sums *sums;
    struct ps_staging *staging; /* of values and gradients; NULL: the device sees the host's */
    float *gradients;           /* the part's own; NULL: the first's, which are the share's */
};

struct ps_share {
    struct trainer *trainer;
    struct part parts[STRATEGY_DEVICES_MAX];
    unsigned part_count;
    struct reduction_merge merges[STRATEGY_DEVICES_MAX]; /* of their gradients, one less than parts */
    struct device_reduction *reduction;                  /* with several devices that share memory; else NULL */
    double *norm_blocks;
    struct ps_reader *reader;
    int64_t last_ticket;
    unsigned steady;   /* number of consecutive steps in which this worker had only this share */
    int64_t at_a_time; /* examples of one pass */
    bool *marked;      /* tokens of a share; NULL: no table's rows travel one by one */
};

/* ---------------------------------------------------------------- which examples */

void ps_share_position(const struct trainer *trainer, const struct ticket_grant *base, int64_t step,
                       int64_t *ret_data_epoch, int64_t *ret_position)
{
    int64_t count = trainer->sampler.count, batch = trainer->plan.global_batch;
    int64_t ahead = step - base->base_step;
    int64_t left = (count - base->base_consumed + batch - 1) / batch, whole = (count + batch - 1) / batch;
    if (ahead < left) {
        *ret_data_epoch = base->base_epoch;
        *ret_position = base->base_consumed + ahead * batch;
        return;
    }
    *ret_data_epoch = base->base_epoch + 1 + (ahead - left) / whole;
    *ret_position = (ahead - left) % whole * batch;
}

double ps_share_rate(struct trainer *trainer, const struct ticket_grant *grant)
{
    step_plan_go_on(&trainer->plan, grant->base_step, grant->base_epoch, grant->base_consumed);
    return trainer_learning_rate(trainer, grant->ticket / grant->per_step + 1);
}

/* The examples of a ticket among those of its pass over the data: [first, first + count). */
struct range {
    int64_t data_epoch, first, count;
    int64_t batch_first, batch; /* of the whole batch */
};

/* Piece `piece` of as many as the ticket's batch is cut into. */
static struct range find_piece(const struct trainer *trainer, const struct ticket_grant *grant, int64_t pieces,
                               int64_t piece)
{
    struct range range;
    ps_share_position(trainer, grant, grant->ticket / grant->per_step, &range.data_epoch, &range.batch_first);
    int64_t left = trainer->sampler.count - range.batch_first, offset;
    range.batch = left < trainer->plan.global_batch ? left : trainer->plan.global_batch;
    range.count = sampler_shard(range.batch, pieces, piece, &offset);
    range.first = range.batch_first + offset;
    return range;
}

static struct range find_range(const struct trainer *trainer, const struct ticket_grant *grant)
{
    return find_piece(trainer, grant, grant->per_step, grant->ticket % grant->per_step);
}

/* Finds the part of one device: the parts of all devices, side by side, make the share. */
static struct range find_part(const struct ps_share *share, const struct ticket_grant *grant, unsigned part)
{
    int64_t each = share->part_count;
    return find_piece(share->trainer, grant, grant->per_step * each, grant->ticket % grant->per_step * each + part);
}

bool ps_share_is_empty(const struct trainer *trainer, const struct ticket_grant *grant)
{
    return grant->ticket / grant->per_step >= grant->base_step && find_range(trainer, grant).count == 0;
}

int64_t ps_share_count_empty(const struct trainer *trainer, int64_t per_step, int64_t steps)
{
    int64_t count = trainer->sampler.count, batch = trainer->plan.global_batch;
    int64_t whole = (count + batch - 1) / batch;
    int64_t in_last = int64_max(per_step - (count - (whole - 1) * batch), 0),
            in_others = int64_max(per_step - batch, 0);
    return steps * in_others + steps / whole * (in_last - in_others);
}

/* ---------------------------------------------------------------- computing */

static int64_t targets_of_example(const struct trainer *trainer)
{
    return example_targets(graph_example_format(trainer->graph));
}

/* Finds the examples of one pass, from `at` on; none beyond the last. */
static struct ps_examples find_examples(const struct ps_share *share, const struct range *range, int64_t at)
{
    int64_t count = int64_max(0, int64_min(range->count - at, share->at_a_time));
    return (struct ps_examples){range->data_epoch, range->first + at, count};
}

void ps_share_foresee(struct ps_share *share, const struct ticket_grant *grant)
{
    for (unsigned i = 0; i < share->part_count; i++) {
        const struct range range = find_part(share, grant, i);
        ps_reader_announce(share->reader, i, find_examples(share, &range, 0));
    }
}

void ps_share_cancel(struct ps_share *share)
{
    ps_reader_cancel(share->reader);
}

bool ps_share_rest(struct ps_share *share, int64_t ms)
{
    return ps_reader_drain(share->reader, ms);
}

/* Finds the table of which only some rows are read. There is one at most, since only the first
 * layer can read the batch. */
static const struct parameter_tensor *find_table(const struct parameter_layout *layout)
{
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (layout->tensors[i].by_rows)
            return &layout->tensors[i];
    return NULL;
}

/* Marks the rows of tokens. A token outside the table is reported by the pass that follows. */
static void mark_tokens(struct ps_share *share, const int32_t *inputs, int64_t tokens, int64_t rows)
{
    for (int64_t i = 0; i < tokens; i++)
        if (inputs[i] >= 0 && inputs[i] < rows)
            share->marked[inputs[i]] = true;
}

static int mark_part(struct ps_share *share, const struct ticket_grant *grant, unsigned index, int64_t rows,
                     struct error *error)
{
    const struct range range = find_part(share, grant, index);
    int64_t width = graph_example_format(share->trainer->graph)->input_elements;
    for (int64_t at = 0; at < range.count; at += share->at_a_time) {
        const struct ps_examples examples = find_examples(share, &range, at);
        bool last = at + examples.count == range.count; /* they are computed next */
        struct ps_batch batch;
        if (ps_reader_take(share->reader, index, examples, find_examples(share, &range, last ? 0 : at + examples.count),
                           &batch, error) < 0)
            return -1;
        mark_tokens(share, batch.inputs, examples.count * width, rows);
    }
    return 0;
}

int ps_share_rows(struct ps_share *share, const struct ticket_grant *grant, const struct placement *placement,
                  struct row_set *sets, struct error *error)
{
    const struct parameter_tensor *table = find_table(graph_layout(share->trainer->graph));
    memset(share->marked, 0, (size_t)table->shape[0] * sizeof *share->marked);
    for (unsigned i = 0; i < share->part_count; i++)
        if (mark_part(share, grant, i, table->shape[0], error) < 0)
            return -1;
    placement_choose_rows(placement, table, share->marked, sets);
    return 0;
}

/* A share under way. */
struct computation {
    const struct ticket_grant *grant;
    const struct ps_arrays *arrays;
    float scale;
    struct range ranges[STRATEGY_DEVICES_MAX]; /* by part */
    struct ticket_grant guess;                 /* the same share of the next step */
    bool guesses;
};

static float *gradients_of(const struct computation *computation, const struct part *part)
{
    return part->gradients != NULL ? part->gradients : computation->arrays->gradients;
}

static struct ps_examples find_following(const struct ps_share *share, const struct computation *computation,
                                         unsigned part, int64_t at)
{
    const struct range *range = &computation->ranges[part];
    struct ps_examples following = find_examples(share, range, at);
    if (following.count > 0 || !computation->guesses)
        return following;
    const struct range next = find_part(share, &computation->guess, part);
    return find_examples(share, &next, 0);
}

/* Examples from `at` on of a part, added to what is there unless they are the first. */
static int start_pass(const struct ps_share *share, const struct computation *computation, struct part *part,
                      int64_t at, struct error *error)
{
    const struct ps_arrays *arrays = computation->arrays;
    const unsigned index = (unsigned)(part - share->parts);
    const struct range *range = &computation->ranges[index];
    const struct ps_examples examples = find_examples(share, range, at);
    struct ps_batch batch;
    if (ps_reader_take(share->reader, index, examples, find_following(share, computation, index, at + examples.count),
                       &batch, error) < 0)
        return -1;
    const struct graph_pass pass = {.parameters = part->staging ? ps_staging_values(part->staging) : arrays->values,
                                    .inputs = batch.inputs,
                                    .targets = batch.targets,
                                    .examples = examples.count,
                                    .scale = computation->scale,
                                    .gradients = part->staging ? ps_staging_gradients(part->staging)
                                                               : gradients_of(computation, part),
                                    .accumulate = at > 0,
                                    .weights_stand = at > 0,
                                    .sums = part->sums,
                                    .seed = (uint64_t)share->trainer->job->training.seed,
                                    .step = computation->grant->ticket / computation->grant->per_step + 1,
                                    .first_example = range->first + at - range->batch_first};
    if (graph_forward_backward(part->device.graph, part->stream, &pass, error) < 0)
        return -1;
    if (part->staging != NULL && at + examples.count == range->count)
        ps_staging_take(part->staging);
    return 0;
}

static int finish_pass(struct part *part, struct ticket_result *result, struct error *error)
{
    if (device_stream_synchronise(part->stream, error) < 0)
        return -1;
    result->loss += part->sums->loss;
    result->correct += part->sums->correct;
    return 0;
}

/* A part without examples has a pass as well, which makes its gradient 0. */
static bool has_pass(const struct computation *computation, unsigned part, int64_t at)
{
    return at == 0 || at < computation->ranges[part].count;
}

/* Runs one pass on each device, in parallel. If one fails to start, waits for those already
 * started. */
static int run_passes(struct ps_share *share, const struct computation *computation, int64_t at,
                      struct ticket_result *result, struct error *error)
{
    unsigned started = 0;
    int status = 0;
    for (; started < share->part_count && status == 0; started++)
        if (has_pass(computation, started, at))
            status = start_pass(share, computation, &share->parts[started], at, error);
    for (unsigned i = 0; i < started; i++)
        if (has_pass(computation, i, at) && finish_pass(&share->parts[i], result, status == 0 ? error : NULL) < 0)
            status = -1;
    return status;
}

static int add_on_devices(const struct ps_share *share, float *const *vectors, struct error *error)
{
    struct device_stream *streams[STRATEGY_DEVICES_MAX];
    for (unsigned i = 0; i < share->part_count; i++)
        streams[i] = share->parts[i].stream;
    if (device_reduction_run(share->reduction, streams, vectors, graph_layout(share->trainer->graph), error) < 0)
        return -1;
    for (unsigned i = 0; i < share->part_count; i++)
        if (device_stream_synchronise(streams[i], error) < 0)
            return -1;
    return 0;
}

static void add_on_host(const struct ps_share *share, float *const *vectors)
{
    int64_t elements = graph_layout(share->trainer->graph)->elements;
    for (unsigned m = 0; m + 1 < share->part_count; m++) {
        float *into = vectors[share->merges[m].into];
        const float *from = vectors[share->merges[m].from];
        for (int64_t i = 0; i < elements; i++)
            into[i] += from[i];
    }
}

/* In the tree's order: where the shares of a batch are a power of two, these are the sums of the tree over all parts of all of
 * them. */
static int add_parts(const struct ps_share *share, const struct computation *computation, struct error *error)
{
    float *vectors[STRATEGY_DEVICES_MAX];
    for (unsigned i = 0; i < share->part_count; i++)
        vectors[i] = gradients_of(computation, &share->parts[i]);
    if (share->reduction != NULL)
        return add_on_devices(share, vectors, error);
    add_on_host(share, vectors);
    return 0;
}

static int await_staging(const struct ps_share *share, struct error *error)
{
    for (unsigned i = 0; i < share->part_count; i++)
        if (share->parts[i].staging != NULL && ps_staging_wait(share->parts[i].staging, error) < 0)
            return -1;
    return 0;
}

static int64_t largest_part(const struct ps_share *share, const struct computation *computation)
{
    int64_t largest = 0;
    for (unsigned i = 0; i < share->part_count; i++)
        largest = int64_max(largest, computation->ranges[i].count);
    return largest;
}

/* Counts how many steps in a row this worker has had the same share and no other. A worker with
 * several shares of a step does not count as steady. */
static void note_pace(struct ps_share *share, const struct ticket_grant *grant)
{
    share->steady = grant->ticket == share->last_ticket + grant->per_step ? share->steady + 1 : 0;
    share->last_ticket = grant->ticket;
}

int ps_share_compute(struct ps_share *share, const struct ticket_grant *grant, bool whole_batch,
                     const struct ps_arrays *arrays, struct ticket_result *result, struct error *error)
{
    struct trainer *trainer = share->trainer;
    struct range range = find_range(trainer, grant);
    step_record_share(&trainer->sampler, grant->ticket / grant->per_step + 1, range.data_epoch, range.first,
                      range.count);
    int64_t divisor = (whole_batch ? range.batch : range.count) * targets_of_example(trainer), at = 0;
    struct computation computation = {
        .grant = grant, .arrays = arrays, .scale = (float)(1.0 / (double)(divisor > 0 ? divisor : 1)), .guess = *grant};
    computation.guess.ticket += grant->per_step;
    note_pace(share, grant);
    computation.guesses = whole_batch && share->steady >= STEADY &&
                          computation.guess.ticket / grant->per_step < trainer->plan.total_steps;
    for (unsigned i = 0; i < share->part_count; i++)
        computation.ranges[i] = find_part(share, grant, i);
    *result = (struct ticket_result){.squares = -1};
    for (unsigned i = 0; i < share->part_count; i++)
        if (share->parts[i].staging != NULL)
            ps_staging_bring(share->parts[i].staging, share->parts[i].stream);
    do {
        if (run_passes(share, &computation, at, result, error) < 0)
            return -1;
        at += share->at_a_time;
    } while (at < largest_part(share, &computation));
    result->examples = range.count;
    result->targets = range.count * targets_of_example(trainer);
    return await_staging(share, error) < 0 ? -1 : add_parts(share, &computation, error);
}

int ps_share_squares(struct ps_share *share, const float *gradients, double *ret_squares, struct error *error)
{
    const struct parameter_layout *layout = graph_layout(share->trainer->graph);
    int64_t elements = layout->elements - layout->statistics;
    struct device_stream *stream = share->parts[0].stream;
    struct ps_staging *staging = share->parts[0].staging;
    if (staging != NULL && share->part_count > 1) /* they have come together on the host */
        device_copy(stream, &(struct copy){.bytes = layout->elements * (int64_t)sizeof(float),
                                           .from = gradients,
                                           .to = ps_staging_gradients(staging)});
    if (staging != NULL)
        gradients = ps_staging_gradients(staging);
    gradient_norm_launch(stream, gradients + layout->statistics, elements, share->norm_blocks);
    if (device_stream_synchronise(stream, error) < 0)
        return -1;
    double norm = gradient_norm_finish(share->norm_blocks, elements);
    *ret_squares = norm * norm;
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

static int open_part(struct part *part, bool first, struct error *error)
{
    struct device *device = part->device.device;
    size_t bytes = (size_t)graph_layout(part->device.graph)->elements * sizeof(float);
    if (device_stream_new(device, &part->stream, error) < 0 ||
        device_allocate(device, MEMORY_SHARED, sizeof *part->sums, (void **)&part->sums, error) < 0)
        return -1;
    return first ? 0 : device_allocate(device, MEMORY_SHARED, bytes, (void **)&part->gradients, error);
}

/* A logical shard each. */
static int plan_reduction(struct ps_share *share, struct error *error)
{
    struct reduction_subtree leaves[STRATEGY_DEVICES_MAX];
    unsigned owners[STRATEGY_DEVICES_MAX], root[REDUCTION_COVER_MAX], count = share->part_count;
    for (unsigned i = 0; i < count; i++) {
        leaves[i] = (struct reduction_subtree){i, 1};
        owners[i] = i;
    }
    reduction_merges(count, 0, count, leaves, share->merges, root);
    if (!device_memory_is_shared(share->trainer->device))
        return 0;
    const struct device_reduction_options options = {
        .algorithm = COLLECTIVE_AUTO, .devices = count, .owners = owners, .inputs = count, .merges = share->merges};
    return device_reduction_new(&options, &share->reduction, error);
}

static int open_reader(struct ps_share *share, struct error *error)
{
    const struct trainer *trainer = share->trainer;
    const struct ps_reader_options options = {.dataset = trainer->training,
                                              .sampler = &trainer->sampler,
                                              .devices = trainer->devices,
                                              .device_count = share->part_count,
                                              .at_a_time = share->at_a_time};
    return ps_reader_new(&options, &share->reader, error);
}

static int allocate(struct ps_share *share, struct error *error)
{
    const struct parameter_layout *layout = graph_layout(share->trainer->graph);
    const struct parameter_tensor *table = find_table(layout);
    size_t blocks = (size_t)gradient_norm_blocks(layout->elements);
    if (table != NULL)
        share->marked = memory_allocate((size_t)table->shape[0], sizeof *share->marked);
    for (unsigned i = 0; i < share->part_count; i++)
        if (open_part(&share->parts[i], i == 0, error) < 0)
            return -1;
    if ((share->part_count > 1 && plan_reduction(share, error) < 0) || open_reader(share, error) < 0)
        return -1;
    return device_allocate(share->trainer->device, MEMORY_SHARED, blocks * sizeof(double), (void **)&share->norm_blocks,
                           error);
}

int ps_share_new(struct trainer *trainer, struct ps_share **ret_share, struct error *error)
{
    struct ps_share *share = memory_allocate(1, sizeof *share);
    share->trainer = trainer;
    share->last_ticket = INT64_MIN / 2;
    share->at_a_time = graph_max_examples(trainer->graph);
    share->part_count = trainer->device_count;
    for (unsigned i = 0; i < share->part_count; i++)
        share->parts[i].device = trainer->devices[i];
    if (allocate(share, error) < 0) {
        ps_share_free(share);
        return -1;
    }
    *ret_share = share;
    return 0;
}

int ps_share_stage(struct ps_share *share, const struct ps_arrays *arrays, struct error *error)
{
    const struct computation all = {.arrays = arrays};
    for (unsigned i = 0; i < share->part_count; i++) {
        struct part *part = &share->parts[i];
        if (!device_memory_is_shared(part->device.device) &&
            ps_staging_new(part->device.device, part->device.graph, arrays->values, gradients_of(&all, part),
                           &part->staging, error) < 0)
            return -1;
    }
    return 0;
}

static void close_part(struct part *part)
{
    struct device *device = part->device.device;
    ps_staging_free(part->staging);
    if (part->stream)
        device_stream_free(part->stream);
    device_free(device, part->sums);
    device_free(device, part->gradients);
}

bool ps_share_free(struct ps_share *share)
{
    if (share == NULL)
        return true;
    bool ended = ps_reader_free(share->reader);
    for (unsigned i = 0; i < share->part_count; i++)
        close_part(&share->parts[i]);
    device_reduction_free(share->reduction);
    device_free(share->trainer->device, share->norm_blocks);
    free(share->marked);
    free(share);
    return ended;
}
