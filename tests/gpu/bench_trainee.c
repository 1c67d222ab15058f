/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/bench_trainee.h"

#include <string.h>

#include "common/philox.h"
#include "worker/optimizer/optimizer.h"

#define SGD(rate)                                                                                                      \
    {                                                                                                                  \
        .type = OPTIMIZER_SGD, .learning_rate = rate                                                                   \
    }
#define MOMENTUM                                                                                                       \
    {                                                                                                                  \
        .type = OPTIMIZER_SGD, .learning_rate = 0.1, .momentum = 0.9                                                   \
    }
#define ADAMW                                                                                                          \
    {                                                                                                                  \
        .type = OPTIMIZER_ADAMW, .learning_rate = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8                  \
    }
#define WHOLE(preset_)                                                                                                 \
    {                                                                                                                  \
        .preset = preset_, .depth = FIELD_UNSET, .width = FIELD_UNSET, .heads = FIELD_UNSET, .context = FIELD_UNSET    \
    }
#define GPT(preset_, depth_, width_, heads_, context_)                                                                 \
    {                                                                                                                  \
        .preset = preset_, .depth = depth_, .width = width_, .heads = heads_, .context = context_                      \
    }

/* The small works have the batches of the CPU's benchmark, and larger ones. The last three are for emulated GPUs: one of each kind,
 * through the same code. tests/gpu/peers/gpu_works.py has the same list. */
static const struct bench_work works[] = {
    {"gpt2-124m", WHOLE(PRESET_GPT2_124M), ADAMW, PRECISION_BFLOAT16, 512},
    {"resnet50", WHOLE(PRESET_RESNET50), MOMENTUM, PRECISION_BFLOAT16, 256},
    {"mlp", WHOLE(PRESET_MLP), SGD(0.1), PRECISION_FLOAT32, 128},
    {"lenet", WHOLE(PRESET_LENET), SGD(0.05), PRECISION_FLOAT32, 128},
    {"gpt-bytes", GPT(PRESET_GPT_BYTES, 4, 128, 4, 256), ADAMW, PRECISION_FLOAT32, 16},
    {"mlp-4096", WHOLE(PRESET_MLP), SGD(0.1), PRECISION_FLOAT32, 4096},
    {"lenet-2048", WHOLE(PRESET_LENET), SGD(0.05), PRECISION_FLOAT32, 2048},
    {"gpt-bytes-128", GPT(PRESET_GPT_BYTES, 4, 128, 4, 256), ADAMW, PRECISION_FLOAT32, 128},
    {"tiny-gpt2", GPT(PRESET_GPT2_124M, 1, 8, 2, 8), ADAMW, PRECISION_BFLOAT16, 4},
    {"tiny-resnet", GPT(PRESET_RESNET20, 1, 4, FIELD_UNSET, FIELD_UNSET), MOMENTUM, PRECISION_BFLOAT16, 2},
    {"tiny-mlp", GPT(PRESET_MLP, 1, 16, FIELD_UNSET, FIELD_UNSET), SGD(0.1), PRECISION_FLOAT32, 4},
};

const struct bench_work *bench_work_find(const char *name)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0)
            return &works[i];
    return NULL;
}

/* ---- its examples */

/* Fills a buffer with random numbers, like the other frameworks' benchmarks, because zeros would be faster. A filled buffer keeps its
 * numbers. */
static int read_once(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    (void)error;
    const struct example_format *format = &dataset->format;
    const bool is_text = format->input_type == ELEMENT_INT32;
    const uint32_t classes = (uint32_t)format->classes;
    if (*(const int32_t *)input != 0)
        return 0;
    for (int64_t i = 0; i < format->input_elements; i++) {
        uint32_t word = philox(2, (uint64_t)i, (uint64_t)index).word[0];
        if (is_text)
            ((int32_t *)input)[i] = (int32_t)(1 + word % (classes - 1));
        else
            ((float *)input)[i] = (float)(1 + (word >> 8)) / 16777217.0f;
    }
    for (int64_t i = 0; i < format->target_elements; i++)
        ((int32_t *)target)[i] = (int32_t)(philox(3, (uint64_t)i, (uint64_t)index).word[0] % classes);
    return 0;
}

/* ---- how many at a time */

static struct strategy_options options_of(struct bench_trainee *trainee)
{
    return (struct strategy_options){.type = STRATEGY_ONE_DEVICE,
                                     .device = trainee->device,
                                     .graph = trainee->graph,
                                     .dataset = &trainee->dataset,
                                     .sampler = &trainee->sampler,
                                     .optimizer = &trainee->work.optimizer,
                                     .state = &trainee->state,
                                     .global_batch = trainee->work.batch,
                                     .logical_shards = (unsigned)(trainee->work.batch / trainee->micro)};
}

