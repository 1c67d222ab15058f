/* SPDX-License-Identifier: Apache-2.0
 *
 * Examples per second of the presets in one process, with 1 and 2 threads,
 * beside the machine's own sgemm (oneDNN) measured in the same run. Data is
 * synthetic; a step is read, forward, backward, update.
 *
 *     bench_train [--seconds 2] [--threads 1|2] [--model mlp]
 *     bench_train --turns --threads 1 --model mlp|sgemm      the protocol of tests/bench/peers/turns.py
 *
 * Rates are given as the mean over the time and as that of the quickest step, which on a machine shared with others says
 * more; sgemm's is of its quickest product. In turns, `ready` is followed by the floating-point operations of a unit.
 */
#include <dlfcn.h>
#include <dnnl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/bench/process_status.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/model/graph.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"

struct work {
    const char *name, *what;
    struct model_spec model;
    struct optimizer_spec optimizer;
    int64_t batch;
    const char *unit;
    int64_t units_per_example;
};

static const struct work works[] = {
    {"mlp",
     "784-512-10, batch 128, SGD",
     {.preset = PRESET_MLP, .depth = FIELD_UNSET, .width = FIELD_UNSET},
     {.type = OPTIMIZER_SGD, .learning_rate = 0.1},
     128,
     "examples",
     1},
    {"lenet",
     "conv 32, conv 64, dense 128, batch 128, SGD",
     {.preset = PRESET_LENET, .depth = FIELD_UNSET},
     {.type = OPTIMIZER_SGD, .learning_rate = 0.05},
     128,
     "examples",
     1},
    {"resnet20",
     "CIFAR-10's, batch 64, SGD",
     {.preset = PRESET_RESNET20},
     {.type = OPTIMIZER_SGD, .learning_rate = 0.05},
     64,
     "examples",
     1},
    {"gpt-bytes",
     "4 x 128, context 256, batch 16, AdamW",
     {.preset = PRESET_GPT_BYTES, .depth = 4, .width = 128, .heads = 4, .context = 256},
     {.type = OPTIMIZER_ADAMW, .learning_rate = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
     16,
     "tokens",
     256},
    {"gpt-6x384",
     "6 x 384, context 256, batch 4, AdamW",
     {.preset = PRESET_GPT_BYTES, .depth = 6, .width = 384, .heads = 6, .context = 256},
     {.type = OPTIMIZER_ADAMW, .learning_rate = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
     4,
     "tokens",
     256},
};

static void check(int failed, const struct error *error)
{
    if (!failed)
        return;
    fprintf(stderr, "bench_train: %s\n", error->message);
    exit(1);
}

#define SGEMM_SIDE 1024

struct product {
    float *a, *b, *c;
};

static void product_open(struct product *product, int threads)
{
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads)
        set_threads(threads);
    product->a = aligned_alloc(64, SGEMM_SIDE * SGEMM_SIDE * sizeof(float));
    product->b = aligned_alloc(64, SGEMM_SIDE * SGEMM_SIDE * sizeof(float));
    product->c = aligned_alloc(64, SGEMM_SIDE * SGEMM_SIDE * sizeof(float));
    for (int i = 0; i < SGEMM_SIDE * SGEMM_SIDE; i++)
        product->a[i] = product->b[i] = (float)(i % 7);
}

static void product_run(void *context)
{
    struct product *product = context;
    dnnl_sgemm('N', 'N', SGEMM_SIDE, SGEMM_SIDE, SGEMM_SIDE, 1, product->a, SGEMM_SIDE, product->b, SGEMM_SIDE, 0,
               product->c, SGEMM_SIDE);
}

static void product_close(struct product *product)
{
    free(product->a);
    free(product->b);
    free(product->c);
}

/* Best of several products of 1024 x 1024 matrices, in floating-point operations a second. */
static double sgemm_rate(int threads)
{
    struct product product;
    product_open(&product, threads);
    double best = 0;
    for (int round = 0; round < 20; round++) {
        int64_t start = clock_monotonic_ns();
        product_run(&product);
        double rate = 2.0 * SGEMM_SIDE * SGEMM_SIDE * SGEMM_SIDE / ((double)(clock_monotonic_ns() - start) * 1e-9);
        best = rate > best ? rate : best;
    }
    product_close(&product);
    return best;
}

struct trainer {
    const struct work *work;
    struct device *device;
    struct device_stream *stream;
    struct graph *graph;
    struct training_state state;
    struct dataset *dataset;
    struct sampler sampler;
    void *inputs, *targets, *gradients, *sums;
};

static void trainer_open(struct trainer *trainer, const struct work *work, int threads)
{
    struct error error = ERROR_INIT;
    *trainer = (struct trainer){.work = work};
    check(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = threads}, &trainer->device, &error),
          &error);
    check(device_stream_new(trainer->device, &trainer->stream, &error), &error);
    struct graph_options options = {.device = trainer->device, .model = &work->model, .max_examples = work->batch};
    check(graph_new(&options, &trainer->graph, &error), &error);
    check(training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph), &work->optimizer, 7,
                              &error),
          &error);
    const struct example_format *format = graph_example_format(trainer->graph);
    struct data_spec data = {.format = DATA_FORMAT_SYNTHETIC, .examples = 1024};
    data.train.first = data.train.last = data.validation.first = data.validation.last = FIELD_UNSET;
    check(dataset_open(&data, NULL, SPLIT_TRAIN, format, &trainer->dataset, &error), &error);
    trainer->sampler = (struct sampler){7, 1024};
    size_t batch = (size_t)work->batch;
    check(
        device_allocate(trainer->device, MEMORY_SHARED, batch * example_input_bytes(format), &trainer->inputs, &error),
        &error);
    check(device_allocate(trainer->device, MEMORY_SHARED, batch * example_target_bytes(format), &trainer->targets,
                          &error),
          &error);
    check(device_allocate(trainer->device, MEMORY_DEVICE, (size_t)trainer->state.layout.elements * sizeof(float),
                          &trainer->gradients, &error),
          &error);
    check(device_allocate(trainer->device, MEMORY_SHARED, sizeof(struct loss_sums), &trainer->sums, &error), &error);
    int64_t indices[128];
    for (int64_t i = 0; i < work->batch; i++)
        indices[i] = sampler_index(&trainer->sampler, 0, i);
    check(dataset_read(trainer->dataset, indices, work->batch, trainer->inputs, trainer->targets, &error), &error);
}

