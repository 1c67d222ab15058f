/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a pipeline's layers run. Its devices are real ones behind a table of functions that notes what is launched on
 * which, by which thread it is computed, and can hold a launch until something else has happened. Devices that are far
 * say that their memory is their own; a launch may then read and write no other's.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/lock.h"
#include "common/memory.h"
#include "tests/unit/worker/strategy/resnet_in_groups.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/device/backend.h"
#include "worker/device/operations.h"
#include "worker/model/graph.h"
#include "worker/model/partition.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/strategy.h"

#define DEVICES_MAX 10
#define STREAMS_MAX 64
#define LAUNCHES_MAX 65536
#define REGIONS_MAX 4096
#define BATCH 12
#define SHARDS 6
#define STEPS 2
#define PATIENCE_S 90

/* ---------------------------------------------------------------- devices that are watched */

struct launch {
    unsigned device;
    enum device_operation operation;
    const float *weight; /* of products and convolutions on their way there and back; else NULL */
    pthread_t thread;    /* that computed it */
};

/* Two products, named by their output units. Their first launches wait for each other; then one waits until the other is computed. */
struct hold {
    int64_t units, until;
};

/* Memory of a device. */
struct region {
    const struct device *device;
    const char *start;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct device_backend backend; /* the CPU's, but for launches and new streams */
    const struct device_backend *cpu;
    struct device *devices[DEVICES_MAX];
    unsigned device_count;
    struct device_stream *streams[STREAMS_MAX];
    unsigned device_of_stream[STREAMS_MAX], stream_count;
    struct launch launches[LAUNCHES_MAX];
    unsigned launch_count;
    struct hold hold;
    unsigned met;
    struct region regions[REGIONS_MAX]; /* of far devices */
    unsigned region_count, crossed;     /* crossed: copies between them */
    bool far;
    bool holds, awaits, reached, timed_out;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void note_thread(void *context)
{
    struct launch *launch = context;
    launch->thread = pthread_self();
}

/* With the lock held, on a stream's thread. */
static void wait_while(bool (*goes_on)(void))
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    while (goes_on() && !watch.timed_out)
        watch.timed_out = pthread_cond_timedwait(&watch.changed, &watch.lock, &deadline) != 0;
}

static bool one_is_missing(void)
{
    return watch.met < 2;
}

static bool other_is_not_computed(void)
{
    return !watch.reached;
}

/* Both are in flight: each is the next thing that its device computes. */
static void meet(void *context)
{
    (void)context;
    SCOPED_LOCK(&watch.lock);
    watch.met++;
    pthread_cond_broadcast(&watch.changed);
    wait_while(one_is_missing);
}

static void wait_for_other(void *context)
{
    (void)context;
    SCOPED_LOCK(&watch.lock);
    wait_while(other_is_not_computed);
}

static void reach(void *context)
{
    (void)context;
    SCOPED_LOCK(&watch.lock);
    watch.reached = true;
    pthread_cond_broadcast(&watch.changed);
}

static unsigned device_of(const struct device_stream *stream)
{
    for (unsigned i = 0; i < watch.stream_count; i++)
        if (watch.streams[i] == stream)
            return watch.device_of_stream[i];
    cr_assert(false, "a stream of no device");
    return 0;
}

static const float *weight_of(enum device_operation operation, const void *arguments, int64_t *ret_units)
{
    switch (operation) {
    case OPERATION_dense_forward:
        *ret_units = ((const struct dense_forward *)arguments)->n;
        return ((const struct dense_forward *)arguments)->weight;
    case OPERATION_dense_backward_data:
        return ((const struct dense_backward_data *)arguments)->weight;
    case OPERATION_conv2d_forward:
        return ((const struct conv2d_forward *)arguments)->weight;
    case OPERATION_conv2d_backward_data:
        return ((const struct conv2d_backward_data *)arguments)->weight;
    default:
        return NULL;
    }
}

/* ---- memory of far devices */

static int allocate_watched(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                            struct error *error)
{
    if (watch.cpu->allocate(device, kind, bytes, ret_memory, error) < 0)
        return -1;
    SCOPED_LOCK(&watch.lock);
    cr_assert_lt(watch.region_count, REGIONS_MAX);
    if (watch.far && kind == MEMORY_DEVICE)
        watch.regions[watch.region_count++] = (struct region){device, *ret_memory, bytes};
    return 0;
}

