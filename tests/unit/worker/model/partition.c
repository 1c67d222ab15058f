/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts by cost: against every other cut of small models with random costs, and with costs that were measured.
 */
#include "worker/model/partition.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/job_document.h"
#include "tests/unit/sanitized.h"
#include "worker/device/backend.h"
#include "worker/model/layer_cost.h"

#define LAYERS_MAX 9
#define STAGES_TRIED 5
#define MODELS 300

struct model {
    struct device *device;
    struct layer_spec layers[16];
    struct model_spec spec;
    struct graph *graph;
};

static struct layer_spec *add_layer(struct model *model, enum layer_type type)
{
    struct layer_spec *layer = &model->layers[model->spec.layer_count++];
    *layer = (struct layer_spec){.type = type,
                                 .units = FIELD_UNSET,
                                 .size = FIELD_UNSET,
                                 .stride = FIELD_UNSET,
                                 .padding = FIELD_UNSET,
                                 .device = FIELD_UNSET,
                                 .bias = true};
    return layer;
}

static void open_graph(struct model *model)
{
    struct error error = ERROR_INIT;
    model->spec.layers = model->layers;
    const struct graph_options options = {
        .device = model->device, .model = &model->spec, .max_examples = 64, .layout_only = true};
    cr_assert_eq(graph_new(&options, &model->graph, &error), 0, "%s", error.message);
}

static void open_model(struct model *model)
{
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &model->device, NULL), 0);
    open_graph(model);
}

static void close_model(struct model *model)
{
    graph_free(model->graph);
    device_close(model->device);
}

/* Products, some with a rectifier that they apply themselves and some with a function of its own behind; `ret_joined`: the
 * layer is never cut from the one before. */
static void make_random(struct model *model, unsigned short random[3], bool ret_joined[LAYERS_MAX + 2])
{
    unsigned wanted = 3 + (unsigned)(erand48(random) * (LAYERS_MAX - 3));
    *model = (struct model){.spec = {.input_shape = {6}, .input_rank = 1}};
    while (model->spec.layer_count < wanted) {
        ret_joined[model->spec.layer_count] = false;
        add_layer(model, LAYER_DENSE)->units = 6;
        double kind = erand48(random);
        if (kind > 0.6)
            continue;
        ret_joined[model->spec.layer_count] = kind < 0.3;
        add_layer(model, kind < 0.3 ? LAYER_RELU : LAYER_TANH);
    }
}

static double stage_cost(const double *costs, const unsigned *stage_of, unsigned layers, unsigned stage)
{
    double sum = 0;
    for (unsigned i = 0; i < layers; i++)
        sum += stage_of[i] == stage ? costs[i] : 0;
    return sum;
}

static double costliest(const double *costs, const unsigned *stage_of, unsigned layers, unsigned stages)
{
    double most = 0;
    for (unsigned s = 0; s < stages; s++) {
        double sum = stage_cost(costs, stage_of, layers, s);
        most = sum > most ? sum : most;
    }
    return most;
}

/* The best of all cuts: a bit a layer says whether a stage begins there. */
static double best_of_all(const double *costs, const bool *joined, unsigned layers, unsigned stages)
{
    double best = -1;
    for (unsigned cuts = 0; cuts < 1u << (layers - 1); cuts++) {
        unsigned stage_of[LAYERS_MAX + 2] = {0};
        bool allowed = (unsigned)__builtin_popcount(cuts) == stages - 1;
        for (unsigned i = 1; i < layers; i++) {
            bool begins = cuts >> (i - 1) & 1;
            allowed &= !(begins && joined[i]);
            stage_of[i] = stage_of[i - 1] + begins;
        }
        double most = allowed ? costliest(costs, stage_of, layers, stages) : -1;
        if (allowed && (best < 0 || most < best))
            best = most;
    }
    return best;
}

static void expect_consecutive(const struct graph_partition *partition, unsigned stages)
{
    for (unsigned i = 1; i < partition->layers; i++)
        cr_expect(partition->stage_of[i] == partition->stage_of[i - 1] ||
                  partition->stage_of[i] == partition->stage_of[i - 1] + 1);
    cr_expect_eq(partition->stage_of[0], 0);
    cr_expect_eq(partition->stage_of[partition->layers - 1], stages - 1);
}

static void expect_best(const struct model *model, const double *costs, const bool *joined, unsigned stages)
{
    struct error error = ERROR_INIT;
    struct graph_partition partition;
    unsigned layers = graph_layer_count(model->graph);
    double best = best_of_all(costs, joined, layers, stages);
    int result = partition_by_cost(model->graph, stages, costs, &partition, &error);
    cr_assert_eq(result < 0, best < 0, "%u layers, %u stages: %s", layers, stages, error.message);
    if (result < 0)
        return;
    expect_consecutive(&partition, stages);
    double cost = costliest(costs, partition.stage_of, layers, stages);
    cr_expect(cost <= best * (1 + 1e-9), "%u layers in %u stages: the costliest has %.12g, the best cut %.12g", layers,
              stages, cost, best);
    partition_release(&partition);
}

Test(partition, no_other_cut_of_random_models_has_a_cheaper_costliest_stage)
{
    unsigned short random[3] = {1, 2, 3};
    for (int i = 0; i < MODELS; i++) {
        struct model model;
        bool joined[LAYERS_MAX + 2];
        double costs[LAYERS_MAX + 2];
        make_random(&model, random, joined);
        open_model(&model);
        unsigned layers = graph_layer_count(model.graph);
        for (unsigned layer = 0; layer < layers; layer++)
            costs[layer] = joined[layer] ? 0 : erand48(random) * (i % 3 == 0 ? 1 : erand48(random) < 0.3 ? 100 : 1);
        for (unsigned stages = 1; stages <= STAGES_TRIED; stages++)
            expect_best(&model, costs, joined, stages);
        close_model(&model);
    }
}

