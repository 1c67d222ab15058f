/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"

/* A worker has one ticket more than the one that it computes (ticket_scheduler.h), or two before it begins. */
#define FORESEEN_MAX 2
/* Patience with a read that is no longer needed, in case a volume hangs. */
#define FREE_PATIENCE_MS 10000

struct buffer_of_examples {
    struct ps_examples holds;
    void *inputs, *targets;
};

/* The buffers of one device. */
struct lane {
    struct device *device;
    struct buffer_of_examples buffers[2];
    unsigned current; /* the caller's; the other one is the thread's */
    struct ps_examples wanted, following, foreseen[FORESEEN_MAX];
    unsigned foreseen_count;
    bool has_failed; /* what is wanted: */
    struct error failure;
};

struct ps_reader {
    struct ps_reader_options options;
    struct sampler sampler;
    int64_t *indices;
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* of what follows, but for the bytes of examples */
    pthread_cond_t changed;
    struct lane lanes[STRATEGY_DEVICES_MAX];
    bool busy, closing, cancelled;
    bool given_up; /* the thread is still busy after all patience */
};

static bool are_same(const struct ps_examples *a, const struct ps_examples *b)
{
    return a->data_epoch == b->data_epoch && a->first == b->first && a->count == b->count;
}

/* Which buffer has them. */
static bool has(const struct lane *lane, const struct ps_examples *examples, unsigned *ret_buffer)
{
    for (unsigned i = 0; i < 2; i++) {
        *ret_buffer = i;
        if (are_same(&lane->buffers[i].holds, examples))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- the thread */

static bool lacks(const struct lane *lane, const struct ps_examples *examples)
{
    unsigned buffer;
    return examples->count > 0 && !has(lane, examples, &buffer);
}

/* Returns what to read ahead. Only one range fits; ranges announced after it wait until it is
 * taken. Nothing is read ahead before the caller has taken what it waits for. */
static const struct ps_examples *next_ahead(const struct lane *lane)
{
    static const struct ps_examples none;
    if (lane->wanted.count > 0)
        return &none;
    if (lane->following.count > 0)
        return &lane->following;
    return lane->foreseen_count > 0 ? &lane->foreseen[0] : &none;
}

static struct lane *choose(struct ps_reader *reader, struct ps_examples *ret_examples)
{
    for (unsigned i = 0; i < reader->options.device_count; i++) {
        struct lane *lane = &reader->lanes[i];
        *ret_examples = lane->wanted;
        if (!lane->has_failed && lacks(lane, &lane->wanted))
            return lane;
    }
    for (unsigned i = 0; i < reader->options.device_count; i++) {
        struct lane *lane = &reader->lanes[i];
        *ret_examples = *next_ahead(lane);
        if (lacks(lane, ret_examples))
            return lane;
    }
    return NULL;
}

static int read_into(struct ps_reader *reader, const struct buffer_of_examples *buffer,
                     const struct ps_examples *examples, struct error *error)
{
    const struct sampler *sampler = &reader->sampler;
    const struct dataset_epoch epoch = {sampler->seed, examples->data_epoch};
    for (int64_t i = 0; i < examples->count; i++)
        reader->indices[i] = sampler_index(sampler, examples->data_epoch, examples->first + i);
    return dataset_read_in_epoch(reader->options.dataset, epoch, reader->indices, examples->count, buffer->inputs,
                                 buffer->targets, error);
}

static void drop_foreseen(struct lane *lane, unsigned count)
{
    lane->foreseen_count -= count;
    for (unsigned i = 0; i < lane->foreseen_count; i++)
        lane->foreseen[i] = lane->foreseen[i + count];
}

static void drop(struct lane *lane, const struct ps_examples *examples)
{
    if (are_same(&lane->following, examples))
        lane->following.count = 0;
    for (unsigned i = lane->foreseen_count; i > 0; i--)
        if (are_same(&lane->foreseen[i - 1], examples)) {
            drop_foreseen(lane, i);
            break;
        }
}

static void note_failure(struct lane *lane, const struct ps_examples *examples, const struct error *cause)
{
    drop(lane, examples);
    if (!are_same(&lane->wanted, examples))
        return;
    lane->has_failed = true;
    lane->failure = *cause;
}

/* Called with the lock held; releases it while reading. */
static void fill(struct ps_reader *reader, struct lane *lane, struct ps_examples examples)
{
    struct buffer_of_examples *buffer = &lane->buffers[!lane->current];
    struct error cause = ERROR_INIT;
    buffer->holds.count = 0;
    reader->busy = true;
    pthread_mutex_unlock(&reader->lock);
    int result = read_into(reader, buffer, &examples, &cause);
    pthread_mutex_lock(&reader->lock);
    reader->busy = false;
    if (result == 0)
        buffer->holds = examples;
    else
        note_failure(lane, &examples, &cause);
    pthread_cond_broadcast(&reader->changed);
}

static void *run(void *context)
{
    struct ps_reader *reader = context;
    SCOPED_LOCK(&reader->lock);
    while (!reader->closing) {
        struct ps_examples examples;
        struct lane *lane = choose(reader, &examples);
        if (lane != NULL)
            fill(reader, lane, examples);
        else
            pthread_cond_wait(&reader->changed, &reader->lock);
    }
    return NULL;
}

/* ---------------------------------------------------------------- the caller's side */

/* With the lock held. Those that are not there are read into the other buffer, which is the caller's then. */
static int await(struct ps_reader *reader, struct lane *lane, struct error *error)
{
    while (lacks(lane, &lane->wanted) && !lane->has_failed && !reader->cancelled)
        pthread_cond_wait(&reader->changed, &reader->lock);
    if (reader->cancelled)
        return error_set(error, ERROR_CANCELLED, "cancelled: the examples are no longer needed");
    if (lane->has_failed) {
        if (error != NULL)
            *error = lane->failure;
        return -1;
    }
    if (lane->wanted.count > 0)
        (void)has(lane, &lane->wanted, &lane->current);
    return 0;
}

int ps_reader_take(struct ps_reader *reader, unsigned device, struct ps_examples examples, struct ps_examples following,
                   struct ps_batch *ret_batch, struct error *error)
{
    struct lane *lane = &reader->lanes[device];
    SCOPED_LOCK(&reader->lock);
    drop(lane, &examples);
    lane->following = following;
    lane->wanted = examples;
    lane->has_failed = false;
    pthread_cond_broadcast(&reader->changed);
    int result = await(reader, lane, error);
    lane->wanted.count = 0;
    *ret_batch = (struct ps_batch){lane->buffers[lane->current].inputs, lane->buffers[lane->current].targets};
    pthread_cond_broadcast(&reader->changed); /* the other buffer is free */
    return result;
}

void ps_reader_announce(struct ps_reader *reader, unsigned device, struct ps_examples examples)
{
    struct lane *lane = &reader->lanes[device];
    if (examples.count == 0)
        return;
    SCOPED_LOCK(&reader->lock);
    if (lane->foreseen_count == FORESEEN_MAX) /* the first is void */
        drop_foreseen(lane, 1);
    lane->foreseen[lane->foreseen_count++] = examples;
    pthread_cond_broadcast(&reader->changed);
}

void ps_reader_cancel(struct ps_reader *reader)
{
    SCOPED_LOCK(&reader->lock);
    reader->cancelled = true;
    pthread_cond_broadcast(&reader->changed);
}

/* With the lock held. */
static void await_rest(struct ps_reader *reader, int64_t ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + ms * 1000000;
    while (reader->busy && condition_wait_until(&reader->changed, &reader->lock, deadline_ns))
        ;
    reader->given_up = reader->busy;
}

bool ps_reader_drain(struct ps_reader *reader, int64_t ms)
{
    SCOPED_LOCK(&reader->lock);
    for (unsigned i = 0; i < reader->options.device_count; i++) {
        reader->lanes[i].following.count = 0;
        reader->lanes[i].foreseen_count = 0;
    }
    await_rest(reader, ms);
    return !reader->given_up;
}

/* ---------------------------------------------------------------- life cycle */

static int allocate(struct ps_reader *reader, unsigned index, struct error *error)
{
    const struct strategy_device *device = &reader->options.devices[index];
    const struct example_format *format = graph_example_format(device->graph);
    size_t examples = (size_t)reader->options.at_a_time;
    struct lane *lane = &reader->lanes[index];
    lane->device = device->device;
    for (unsigned i = 0; i < 2; i++) {
        struct buffer_of_examples *buffer = &lane->buffers[i];
        if (device_allocate(lane->device, MEMORY_SHARED, examples * example_input_bytes(format), &buffer->inputs,
                            error) < 0 ||
            device_allocate(lane->device, MEMORY_SHARED, examples * example_target_bytes(format), &buffer->targets,
                            error) < 0)
            return -1;
    }
    return 0;
}

static int start(struct ps_reader *reader, struct error *error)
{
    for (unsigned i = 0; i < reader->options.device_count; i++)
        if (allocate(reader, i, error) < 0)
            return -1;
    errno = pthread_create(&reader->thread, NULL, run, reader);
    reader->runs = errno == 0;
    return reader->runs ? 0 : error_set_errno(error, "cannot start the thread that reads examples");
}

int ps_reader_new(const struct ps_reader_options *options, struct ps_reader **ret_reader, struct error *error)
{
    struct ps_reader *reader = memory_allocate(1, sizeof *reader);
    reader->options = *options;
    reader->sampler = *options->sampler;
    reader->indices = memory_allocate((size_t)options->at_a_time, sizeof *reader->indices);
    pthread_mutex_init(&reader->lock, NULL);
    condition_init(&reader->changed);
    if (start(reader, error) < 0) {
        ps_reader_free(reader);
        return -1;
    }
    *ret_reader = reader;
    return 0;
}

/* Stops the thread and returns whether it has ended. A read that was given up once is not waited
 * for again, but may have finished meanwhile. */
static bool stop(struct ps_reader *reader)
{
    pthread_t thread = reader->thread;
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_cond_broadcast(&reader->changed);
    await_rest(reader, reader->given_up ? 0 : FREE_PATIENCE_MS);
    bool ends = !reader->given_up;
    pthread_mutex_unlock(&reader->lock);
    if (ends)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return ends;
}

bool ps_reader_free(struct ps_reader *reader)
{
    if (reader == NULL)
        return true;
    if (reader->runs && !stop(reader))
        return false;
    for (unsigned i = 0; i < reader->options.device_count; i++)
        for (unsigned j = 0; j < 2; j++) {
            device_free(reader->lanes[i].device, reader->lanes[i].buffers[j].inputs);
            device_free(reader->lanes[i].device, reader->lanes[i].buffers[j].targets);
        }
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->lock);
    free(reader->indices);
    free(reader);
    return true;
}
