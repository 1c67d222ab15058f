/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory plan against what devices then really hold, and the words for one that does not fit.
 */
#include "worker/train/memory_budget.h"
#include "tests/unit/json_of.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/memory.h"
#include "worker/device/backend.h"

#define MIB (1024 * 1024)

struct scene {
    struct job_document job;
    struct identity identity;
    struct crew_seat seat;
    struct trainer trainer;
    struct memory_plans plans;
    struct sampler sampler;
    struct dataset *dataset;
    struct training_state state;
    struct strategy *strategy;
};

/* ---- a CPU that plays a GPU: it has memory of its own, and counts what is taken */

#define STREAM_BYTES (1 << 20)
#define FAR_BYTES ((int64_t)64 << 30)
static bool devices_are_far;
static struct device_backend far_backend;
static const struct device_backend *near_backend;
static int64_t pinned;

struct far_device {
    struct device *device;
    int64_t taken;
};
static struct far_device far_devices[STRATEGY_DEVICES_MAX];

static struct far_device *far_device_of(struct device *device)
{
    struct far_device *at = far_devices;
    while (at->device && at->device != device)
        at++;
    at->device = device;
    return at;
}

static int far_allocate(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                        struct error *error)
{
    *(kind == MEMORY_SHARED ? &pinned : &far_device_of(device)->taken) += (int64_t)bytes;
    return near_backend->allocate(device, kind, bytes, ret_memory, error);
}

static int far_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    far_device_of(device)->taken += STREAM_BYTES;
    return near_backend->stream_new(device, ret_stream, error);
}

static int far_room(struct device *device, int64_t *ret_total, int64_t *ret_free, struct error *error)
{
    (void)error;
    *ret_total = FAR_BYTES;
    *ret_free = FAR_BYTES - far_device_of(device)->taken;
    return 0;
}

static void put_far_away(struct device *device)
{
    near_backend = device->backend;
    far_backend = *near_backend;
    far_backend.memory_is_shared = false;
    far_backend.allocate = far_allocate;
    far_backend.stream_new = far_stream_new;
    far_backend.memory_room = far_room;
    far_backend.stream_bytes = STREAM_BYTES;
    device->backend = &far_backend;
}

/* ---- jobs */

static void open_job(struct scene *scene, const char *strategy, int devices, const char *model, const char *training)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text = memory_format(
        "{\"name\":\"test\",\"strategy\":{%s},\"devices\":{\"count\":%d},\"model\":{%s},\"data\":{\"format\":"
        "\"Synthetic\",\"examples\":600},\"training\":{\"steps\":1,%s}}",
        strategy, devices, model, training);
    SCOPED_JSON *json = json_of(text);
    cr_assert_eq(job_document_parse(json, &scene->job, &error), 0, "%s", error.message);
}

static void open_scene(struct scene *scene, const char *strategy, int devices, const char *model, const char *training)
{
    struct error error = ERROR_INIT;
    *scene = (struct scene){.seat = {"worker", 0, "worker-0", 2222}};
    open_job(scene, strategy, devices, model, training);
    struct trainer *trainer = &scene->trainer;
    trainer->job = &scene->job;
    trainer->identity = &scene->identity;
    trainer->crew = (struct crew){.seats = &scene->seat, .size = 1, .least = 1, .expected = 1};
    for (int i = 0; i < devices; i++, trainer->device_count++) {
        cr_assert_eq(device_open(&(struct device_options){.index = i, .threads = 1}, &trainer->devices[i].device, NULL),
                     0);
        if (devices_are_far)
            put_far_away(trainer->devices[i].device);
    }
    trainer->device = trainer->devices[0].device;
    cr_assert_eq(step_plan_batches(&scene->job, 1, 0, &trainer->plan, &error), 0, "%s", error.message);
    cr_assert_eq(memory_budget_plan(trainer, &scene->job, &scene->plans, &error), 0, "%s", error.message);
}

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