static void free_watched(struct device *device, void *memory)
{
    pthread_mutex_lock(&watch.lock);
    for (unsigned i = 0; i < watch.region_count; i++)
        if (watch.regions[i].start == memory)
            watch.regions[i] = watch.regions[--watch.region_count];
    pthread_mutex_unlock(&watch.lock);
    watch.cpu->free(device, memory);
}

/* NULL: the host's, or no address. */
static const struct device *owner_of(const void *address)
{
    for (unsigned i = 0; i < watch.region_count; i++) {
        const struct region *region = &watch.regions[i];
        if ((uintptr_t)address - (uintptr_t)region->start < region->bytes)
            return region->device;
    }
    return NULL;
}

static size_t argument_bytes(enum device_operation operation)
{
    static const size_t bytes[] = {
#define X(name) [OPERATION_##name] = sizeof(struct name),
        DEVICE_OPERATIONS(X)
#undef X
    };
    return bytes[operation];
}

/* Two bools may be the last word of a struct, with what an address has left behind them. */
static bool may_be_bools(enum device_operation operation, size_t at, const void *word)
{
    return at + sizeof(void *) == argument_bytes(operation) && ((uintptr_t)word & 0xfefe) == 0;
}

/* Every address among the arguments; copies alone may go from one device to another. */
static void expect_own_memory(unsigned device, enum device_operation operation, const void *arguments)
{
    for (size_t at = 0; at + sizeof(void *) <= argument_bytes(operation); at += sizeof(void *)) {
        const void *address;
        memcpy(&address, (const char *)arguments + at, sizeof address);
        const struct device *owner = may_be_bools(operation, at, address) ? NULL : owner_of(address);
        bool foreign = owner != NULL && owner != watch.devices[device];
        watch.crossed += foreign && operation == OPERATION_copy;
        cr_expect(!foreign || operation == OPERATION_copy, "operation %d of device %u has another's memory",
                  (int)operation, device);
    }
}

static void launch_watched(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    int64_t units = 0;
    pthread_mutex_lock(&watch.lock);
    cr_assert_lt(watch.launch_count, LAUNCHES_MAX);
    struct launch *launch = &watch.launches[watch.launch_count++];
    *launch = (struct launch){.device = device_of(stream), .operation = operation};
    expect_own_memory(launch->device, operation, arguments);
    launch->weight = weight_of(operation, arguments, &units);
    bool holds = units > 0 && units == watch.hold.units && !watch.holds;
    bool awaited = units > 0 && units == watch.hold.until && !watch.awaits;
    watch.holds |= holds;
    watch.awaits |= awaited;
    pthread_mutex_unlock(&watch.lock);
    if (holds || awaited)
        watch.cpu->stream_call(stream, meet, NULL);
    if (holds)
        watch.cpu->stream_call(stream, wait_for_other, NULL);
    watch.cpu->launch(stream, operation, arguments);
    watch.cpu->stream_call(stream, note_thread, launch);
    if (awaited)
        watch.cpu->stream_call(stream, reach, NULL);
}

static int stream_new_watched(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    if (watch.cpu->stream_new(device, ret_stream, error) < 0)
        return -1;
    (*ret_stream)->backend = &watch.backend;
    SCOPED_LOCK(&watch.lock);
    cr_assert_lt(watch.stream_count, STREAMS_MAX);
    watch.streams[watch.stream_count] = *ret_stream;
    for (unsigned i = 0; i < watch.device_count; i++)
        if (watch.devices[i] == device)
            watch.device_of_stream[watch.stream_count] = i;
    watch.stream_count++;
    return 0;
}

static struct device *open_watched(unsigned index)
{
    struct device *device;
    cr_assert_eq(device_open(&(struct device_options){.index = (int)index, .threads = 1}, &device, NULL), 0);
    watch.cpu = device->backend;
    watch.backend = *watch.cpu;
    watch.backend.launch = launch_watched;
    watch.backend.stream_new = stream_new_watched;
    watch.backend.allocate = allocate_watched;
    watch.backend.free = free_watched;
    watch.backend.memory_is_shared = !watch.far;
    device->backend = &watch.backend;
    watch.devices[watch.device_count++] = device;
    return device;
}

/* ---------------------------------------------------------------- training on them */