static void trainer_close(struct trainer *trainer)
{
    device_free(trainer->device, trainer->inputs);
    device_free(trainer->device, trainer->targets);
    device_free(trainer->device, trainer->gradients);
    device_free(trainer->device, trainer->sums);
    dataset_free(trainer->dataset);
    training_state_release(&trainer->state);
    graph_free(trainer->graph);
    device_stream_free(trainer->stream);
    device_close(trainer->device);
}

static void train_step(void *context)
{
    struct trainer *trainer = context;
    struct error error = ERROR_INIT;
    const struct work *work = trainer->work;
    struct graph_pass pass = {
        .parameters = trainer->state.parameters,
        .inputs = trainer->inputs,
        .targets = trainer->targets,
        .examples = work->batch,
        .scale = 1.0f / (float)(work->batch * work->units_per_example),
        .gradients = trainer->gradients,
        .sums = trainer->sums,
    };
    check(graph_forward_backward(trainer->graph, trainer->stream, &pass, &error), &error);
    struct optimizer_range range = {
        .elements = trainer->state.layout.elements,
        .statistics = trainer->state.layout.statistics,
        .parameters = trainer->state.parameters,
        .slots = {trainer->state.slots[0], trainer->state.slots[1]},
        .gradients = trainer->gradients,
        .step = ++trainer->state.progress.step,
        .learning_rate = work->optimizer.learning_rate,
        .gradient_scale = 1,
    };
    optimizer_update(trainer->stream, &work->optimizer, &range);
    check(device_stream_synchronise(trainer->stream, &error), &error);
}

struct measurement {
    double step_seconds, best_step_seconds, first_step_ms, loss;
    double flops;             /* of a step */
    long anonymous_kilobytes; /* of the process while it trains */
};

static double train_for(struct trainer *trainer, double seconds, double *ret_best)
{
    int64_t start = clock_monotonic_ns(), now = start, best = INT64_MAX, steps = 0;
    for (; now - start < (int64_t)(seconds * 1e9); steps++) {
        int64_t began = now;
        train_step(trainer);
        now = clock_monotonic_ns();
        best = now - began < best ? now - began : best;
    }
    *ret_best = (double)best * 1e-9;
    return (double)(now - start) * 1e-9 / (double)steps;
}