/* Opens everything that a trainer needs for its steps. */
static void open_all(struct scene *scene)
{
    struct error error = ERROR_INIT;
    struct trainer *trainer = &scene->trainer;
    const struct job_document *job = &scene->job;
    struct storage_map *storage;
    for (unsigned i = 0; i < trainer->device_count; i++) {
        const struct graph_options options = {.device = trainer->devices[i].device,
                                              .model = &job->model,
                                              .max_examples = trainer->plan.max_shard_examples,
                                              .layout_only = job->strategy.type == STRATEGY_PIPELINE};
        cr_assert_eq(graph_new(&options, &trainer->devices[i].graph, &error), 0, "%s", error.message);
    }
    struct graph *graph = trainer->devices[0].graph;
    cr_assert_eq(storage_map_parse(NULL, &storage, NULL), 0);
    cr_assert_eq(dataset_open(&job->data, storage, SPLIT_TRAIN, graph_example_format(graph), &scene->dataset, NULL), 0);
    storage_map_free(storage);
    scene->sampler = (struct sampler){.count = dataset_count(scene->dataset)};
    if (!strategy_makes_state(job->strategy.type, 1, trainer->device, trainer->device_count))
        cr_assert_eq(
            training_state_init(&scene->state, trainer->device, graph_layout(graph), &job->training.optimizer, 1, NULL),
            0);
    const struct strategy_options options = {
        .type = job->strategy.type,
        .device = trainer->device,
        .graph = graph,
        .pipeline.model = &job->model,
        .pipeline.stages = job->strategy.stages == FIELD_UNSET ? 0 : (unsigned)job->strategy.stages,
        .pipeline.recompute = job->strategy.recompute,
        .devices = trainer->devices,
        .device_count = trainer->device_count,
        .dataset = scene->dataset,
        .sampler = &scene->sampler,
        .optimizer = &job->training.optimizer,
        .state = &scene->state,
        .global_batch = trainer->plan.global_batch,
        .logical_shards = (unsigned)trainer->plan.logical_shards,
        .calls.restore = fresh_state};
    cr_assert_eq(strategy_open(&options, &scene->strategy, &error), 0, "%s", error.message);
}

static void close_scene(struct scene *scene)
{
    if (scene->strategy) {
        strategy_close(scene->strategy);
        training_state_release(&scene->state);
        dataset_free(scene->dataset);
    }
    for (unsigned i = 0; i < scene->trainer.device_count; i++) {
        graph_free(scene->trainer.devices[i].graph);
        device_close(scene->trainer.devices[i].device);
    }
    job_document_release(&scene->job);
}

#define RESNET "\"preset\":\"resnet20\",\"width\":8,\"depth\":1,\"inputShape\":[16,16,3]"
/* Layers behind the first on device `second`. */
#define STAGES(second)                                                                                                 \
    "\"inputShape\":[24,24,2],\"loss\":\"SoftmaxCrossEntropy\",\"layers\":[{\"type\":\"Conv2D\",\"filters\":16,"       \
    "\"kernel\":3,"                                                                                                    \
    "\"device\":0},{\"type\":\"ReLU\"},{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":96,\"device\":" #second    \
    "},"                                                                                                               \
    "{\"type\":\"ReLU\"},{\"type\":\"Dense\",\"units\":10}]"
#define BATCH "\"batchSize\":48,\"logicalShards\":6"

/* One that is made later; a Pipeline evaluates with the batches of its steps. */
static int64_t evaluation_bytes(const struct scene *scene)
{
    const struct example_format *format = graph_example_format(scene->trainer.devices[0].graph);
    int64_t example = (int64_t)(example_input_bytes(format) + example_target_bytes(format));
    return scene->job.strategy.type == STRATEGY_PIPELINE ? 0 : scene->trainer.plan.max_shard_examples * example;
}