struct learner {
    struct job_document job;
    struct strategy_device devices[DEVICES_MAX];
    unsigned count, stages;
    struct graph *graph;
    struct dataset *dataset;
    struct sampler sampler;
    struct training_state state;
    struct strategy *strategy;
};

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static void parse_job(struct learner *learner, const char *model)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text =
        memory_format("{\"name\":\"test\",\"strategy\":{\"type\":\"Pipeline\"},\"devices\":{\"count\":%u},\"model\":%s,"
                      "\"data\":{\"format\":\"Synthetic\",\"examples\":%d},\"training\":{\"steps\":%d,\"batchSize\":%d,"
                      "\"optimizer\":{\"type\":\"AdamW\",\"learningRate\":\"0.02\"}}}",
                      learner->count, model, 4 * BATCH, STEPS, BATCH);
    SCOPED_JSON *json = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &json, &error), 0, "%s", error.message);
    cr_assert_eq(job_document_parse(json, &learner->job, &error), 0, "%s", error.message);
}

static void open_model(struct learner *learner)
{
    struct storage_map *storage;
    for (unsigned i = 0; i < learner->count; i++)
        learner->devices[i].device = open_watched(i);
    const struct graph_options options = {.device = learner->devices[0].device,
                                          .model = &learner->job.model,
                                          .max_examples = BATCH / SHARDS,
                                          .layout_only = true};
    cr_assert_eq(graph_new(&options, &learner->graph, NULL), 0);
    cr_assert_eq(storage_map_parse(NULL, &storage, NULL), 0);
    cr_assert_eq(dataset_open(&learner->job.data, storage, SPLIT_TRAIN, graph_example_format(learner->graph),
                              &learner->dataset, NULL),
                 0);
    storage_map_free(storage);
    learner->sampler = (struct sampler){.seed = 5, .count = dataset_count(learner->dataset)};
    if (strategy_makes_state(STRATEGY_PIPELINE, 1, learner->devices[0].device, learner->count))
        return;
    cr_assert_eq(training_state_init(&learner->state, learner->devices[0].device, graph_layout(learner->graph),
                                     &learner->job.training.optimizer, 5, NULL),
                 0);
}

static void open_strategy(struct learner *learner)
{
    struct error error = ERROR_INIT;
    const struct strategy_options options = {.type = STRATEGY_PIPELINE,
                                             .device = learner->devices[0].device,
                                             .graph = learner->graph,
                                             .devices = learner->devices,
                                             .device_count = learner->count,
                                             .dataset = learner->dataset,
                                             .sampler = &learner->sampler,
                                             .optimizer = &learner->job.training.optimizer,
                                             .state = &learner->state,
                                             .global_batch = BATCH,
                                             .logical_shards = SHARDS,
                                             .pipeline.model = &learner->job.model,
                                             .pipeline.stages = learner->stages,
                                             .calls.restore = fresh_state};
    cr_assert_eq(strategy_open(&options, &learner->strategy, &error), 0, "%s", error.message);
    cr_assert_eq(strategy_reform(learner->strategy, &error), 0, "%s", error.message);
}

static void take_step(struct learner *learner)
{
    struct error error = ERROR_INIT;
    struct strategy_result result;
    cr_assert_eq(strategy_step(learner->strategy, 0.02, 0, &result, &error), 0, "%s", error.message);
}

/* Two steps; what was launched before the first is forgotten. */
static void train_in_stages(struct learner *learner, const char *model, unsigned devices, unsigned stages)
{
    *learner = (struct learner){.count = devices, .stages = stages};
    parse_job(learner, model);
    open_model(learner);
    open_strategy(learner);
    watch.launch_count = 0;
    unsigned regions = watch.region_count;
    for (int i = 0; i < STEPS; i++)
        take_step(learner);
    cr_expect_eq(watch.region_count, regions,
                 "far devices allocate memory in a step, which may wait for what is under way");
}

static void train(struct learner *learner, const char *model, unsigned devices)
{
    train_in_stages(learner, model, devices, devices);
}

static void close_learner(struct learner *learner)
{
    strategy_close(learner->strategy);
    training_state_release(&learner->state);
    dataset_free(learner->dataset);
    graph_free(learner->graph);
    for (unsigned i = 0; i < learner->count; i++)
        device_close(learner->devices[i].device);
    job_document_release(&learner->job);
}

/* ---------------------------------------------------------------- where layers ran */