static int make_graph(struct bench_trainee *trainee, bool plan_only, struct error *error)
{
    const struct graph_options options = {.device = trainee->device,
                                          .model = &trainee->work.model,
                                          .precision = trainee->work.precision,
                                          .max_examples = trainee->micro,
                                          .plan_only = plan_only};
    return graph_new(&options, &trainee->graph, error);
}

/* Gradients and batch are in both plans. That leaves some room for the memory of CUDA and cuBLAS. */
static int planned_bytes(struct bench_trainee *trainee, int64_t *ret_bytes, struct error *error)
{
    struct memory_plans plans = {0};
    if (make_graph(trainee, true, error) < 0)
        return -1;
    const struct strategy_options options = options_of(trainee);
    graph_memory_plan(trainee->graph, optimizer_slot_count(&trainee->work.optimizer), &plans.device);
    strategy_memory_plan(&options, &plans);
    *ret_bytes = memory_plan_bytes(&plans.device);
    graph_free(trainee->graph);
    trainee->graph = NULL;
    return 0;
}

static int choose_micro(struct bench_trainee *trainee, double share, struct error *error)
{
    int64_t total, free, planned;
    if (device_memory_room(trainee->device, &total, &free, error) < 0)
        return -1;
    for (trainee->micro = trainee->work.batch; trainee->micro > 0; trainee->micro /= 2) {
        if (trainee->work.batch % trainee->micro != 0)
            break;
        if (planned_bytes(trainee, &planned, error) < 0)
            return -1;
        if ((double)planned <= share * (double)free)
            return 0;
    }
    return error_set(error, ERROR_NO_SPACE, "not one pass of %s fits the GPU", trainee->work.name);
}

/* ---- life cycle */

static int find_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static int open_strategy(struct bench_trainee *trainee, enum bench_pace pace, struct error *error)
{
    static const int64_t without_end = INT64_MAX;
    struct strategy_options options = options_of(trainee);
    options.total_steps = &without_end;
    options.waits_for_device = pace == BENCH_WAITS;
    options.launches_singly = pace != BENCH_GRAPHS;
    options.calls.restore = find_state;
    if (strategy_open(&options, &trainee->strategy, error) < 0)
        return -1;
    return strategy_reform(trainee->strategy, error);
}

static int open_all(struct bench_trainee *trainee, double share, enum bench_pace pace, struct error *error)
{
    if (trainee->micro == 0 && choose_micro(trainee, share, error) < 0)
        return -1;
    if (trainee->work.batch % trainee->micro != 0)
        return error_set(error, ERROR_INVALID, "%lld examples a pass do not divide a batch of %lld",
                         (long long)trainee->micro, (long long)trainee->work.batch);
    if (make_graph(trainee, false, error) < 0)
        return -1;
    trainee->kind = (struct dataset_kind){.read = read_once};
    trainee->dataset = (struct dataset){
        .kind = &trainee->kind, .format = *graph_example_format(trainee->graph), .count = 1000 * trainee->work.batch};
    trainee->sampler = (struct sampler){.seed = 7, .count = trainee->dataset.count};
    if (training_state_init(&trainee->state, trainee->device, graph_layout(trainee->graph), &trainee->work.optimizer, 7,
                            error) < 0)
        return -1;
    return open_strategy(trainee, pace, error);
}

int bench_trainee_open(struct bench_trainee *trainee, const struct bench_work *work, struct device *device,
                       int64_t micro, double share, enum bench_pace pace, struct error *error)
{
    *trainee = (struct bench_trainee){.work = *work, .micro = micro, .device = device};
    if (open_all(trainee, share, pace, error) == 0)
        return 0;
    bench_trainee_close(trainee);
    return -1;
}

void bench_trainee_close(struct bench_trainee *trainee)
{
    strategy_close(trainee->strategy);
    training_state_release(&trainee->state);
    graph_free(trainee->graph);
}

int bench_trainee_step(struct bench_trainee *trainee, struct error *error)
{
    struct strategy_result result;
    return strategy_step(trainee->strategy, trainee->work.optimizer.learning_rate, 0, &result, error);
}

int bench_trainee_settle(struct bench_trainee *trainee, struct error *error)
{
    return strategy_settle(trainee->strategy, error);
}

int64_t bench_trainee_units(const struct bench_trainee *trainee)
{
    return trainee->work.batch * trainee->dataset.format.target_elements;
}