/* Small things (sums, blocks of norms, indices) are not in the plan. */
static void expect_truth(const char *strategy, int devices, const char *model, const char *training)
{
    struct scene scene;
    int64_t before = host_memory_held();
    open_scene(&scene, strategy, devices, model, training);
    open_all(&scene);
    int64_t planned = memory_plan_bytes(&scene.plans.host) - scene.plans.host.bytes[MEMORY_PROGRAM];
    planned -= evaluation_bytes(&scene);
    int64_t held = host_memory_held() - before;
    cr_expect(held >= planned && held < planned + planned / 50 + 65536, "%s, %d devices, %s: %lld planned, %lld held",
              strategy, devices, model, (long long)planned, (long long)held);
    close_scene(&scene);
}

Test(memory_budget, the_plan_is_what_is_allocated)
{
    expect_truth("\"type\":\"OneDevice\"", 1, RESNET, BATCH);
    expect_truth("\"type\":\"OneDevice\"", 1, RESNET ",\"statistics\":\"Global\"", BATCH);
    expect_truth("\"type\":\"OneDevice\"", 1, RESNET,
                 "\"batchSize\":40,\"gradientAccumulation\":5,\"optimizer\":{\"type\":\"AdamW\"}");
    expect_truth("\"type\":\"Mirrored\"", 2, RESNET, BATCH);
    expect_truth("\"type\":\"Mirrored\"", 3, RESNET ",\"statistics\":\"Global\"", BATCH);
    expect_truth("\"type\":\"CentralStorage\"", 2, RESNET, BATCH);
    expect_truth("\"type\":\"CentralStorage\"", 2, RESNET ",\"statistics\":\"Global\"", BATCH);
    expect_truth("\"type\":\"Pipeline\"", 2, STAGES(1), BATCH);
    expect_truth("\"type\":\"Pipeline\",\"stages\":2", 4, STAGES(1), BATCH ",\"optimizer\":{\"type\":\"AdamW\"}");
}