/* Returns the layer with a tensor that begins at an address; -1: none. */
static int layer_at(const struct learner *learner, const float *weight)
{
    const struct parameter_layout *layout = graph_layout(learner->graph);
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        if (learner->state.parameters + layout->tensors[t].offset != weight)
            continue;
        for (unsigned i = 0; i < graph_layer_count(learner->graph); i++) {
            const char *name = graph_layer_name(learner->graph, i);
            if (strncmp(layout->tensors[t].name, name, strlen(name)) == 0 &&
                layout->tensors[t].name[strlen(name)] == '.')
                return (int)i;
        }
    }
    return -1;
}

static void expect_place(const struct learner *learner, const struct graph_partition *given, int layer, unsigned device)
{
    cr_expect_eq(device, given->stage_of[layer], "%s ran on device %u, not on %u",
                 graph_layer_name(learner->graph, (unsigned)layer), device, given->stage_of[layer]);
}

/* That every product and convolution was computed there and, but for the first, back, on the device that its layer names, once a
 * micro-batch; returns how many layers have weights. */
static unsigned expect_layers_on_their_devices(const struct learner *learner)
{
    struct graph_partition given;
    cr_assert_eq(partition_given(learner->graph, learner->count, &given, NULL), 0);
    SCOPED_FREE unsigned *there = memory_allocate(given.layers, sizeof *there);
    unsigned weighted = 0;
    for (unsigned i = 0; i < watch.launch_count; i++) {
        const struct launch *launch = &watch.launches[i];
        int layer = launch->weight ? layer_at(learner, launch->weight) : -1;
        if (layer < 0)
            continue;
        bool forward = launch->operation == OPERATION_dense_forward || launch->operation == OPERATION_conv2d_forward;
        there[layer] += forward;
        expect_place(learner, &given, layer, launch->device);
    }
    for (unsigned i = 0; i < given.layers; i++) {
        cr_expect(there[i] == 0 || there[i] == STEPS * SHARDS, "layer %u went forward %u times", i, there[i]);
        weighted += there[i] > 0;
    }
    partition_release(&given);
    return weighted;
}

/* That each device computed with a thread of its own, and nobody else's. */
static void expect_threads_of_their_own(unsigned devices)
{
    pthread_t threads[DEVICES_MAX];
    bool known[DEVICES_MAX] = {false};
    for (unsigned i = 0; i < watch.launch_count; i++) {
        const struct launch *launch = &watch.launches[i];
        if (!launch->weight) /* the update has a stream of its own, on the first device */
            continue;
        if (!known[launch->device])
            threads[launch->device] = launch->thread;
        known[launch->device] = true;
        cr_expect(pthread_equal(threads[launch->device], launch->thread), "device %u has two threads", launch->device);
    }
    for (unsigned a = 0; a < devices; a++)
        for (unsigned b = 0; b < a; b++)
            cr_expect(!known[a] || !known[b] || !pthread_equal(threads[a], threads[b]),
                      "devices %u and %u share a thread", a, b);
}

#define DENSE(name, units, input, device)                                                                              \
    "{\"type\":\"Dense\",\"name\":\"" name "\",\"units\":" #units input ",\"device\":" #device "}"
#define FROM(input) ",\"inputs\":[\"" input "\"]"
#define LEFT_UNITS 20
#define RIGHT_UNITS 24