static struct measurement measure(const struct work *work, int threads, double seconds)
{
    struct trainer trainer;
    int64_t opened = clock_monotonic_ns();
    trainer_open(&trainer, work, threads);
    train_step(&trainer);
    struct measurement result = {.first_step_ms = (double)(clock_monotonic_ns() - opened) * 1e-6};
    for (int i = 0; i < 3; i++)
        train_step(&trainer);
    result.step_seconds = train_for(&trainer, seconds, &result.best_step_seconds);
    const struct loss_sums *sums = trainer.sums;
    result.loss = sums->loss / (double)sums->count;
    result.flops = graph_flops_per_example(trainer.graph) * (double)work->batch;
    result.anonymous_kilobytes = process_status_kb(getpid(), "RssAnon:");
    trainer_close(&trainer);
    return result;
}

static void report(const struct work *work, int threads, double seconds)
{
    double sgemm = sgemm_rate(threads);
    struct measurement m = measure(work, threads, seconds);
    double units = (double)(work->batch * work->units_per_example);
    printf("train %-9s %d thread%s %8.0f %s/s, quickest step %8.0f/s: %5.1f GF/s, %4.1f %% of sgemm's %.0f; first step "
           "after %.0f ms, RssAnon %.1f MB, loss %.3f  (%s)\n",
           work->name, threads, threads == 1 ? " " : "s", units / m.step_seconds, work->unit,
           units / m.best_step_seconds, m.flops / m.best_step_seconds * 1e-9,
           100 * m.flops / m.best_step_seconds / sgemm, sgemm * 1e-9, m.first_step_ms,
           (double)m.anonymous_kilobytes / 1024, m.loss, work->what);
}

/* ---------------------------------------------------------------- in turns with others */

static void take_turns(void (*step)(void *context), void *context, double units, double flops)
{
    char line[64];
    for (int i = 0; i < 4; i++)
        step(context);
    printf("ready %.6g\n", flops / units);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double seconds = strncmp(line, "SECONDS ", 8) == 0 ? strtod(line + 8, NULL) : 0, done = 0;
        int64_t start = clock_monotonic_ns(), now = start;
        for (; now - start < (int64_t)(seconds * 1e9); now = clock_monotonic_ns(), done++)
            step(context);
        printf("%.9g %.9g\n", done * units, (double)(now - start) * 1e-9);
        fflush(stdout);
    }
}

static void take_turns_at_products(int threads)
{
    struct product product;
    double flops = 2.0 * SGEMM_SIDE * SGEMM_SIDE * SGEMM_SIDE;
    product_open(&product, threads);
    take_turns(product_run, &product, flops, flops);
    product_close(&product);
}

static void take_turns_at_training(const struct work *work, int threads)
{
    struct trainer trainer;
    trainer_open(&trainer, work, threads);
    take_turns(train_step, &trainer, (double)(work->batch * work->units_per_example),
               graph_flops_per_example(trainer.graph) * (double)work->batch);
    trainer_close(&trainer);
}

struct choice {
    double seconds;
    long threads;      /* 0: 1 and 2 */
    const char *model; /* NULL: all */
    bool turns;
};

static struct choice parse(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"model", required_argument, NULL, 'm'},
                                            {"turns", no_argument, NULL, 'u'},
                                            {0}};
    struct choice choice = {.seconds = 2};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 's')
            choice.seconds = strtod(optarg, NULL);
        else if (option == 't')
            choice.threads = strtol(optarg, NULL, 10);
        else if (option == 'm')
            choice.model = optarg;
        else if (option == 'u')
            choice.turns = true;
        else
            exit(64);
    }
    return choice;
}

int main(int argc, char **argv)
{
    struct choice choice = parse(argc, argv);
    if (choice.turns && choice.model && strcmp(choice.model, "sgemm") == 0) {
        take_turns_at_products((int)choice.threads);
        return 0;
    }
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
            if ((choice.threads != 0 && choice.threads != threads) ||
                (choice.model && strcmp(choice.model, works[i].name) != 0))
                continue;
            if (choice.turns)
                take_turns_at_training(&works[i], threads);
            else
                report(&works[i], threads, choice.seconds);
        }
    return 0;
}