static struct error refusal(const struct scene *scene, int64_t limit, enum host_memory_limiter limiter)
{
    struct error error = ERROR_INIT;
    struct host_memory_limit held = {.bytes = limit, .limiter = limiter};
    cr_expect_eq(memory_budget_check(&scene->trainer, &scene->plans, held, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    return error;
}

#define EXPECT_SAYS(error, words) cr_expect(strstr((error).message, words), "%s lacks: %s", (error).message, words)

/* ---- a GPU */

/* Expects the largest allocation of a device, and the host\'s pinned memory, to be the planned bytes or at most two per cent more. */
static void expect_far_truth(const char *strategy, int devices, const char *model, const char *training)
{
    struct scene scene;
    devices_are_far = true;
    memset(far_devices, 0, sizeof far_devices);
    open_scene(&scene, strategy, devices, model, training);
    pinned = 0;
    open_all(&scene);
    int64_t host = memory_plan_bytes(&scene.plans.host) - scene.plans.host.bytes[MEMORY_PROGRAM];
    host -= evaluation_bytes(&scene);
    int64_t device = memory_plan_bytes(&scene.plans.device), most = 0;
    /* Memory for values and gradients between stages is allocated in the first step. */
    if (scene.job.strategy.type == STRATEGY_PIPELINE)
        device -= scene.plans.device.bytes[MEMORY_EXCHANGE];
    for (int i = 0; i < devices; i++) {
        int64_t taken = far_device_of(scene.trainer.devices[i].device)->taken;
        /* The memory in use before the steps is assumed to be the same on all devices; all but the first lack the worker\'s own stream. */
        if (i > 0 && scene.job.strategy.type == STRATEGY_PIPELINE)
            taken -= STREAM_BYTES;
        most = taken > most ? taken : most;
    }
    cr_expect(most >= device && most < device + device / 50 + 65536, "%s, %d devices, %s: %lld planned, %lld taken",
              strategy, devices, model, (long long)device, (long long)most);
    cr_expect(pinned >= host && pinned < host + host / 50 + 65536, "%s, %d devices, %s: %lld planned, %lld pinned",
              strategy, devices, model, (long long)host, (long long)pinned);
    close_scene(&scene);
}

Test(memory_budget, the_plan_of_a_gpu_and_of_its_host_is_what_is_allocated)
{
    expect_far_truth("\"type\":\"OneDevice\"", 1, RESNET, BATCH);
    expect_far_truth("\"type\":\"OneDevice\"", 1, RESNET,
                     "\"batchSize\":40,\"gradientAccumulation\":5,\"optimizer\":{\"type\":\"AdamW\"}");
    expect_far_truth("\"type\":\"Mirrored\"", 2, RESNET, BATCH);
    expect_far_truth("\"type\":\"Mirrored\"", 3, RESNET, BATCH);
    expect_far_truth("\"type\":\"CentralStorage\"", 3, RESNET, BATCH);
    expect_far_truth("\"type\":\"Pipeline\"", 1, STAGES(0), BATCH);
    expect_far_truth("\"type\":\"Pipeline\"", 2, STAGES(1), BATCH);
    expect_far_truth("\"type\":\"Pipeline\",\"stages\":2", 4, STAGES(1), BATCH ",\"optimizer\":{\"type\":\"AdamW\"}");
}

Test(memory_budget, what_does_not_fit_a_gpu_is_told_before_any_of_it_is_taken)
{
    struct scene scene;
    struct error error = ERROR_INIT;
    const struct host_memory_limit enough = {.bytes = INT64_MAX};
    devices_are_far = true;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet50\"", "\"batchSize\":1024");
    cr_expect_eq(memory_budget_check(&scene.trainer, &scene.plans, enough, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    EXPECT_SAYS(error, " MiB of a GPU, which has 65536 MiB: parameters 98 MiB, gradients 98 MiB, optimizer ");
    EXPECT_SAYS(error, "activations ");
    EXPECT_SAYS(error, "work spaces of streams 3.0 MiB");
    EXPECT_SAYS(error, "it would fit with training.batchSize: ");
    EXPECT_SAYS(error, "or with training.gradientAccumulation: ");
    cr_expect_null(strstr(error.message, "GiB"), "%s", error.message);
    EXPECT_SAYS(error, "or with a GPU of ");
    cr_expect_eq(far_devices[0].taken, 0);
    close_scene(&scene);
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet50\"", "\"batchSize\":16");
    cr_expect_eq(memory_budget_check(&scene.trainer, &scene.plans, enough, &error), 0, "%s", error.message);
    close_scene(&scene);
}

/* Copies of the state that the host has, and batches. */
Test(memory_budget, what_a_gpu_pins_counts_against_the_hosts_limit)
{
    struct scene scene;
    devices_are_far = true;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet50\"",
               "\"batchSize\":16,\"optimizer\":{\"type\":\"AdamW\"}");
    struct error error = refusal(&scene, 128 * MIB, HOST_MEMORY_OF_CGROUP);
    EXPECT_SAYS(error, "but the cgroup's limit is 128 MiB: parameters 98 MiB, optimizer 195 MiB, input ");
    close_scene(&scene);
}

/* One more for each shard that is computed beside the others. */
Test(memory_budget, global_statistics_take_a_graph_a_shard)
{
    struct scene shard, global;
    open_scene(&shard, "\"type\":\"OneDevice\"", 1, RESNET, BATCH);
    open_scene(&global, "\"type\":\"OneDevice\"", 1, RESNET ",\"statistics\":\"Global\"", BATCH);
    cr_expect_eq(global.plans.host.bytes[MEMORY_ACTIVATIONS], 7 * shard.plans.host.bytes[MEMORY_ACTIVATIONS]);
    cr_expect_eq(global.plans.host.bytes[MEMORY_WORKSPACE], 7 * shard.plans.host.bytes[MEMORY_WORKSPACE]);
    cr_expect_eq(global.plans.host.bytes[MEMORY_GRADIENTS], 6 * global.plans.host.bytes[MEMORY_PARAMETERS]);
    close_scene(&shard);
    close_scene(&global);
}

/* A table is in memory, so it counts once it is open. */
Test(memory_budget, examples_in_memory_are_planned)
{
    struct scene scene;
    struct error error = ERROR_INIT;
    struct memory_plans plans;
    struct dataset *dataset = NULL;
    char path[] = "/tmp/coxswain-table-XXXXXX.csv";
    const struct data_spec spec = {
        .format = DATA_FORMAT_CSV,
        .train = {.files = path, .first = FIELD_UNSET, .last = FIELD_UNSET, .sample = FIELD_UNSET},
        .validation = {.first = FIELD_UNSET, .last = FIELD_UNSET, .sample = FIELD_UNSET}};
    const struct example_format format = {.input_type = ELEMENT_FLOAT32,
                                          .input_elements = 3,
                                          .target_type = ELEMENT_INT32,
                                          .target_elements = 1,
                                          .classes = 10};
    int descriptor = mkstemps(path, 4);
    FILE *file = fdopen(descriptor, "w");
    cr_assert(file);
    for (int i = 0; i < 1000; i++)
        fprintf(file, "%d,2,3,%d\n", i, i % 10);
    fclose(file);
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_TRAIN, &format, &dataset, &error), 0, "%s", error.message);
    unlink(path);
    cr_expect_eq(dataset_memory(dataset), 1000 * 4 * 4);
    cr_expect_eq(dataset_memory(NULL), 0);
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"mlp\"", "\"batchSize\":8");
    scene.trainer.training = dataset;
    cr_assert_eq(memory_budget_plan(&scene.trainer, &scene.job, &plans, &error), 0, "%s", error.message);
    cr_expect_eq(plans.host.bytes[MEMORY_INPUT] - scene.plans.host.bytes[MEMORY_INPUT], 1000 * 4 * 4);
    scene.trainer.training = NULL;
    dataset_free(dataset);
    close_scene(&scene);
}

