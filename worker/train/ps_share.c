/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_share.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/data/step_record.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/train/ps_staging.h"

/* Some of a pass over the data. */
struct examples {
    int64_t data_epoch, first, count;
};

struct ps_share {
    struct trainer *trainer;
    struct device_stream *stream;
    void *inputs, *targets;
    struct loss_sums *sums;
    double *norm_blocks;
    int64_t *indices;
    int64_t at_a_time;    /* examples of one pass */
    struct examples read; /* what inputs and targets hold; count 0: nothing */
    bool *marked;         /* tokens of a share; NULL: no table's rows travel one by one */
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

/* The examples of a ticket among those of its pass over the data: [first, first + count). */
struct range {
    int64_t data_epoch, first, count;
    int64_t batch_first, batch; /* of the whole batch */
};

static struct range find_range(const struct trainer *trainer, const struct ticket_grant *grant)
{
    struct range range;
    ps_share_position(trainer, grant, grant->ticket / grant->per_step, &range.data_epoch, &range.batch_first);
    int64_t left = trainer->sampler.count - range.batch_first, offset;
    range.batch = left < trainer->plan.global_batch ? left : trainer->plan.global_batch;
    range.count = sampler_shard(range.batch, grant->per_step, grant->ticket % grant->per_step, &offset);
    range.first = range.batch_first + offset;
    return range;
}

bool ps_share_is_empty(const struct trainer *trainer, const struct ticket_grant *grant)
{
    return grant->ticket / grant->per_step >= grant->base_step && find_range(trainer, grant).count == 0;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t ps_share_count_empty(const struct trainer *trainer, int64_t per_step, int64_t steps)
{
    int64_t count = trainer->sampler.count, batch = trainer->plan.global_batch;
    int64_t whole = (count + batch - 1) / batch;
    int64_t in_last = most(per_step - (count - (whole - 1) * batch), 0), in_others = most(per_step - batch, 0);
    return steps * in_others + steps / whole * (in_last - in_others);
}

/* ---------------------------------------------------------------- computing */

static int64_t targets_of_example(const struct trainer *trainer)
{
    return example_targets(graph_example_format(trainer->graph));
}

/* Nothing where they have been read last, as for the rows of a table that a share's tokens name. */
static int read_examples(struct ps_share *share, const struct range *range, int64_t at, int64_t count,
                         struct error *error)
{
    struct trainer *trainer = share->trainer;
    const struct examples wanted = {range->data_epoch, range->first + at, count}, *read = &share->read;
    if (read->data_epoch == wanted.data_epoch && read->first == wanted.first && read->count == count && count > 0)
        return 0;
    share->read.count = 0;
    for (int64_t i = 0; i < count; i++)
        share->indices[i] = sampler_index(&trainer->sampler, range->data_epoch, range->first + at + i);
    const struct dataset_epoch epoch = {trainer->sampler.seed, range->data_epoch};
    if (dataset_read_in_epoch(trainer->training, epoch, share->indices, count, share->inputs, share->targets, error) <
        0)
        return -1;
    share->read = wanted;
    return 0;
}

/* Examples [at, at + count) of the range, added to what is there unless they are the first. */
static int run_pass(struct ps_share *share, const struct ticket_grant *grant, const struct range *range, int64_t at,
                    int64_t count, struct graph_pass *pass, struct ps_staging *staging, struct error *error)
{
    struct trainer *trainer = share->trainer;
    if (read_examples(share, range, at, count, error) < 0)
        return -1;
    pass->examples = count;
    pass->accumulate = at > 0;
    pass->step = grant->ticket / grant->per_step + 1;
    pass->first_example = range->first + at - range->batch_first;
    if (graph_forward_backward(trainer->graph, share->stream, pass, error) < 0)
        return -1;
    if (staging != NULL && at + count == range->count)
        ps_staging_take(staging);
    return device_stream_synchronise(share->stream, error);
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One embedding reads the batch at most, for only the first layer can. */
static const struct parameter_tensor *find_table(const struct parameter_layout *layout)
{
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (layout->tensors[i].by_rows)
            return &layout->tensors[i];
    return NULL;
}

/* A token outside the table is an error of the pass that comes. */
static void mark_tokens(struct ps_share *share, int64_t tokens, int64_t rows)
{
    const int32_t *inputs = share->inputs;
    for (int64_t i = 0; i < tokens; i++)
        if (inputs[i] >= 0 && inputs[i] < rows)
            share->marked[inputs[i]] = true;
}

int ps_share_rows(struct ps_share *share, const struct ticket_grant *grant, const struct placement *placement,
                  struct row_set *sets, struct error *error)
{
    const struct parameter_tensor *table = find_table(graph_layout(share->trainer->graph));
    const struct range range = find_range(share->trainer, grant);
    int64_t width = graph_example_format(share->trainer->graph)->input_elements;
    memset(share->marked, 0, (size_t)table->shape[0] * sizeof *share->marked);
    for (int64_t at = 0; at < range.count; at += share->at_a_time) {
        int64_t count = lesser(range.count - at, share->at_a_time);
        if (read_examples(share, &range, at, count, error) < 0)
            return -1;
        mark_tokens(share, count * width, table->shape[0]);
    }
    placement_choose_rows(placement, table, share->marked, sets);
    return 0;
}

int ps_share_compute(struct ps_share *share, const struct ticket_grant *grant, bool whole_batch,
                     const struct ps_arrays *arrays, struct ticket_result *result, struct error *error)
{
    struct ps_staging *staging = arrays->staging;
    struct trainer *trainer = share->trainer;
    struct range range = find_range(share->trainer, grant);
    step_record_share(&trainer->sampler, grant->ticket / grant->per_step + 1, range.data_epoch, range.first,
                      range.count);
    int64_t divisor = (whole_batch ? range.batch : range.count) * targets_of_example(trainer), at = 0;
    struct graph_pass pass = {.parameters = arrays->values,
                              .inputs = share->inputs,
                              .targets = share->targets,
                              .scale = (float)(1.0 / (double)(divisor > 0 ? divisor : 1)),
                              .gradients = arrays->gradients,
                              .sums = share->sums,
                              .seed = (uint64_t)trainer->job->training.seed};
    *result = (struct ticket_result){.squares = -1};
    if (staging != NULL)
        ps_staging_bring(staging, share->stream);
    do {
        int64_t count = lesser(range.count - at, share->at_a_time);
        if (run_pass(share, grant, &range, at, count, &pass, staging, error) < 0)
            return -1;
        result->loss += share->sums->loss;
        result->correct += share->sums->correct;
        at += count;
    } while (at < range.count);
    result->examples = range.count;
    result->targets = range.count * targets_of_example(trainer);
    return staging != NULL ? ps_staging_wait(staging, error) : 0;
}

int ps_share_squares(struct ps_share *share, const float *gradients, double *ret_squares, struct error *error)
{
    const struct parameter_layout *layout = graph_layout(share->trainer->graph);
    int64_t elements = layout->elements - layout->statistics;
    gradient_norm_launch(share->stream, gradients + layout->statistics, elements, share->norm_blocks);
    if (device_stream_synchronise(share->stream, error) < 0)
        return -1;
    double norm = gradient_norm_finish(share->norm_blocks, elements);
    *ret_squares = norm * norm;
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

static int allocate(struct ps_share *share, struct error *error)
{
    struct device *device = share->trainer->device;
    const struct example_format *format = graph_example_format(share->trainer->graph);
    size_t examples = (size_t)share->at_a_time;
    size_t blocks = (size_t)gradient_norm_blocks(graph_layout(share->trainer->graph)->elements);
    const struct parameter_tensor *table = find_table(graph_layout(share->trainer->graph));
    share->indices = memory_allocate(examples, sizeof *share->indices);
    if (table != NULL)
        share->marked = memory_allocate((size_t)table->shape[0], sizeof *share->marked);
    if (device_stream_new(device, &share->stream, error) < 0 ||
        device_allocate(device, MEMORY_SHARED, examples * example_input_bytes(format), &share->inputs, error) < 0 ||
        device_allocate(device, MEMORY_SHARED, examples * example_target_bytes(format), &share->targets, error) < 0 ||
        device_allocate(device, MEMORY_SHARED, sizeof *share->sums, (void **)&share->sums, error) < 0)
        return -1;
    return device_allocate(device, MEMORY_SHARED, blocks * sizeof(double), (void **)&share->norm_blocks, error);
}

int ps_share_new(struct trainer *trainer, struct ps_share **ret_share, struct error *error)
{
    struct ps_share *share = memory_allocate(1, sizeof *share);
    share->trainer = trainer;
    share->at_a_time = graph_max_examples(trainer->graph);
    if (allocate(share, error) < 0) {
        ps_share_free(share);
        return -1;
    }
    *ret_share = share;
    return 0;
}

void ps_share_free(struct ps_share *share)
{
    if (share == NULL)
        return;
    struct device *device = share->trainer->device;
    if (share->stream)
        device_stream_free(share->stream);
    device_free(device, share->inputs);
    device_free(device, share->targets);
    device_free(device, share->sums);
    device_free(device, share->norm_blocks);
    free(share->indices);
    free(share->marked);
    free(share);
}