static void expect_stages(const struct model *model, const double *costs, unsigned stages, const unsigned *wanted)
{
    struct graph_partition partition;
    cr_assert_eq(partition_by_cost(model->graph, stages, costs, &partition, NULL), 0);
    for (unsigned i = 0; i < partition.layers; i++)
        cr_expect_eq(partition.stage_of[i], wanted[i], "layer %u in stage %u, not %u", i, partition.stage_of[i],
                     wanted[i]);
    partition_release(&partition);
}

Test(partition, known_costs_have_a_known_cut)
{
    struct model model = {.spec = {.input_shape = {6}, .input_rank = 1}};
    for (int i = 0; i < 6; i++)
        add_layer(&model, LAYER_DENSE)->units = 6;
    open_model(&model);
    expect_stages(&model, (const double[]){1, 1, 1, 1, 1, 1}, 3, (const unsigned[]){0, 0, 1, 1, 2, 2});
    expect_stages(&model, (const double[]){1, 2, 3, 4, 5, 6}, 2, (const unsigned[]){0, 0, 0, 0, 1, 1});
    /* The slow one has a stage of its own. */
    expect_stages(&model, (const double[]){1, 1, 9, 1, 1, 1}, 3, (const unsigned[]){0, 0, 1, 2, 2, 2});
    expect_stages(&model, (const double[]){9, 1, 1, 1, 1, 1}, 2, (const unsigned[]){0, 1, 1, 1, 1, 1});
    expect_stages(&model, (const double[]){1, 1, 1, 1, 1, 9}, 2, (const unsigned[]){0, 0, 0, 0, 0, 1});
    /* As many stages as layers, at any cost. */
    expect_stages(&model, (const double[]){5, 0, 0, 0, 0, 0}, 6, (const unsigned[]){0, 1, 2, 3, 4, 5});
    close_model(&model);
}

static bool join(const struct device *device, enum stored stored)
{
    (void)device, (void)stored;
    return true;
}

/* Dense layers of which the first is followed by a GELU, and that by the second. */
static void open_with_gelu(struct model *model, struct device_backend *backend)
{
    *model = (struct model){.spec = {.input_shape = {6}, .input_rank = 1}};
    const enum layer_type types[] = {LAYER_DENSE, LAYER_TANH, LAYER_DENSE, LAYER_GELU,
                                     LAYER_DENSE, LAYER_TANH, LAYER_GELU};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        add_layer(model, types[i])->units = 6;
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &model->device, NULL), 0);
    *backend = *model->device->backend;
    backend->joins_gelus = join;
    model->device->backend = backend;
    open_graph(model);
}

/* A GELU that is made of sums which are not rounded yet is not cut from the dense layers beside it; another one may be. */
Test(partition, a_gelu_that_a_product_makes_stays_with_it)
{
    struct error error = ERROR_INIT;
    struct model model;
    struct device_backend backend;
    struct graph_partition partition;
    open_with_gelu(&model, &backend);
    expect_stages(&model, (const double[]){1, 1, 9, 1, 9, 1, 2}, 2, (const unsigned[]){0, 0, 0, 0, 0, 1, 1});
    expect_stages(&model, (const double[]){1, 1, 9, 1, 9, 1, 2}, 5, (const unsigned[]){0, 1, 2, 2, 2, 3, 4});
    for (unsigned first = 3; first <= 4; first++) {
        unsigned stage_of[7] = {0};
        for (unsigned i = first; i < 7; i++)
            stage_of[i] = 1;
        error = (struct error)ERROR_INIT;
        cr_expect_eq(partition_from_list(model.graph, 2, stage_of, &partition, &error), -1);
        cr_expect_eq(error.kind, ERROR_INVALID);
        cr_expect(strstr(error.message, "a GELU and a dense layer beside it in one product"), "%s", error.message);
    }
    close_model(&model);
}

/* A product a thousand times as large as its neighbours is the slowest under any load of the machine. */
Test(partition, a_layer_that_is_measured_to_be_slow_has_a_stage_of_its_own)
{
    SKIP_ONE_THREAD();
    struct error error = ERROR_INIT;
    struct model model = {.spec = {.input_shape = {8}, .input_rank = 1}};
    const int64_t units[] = {8, 4096, 4096, 8, 8};
    double seconds[8];
    for (int i = 0; i < 5; i++)
        add_layer(&model, LAYER_DENSE)->units = units[i];
    add_layer(&model, LAYER_RELU);
    open_model(&model);
    cr_assert_eq(layer_costs_measure(model.graph, model.device, 16, seconds, &error), 0, "%s", error.message);
    for (int i = 0; i < 5; i++) {
        cr_expect(seconds[i] > 0, "layer %d: %g s", i, seconds[i]);
        cr_expect(i == 2 || seconds[i] < seconds[2], "layer %d: %g s, layer 2: %g s", i, seconds[i], seconds[2]);
    }
    cr_expect_eq(seconds[5], 0, "the rectifier is run by the product before it");
    expect_stages(&model, seconds, 3, (const unsigned[]){0, 0, 1, 2, 2, 2});
    close_model(&model);
}