Test(memory_budget, what_does_not_fit_is_told_by_purpose_and_with_what_would)
{
    struct scene scene;
    struct error error = ERROR_INIT;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet20\"",
               "\"batchSize\":4096,\"optimizer\":{\"type\":\"AdamW\"}");
    int64_t bytes = memory_plan_bytes(&scene.plans.host);
    struct host_memory_limit enough = {.bytes = bytes};
    cr_expect_eq(memory_budget_check(&scene.trainer, &scene.plans, enough, &error), 0, "%s", error.message);
    error = refusal(&scene, bytes / 2, HOST_MEMORY_OF_CGROUP);
    SCOPED_FREE char *needs = memory_format("the memory plan needs %lld MiB, but the cgroup's limit is %lld MiB: "
                                            "parameters 1.0 MiB, gradients 1.0 MiB, optimizer 2.1 MiB, activations ",
                                            (long long)(bytes + MIB - 1) / MIB, (long long)(bytes / 2 / MIB));
    SCOPED_FREE char *fits = memory_format("or with a memory limit (resources.limits.memory) of %lld MiB",
                                           (long long)(bytes + MIB - 1) / MIB);
    EXPECT_SAYS(error, needs);
    EXPECT_SAYS(error, "it would fit with training.batchSize: ");
    EXPECT_SAYS(error, ", or with training.gradientAccumulation: ");
    EXPECT_SAYS(error, fits);
    error = refusal(&scene, MIB, HOST_MEMORY_OF_MACHINE);
    EXPECT_SAYS(error, "the machine's memory is 1 MiB");
    EXPECT_SAYS(error, "it would fit with a machine of ");
    close_scene(&scene);
}