/* Two branches between a fork and a join, each on a device of its own. */
static const char branches[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("fork", 16, "", 0) "," DENSE("left1", 20, FROM("fork"), 1) "," DENSE(
        "left2", 14, "", 1) "," DENSE("right1", 24, FROM("fork"),
                                      2) "," DENSE("right2", 14, "", 2) ",{\"type\":\"Add\",\"name\":\"join\","
                                                                        "\"inputs\":[\"left2\",\"right2\"],"
                                                                        "\"device\":3}," DENSE("head", 10, "", 3) "]}";

Test(pipeline_devices, each_layer_runs_on_the_device_that_it_names, .timeout = 240)
{
    struct learner learner;
    train(&learner, branches, 4);
    cr_expect_eq(expect_layers_on_their_devices(&learner), 6);
    expect_threads_of_their_own(4);
    for (unsigned i = 0; i < watch.launch_count; i++)
        if (watch.launches[i].operation == OPERATION_add_forward)
            cr_expect_eq(watch.launches[i].device, 3);
    close_learner(&learner);
}

/* The first products of both branches are in flight at once, and one of them is held until the other is computed. */
static void expect_side_by_side(int64_t units, int64_t until)
{
    struct learner learner;
    watch.hold = (struct hold){units, until};
    train(&learner, branches, 4);
    cr_expect(watch.met == 2 && watch.reached && !watch.timed_out, "the branches waited for each other");
    close_learner(&learner);
}

Test(pipeline_devices, while_one_branch_is_held_the_other_is_computed, .timeout = 240)
{
    expect_side_by_side(LEFT_UNITS, RIGHT_UNITS);
}

Test(pipeline_devices, while_the_other_branch_is_held_the_first_is_computed, .timeout = 240)
{
    expect_side_by_side(RIGHT_UNITS, LEFT_UNITS);
}

/* ---------------------------------------------------------------- devices that are far from each other */

static void spoil(float *values, int64_t count)
{
    memset(values, 0xff, (size_t)count * sizeof *values);
}

/* Copies the devices' parameters and slots to the host, overwrites them, and copies them back. */
static void come_back_from_the_host(struct training_state *state, unsigned parts)
{
    cr_assert_eq(training_state_to_host(state, NULL), 0);
    for (unsigned p = 0; p < parts; p++) {
        struct state_part part = training_state_part(state, p);
        spoil(part.parameters, part.layout->elements);
        for (unsigned s = 0; s < state->slot_count; s++)
            spoil(part.slots[s], part.layout->elements);
    }
    cr_assert_eq(training_state_to_device(state, NULL), 0);
}

/* Expects the same bits of the host's copy of the state after the same steps and one more. Returns the number of copies between devices. */
static unsigned expect_bits_of_near_ones(const char *model, unsigned devices, unsigned stages)
{
    struct learner learner;
    train_in_stages(&learner, model, devices, stages);
    take_step(&learner);
    uint32_t digest = training_state_digest(&learner.state);
    close_learner(&learner);
    watch.device_count = watch.stream_count = 0;
    watch.far = true;
    train_in_stages(&learner, model, devices, stages);
    cr_assert_not_null(learner.state.parts);
    come_back_from_the_host(&learner.state, devices);
    take_step(&learner);
    cr_assert_eq(training_state_to_host(&learner.state, NULL), 0);
    cr_expect_eq(training_state_digest(&learner.state), digest);
    unsigned crossed = watch.crossed;
    close_learner(&learner);
    cr_expect_eq(watch.region_count, 0);
    return crossed;
}

/* Either way between each branch and what is before and behind it, once a micro-batch. */
Test(pipeline_devices, far_ones_copy_what_crosses_and_compute_with_their_own_memory, .timeout = 240)
{
    cr_expect_eq(expect_bits_of_near_ones(branches, 4, 4), 2 * 4 * SHARDS * (STEPS + 1));
}

static const char tied[] = "{\"inputShape\":[16],\"layers\":["
                           "{\"type\":\"Embedding\",\"name\":\"words\",\"size\":61,\"units\":16,\"device\":0},"
                           "{\"type\":\"Dense\",\"units\":16},"
                           "{\"type\":\"GELU\",\"device\":1},"
                           "{\"type\":\"Dense\",\"units\":61,\"weightsOf\":\"words\",\"bias\":false}]}";

/* Values, their gradient and the table's once a micro-batch; the table's sum once a step. */
Test(pipeline_devices, far_ones_have_copies_of_a_table, .timeout = 240)
{
    cr_expect_eq(expect_bits_of_near_ones(tied, 2, 2), (3 * SHARDS + 1) * (STEPS + 1));
}

/* Which the borrowers' stores take from the host then, too. */
Test(pipeline_devices, far_replicas_add_their_gradients_on_the_host, .timeout = 240)
{
    cr_expect_eq(expect_bits_of_near_ones(tied, 4, 2), 3 * SHARDS * (STEPS + 1));
}

/* ---------------------------------------------------------------- a ResNet over ten devices */

Test(pipeline_devices, a_resnet_in_equal_groups_runs_on_all_ten_devices, .timeout = 240)
{
    struct learner learner;
    SCOPED_FREE char *model = resnet_in_groups(DEVICES_MAX);
    train(&learner, model, DEVICES_MAX);
    cr_expect_eq(expect_layers_on_their_devices(&learner), 20);
    expect_threads_of_their_own(DEVICES_MAX);
    unsigned launched[DEVICES_MAX] = {0};
    for (unsigned i = 0; i < watch.launch_count; i++)
        launched[watch.launches[i].device] += watch.launches[i].weight != NULL;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        cr_expect_gt(launched[i], 0, "device %u had nothing to do", i);
    close_learner(&learner);
}