/* The remedy that is named, followed. */
Test(memory_budget, what_would_fit_fits)
{
    struct scene scene, less;
    struct error error;
    long long batch = 0;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet20\"", "\"batchSize\":4096");
    int64_t limit = memory_plan_bytes(&scene.plans.host) / 3;
    error = refusal(&scene, limit, HOST_MEMORY_OF_CGROUP);
    const char *told = strstr(error.message, "training.batchSize: ");
    cr_assert(told && sscanf(told, "training.batchSize: %lld", &batch) == 1, "%s", error.message);
    SCOPED_FREE char *training = memory_format("\"batchSize\":%lld", batch);
    open_scene(&less, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet20\"", training);
    cr_expect_leq(memory_plan_bytes(&less.plans.host), limit + MIB);
    close_scene(&less);
    close_scene(&scene);
}

Test(memory_budget, a_model_of_residual_blocks_can_compute_them_again)
{
    struct scene scene, again;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"gpt-bytes\"", "\"batchSize\":64");
    open_scene(&again, "\"type\":\"OneDevice\",\"recompute\":true", 1, "\"preset\":\"gpt-bytes\"", "\"batchSize\":64");
    int64_t needed = memory_plan_bytes(&scene.plans.host), less = memory_plan_bytes(&again.plans.host);
    cr_expect_lt(less, needed / 2);
    /* The program itself may have grown by the time that the remedy is planned for. */
    struct error error = refusal(&scene, less + (needed - less) / 2, HOST_MEMORY_OF_CGROUP);
    EXPECT_SAYS(error, "or with strategy.recompute: true, or with ");
    close_scene(&again);
    close_scene(&scene);
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"lenet\"", "\"batchSize\":4096");
    error = refusal(&scene, memory_plan_bytes(&scene.plans.host) / 3, HOST_MEMORY_OF_CGROUP);
    cr_expect(!strstr(error.message, "recompute"), "%s", error.message);
    close_scene(&scene);
}

/* Shards of a batch that is normalised as a whole cannot wait for each other: there a smaller batch is all there is. */
Test(memory_budget, no_remedy_is_named_that_the_job_may_not_have)
{
    struct scene scene;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"resnet20\",\"statistics\":\"Global\"",
               "\"batchSize\":4096");
    struct error error = refusal(&scene, memory_plan_bytes(&scene.plans.host) / 3, HOST_MEMORY_OF_PROCESS);
    EXPECT_SAYS(error, "training.batchSize: ");
    cr_expect(!strstr(error.message, "gradientAccumulation"), "%s", error.message);
    close_scene(&scene);
}

/* A plan that no machine can hold is still a number, and nothing of it is allocated. */
Test(memory_budget, the_absurd_is_refused_too)
{
    struct scene scene;
    open_scene(&scene, "\"type\":\"OneDevice\"", 1, "\"preset\":\"gpt2-1558m\"", "\"batchSize\":1048576");
    cr_expect_gt(memory_plan_bytes(&scene.plans.host), (int64_t)1 << 45);
    cr_expect_lt(host_memory_held(), 256 * MIB);
    struct error error = refusal(&scene, (int64_t)64 << 30, HOST_MEMORY_OF_MACHINE);
    EXPECT_SAYS(error, "parameters 5942 MiB");
    close_scene(&scene);
}

/* ---- a peer */

/* Returns the planned number of exchange vectors as long as the parameters. */
static int64_t vectors_of_peers(unsigned workers)
{
    struct error error = ERROR_INIT;
    struct crew_seat seats[4] = {{"worker", 0, "a", 2222}, {"worker", 1, "b", 2222}, {"worker", 2, "c", 2222}};
    struct scene scene = {0};
    open_job(&scene, "\"type\":\"PeerToPeer\"", 1, "\"preset\":\"mlp\",\"width\":64",
             "\"batchSize\":48,\"optimizer\":{\"type\":\"SGD\"}");
    struct trainer *trainer = &scene.trainer;
    trainer->job = &scene.job;
    trainer->identity = &scene.identity;
    trainer->crew = (struct crew){.seats = seats, .size = workers, .least = workers, .expected = workers};
    trainer->device_count = 1;
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &trainer->devices[0].device, NULL), 0);
    trainer->device = trainer->devices[0].device;
    cr_assert_eq(step_plan_batches(&scene.job, workers, 0, &trainer->plan, &error), 0, "%s", error.message);
    cr_assert_eq(memory_budget_plan(trainer, &scene.job, &scene.plans, &error), 0, "%s", error.message);
    int64_t vectors = scene.plans.host.bytes[MEMORY_EXCHANGE] / scene.plans.host.bytes[MEMORY_PARAMETERS];
    cr_expect_eq(scene.plans.host.bytes[MEMORY_EXCHANGE] % scene.plans.host.bytes[MEMORY_PARAMETERS], 0);
    device_close(trainer->device);
    job_document_release(&scene.job);
    return vectors;
}

/* A change waits for a slow peer while the one before it is on its way as a copy; so are a question and an answer of meetings. */
Test(memory_budget, what_is_on_its_way_between_peers_is_planned)
{
    const int64_t of_the_chief = 4; /* two states of parameters and velocities */
    cr_expect_eq(vectors_of_peers(2), of_the_chief + 3 + 2 * 1 + 2);
    cr_expect_eq(vectors_of_peers(3), of_the_chief + 3 + 2 * 2 + 2);
}

/* ---- a ps */

static struct memory_plan plan_server(const char *host, unsigned workers, bool saves)
{
    struct job_document job;
    struct memory_plans plans;
    struct error error = ERROR_INIT;
    static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"ParameterServer\"},"
                               "\"model\":{\"preset\":\"mlp\",\"width\":64},"
                               "\"data\":{\"format\":\"Synthetic\",\"examples\":600},\"training\":"
                               "{\"steps\":1,\"batchSize\":48,\"optimizer\":{\"type\":\"AdamW\"}}}";
    SCOPED_JSON *json = NULL;
    struct crew_seat seats[2] = {{.role = "worker", .host = host}, {.role = "worker", .index = 1, .host = host}};
    struct crew_seat servers[2] = {{.role = "ps", .host = host}, {.role = "ps", .index = 1, .host = host}};
    const struct identity identity = {.role = "ps"};
    char directory[] = "checkpoints";
    cr_assert_eq(json_parse(text, strlen(text), 1 << 16, &json, &error), 0, "%s", error.message);
    cr_assert_eq(job_document_parse(json, &job, &error), 0, "%s", error.message);
    struct trainer trainer = {.job = &job,
                              .identity = &identity,
                              .crew = {.seats = seats,
                                       .size = workers,
                                       .least = workers,
                                       .expected = workers,
                                       .servers = servers,
                                       .server_count = 2,
                                       .part = CREW_SERVES},
                              .files.checkpoint_directory = saves ? directory : NULL};
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &trainer.device, NULL), 0);
    cr_assert_eq(memory_budget_plan(&trainer, &job, &plans, &error), 0, "%s", error.message);
    device_close(trainer.device);
    job_document_release(&job);
    return plans.host;
}

/* Two slots, so that the state is three times the parameters. */
Test(memory_budget, a_ps_plans_for_its_saves_and_for_what_travels)
{
    struct memory_plan plain = plan_server("10.0.0.7", 1, false), saving = plan_server("10.0.0.7", 1, true),
                       two = plan_server("10.0.0.7", 2, false), near = plan_server("127.0.0.7", 2, false);
    int64_t own = plain.bytes[MEMORY_PARAMETERS];
    cr_assert_gt(own, 0);
    cr_expect_eq(plain.bytes[MEMORY_OPTIMIZER], 2 * own);
    cr_expect_eq(plain.bytes[MEMORY_SNAPSHOT], 0);
    cr_expect_eq(saving.bytes[MEMORY_SNAPSHOT], 3 * own);
    cr_expect_eq(plain.bytes[MEMORY_EXCHANGE], 2 * own);
    cr_expect_eq(two.bytes[MEMORY_EXCHANGE], 4 * own);
    cr_expect_eq(near.bytes[MEMORY_EXCHANGE], 0, "they share memory");
}
