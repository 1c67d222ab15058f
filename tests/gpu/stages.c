/* SPDX-License-Identifier: Apache-2.0
 *
 * A model is cut in two parts, at every layer where that is possible, and the parts run one after the other on one GPU. Loss and
 * gradients have the whole model's bits, also when they accumulate. The batch has an odd number of examples, so two-byte values at a cut
 * need not fill a whole number of floats.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/gpu/learner.h"
#include "worker/model/graph_stage.h"
#include "worker/model/partition.h"

#define PARTS_MAX 8
#define CROSSINGS_MAX 64

struct cut {
    struct learner *whole;
    struct graph_partition partition;
    struct graph *parts[PARTS_MAX];
    unsigned part_count;
    const void *values[CROSSINGS_MAX], *gradients[CROSSINGS_MAX];
};

static void open_part(struct cut *cut, unsigned part)
{
    struct error error = ERROR_INIT;
    const struct work *work = cut->whole->work;
    const struct graph_options options = {.device = cut->whole->side->device,
                                          .model = &work->model,
                                          .precision = work->precision,
                                          .max_examples = work->batch,
                                          .logit_rows = work->logit_rows,
                                          .recompute = work->recompute,
                                          .partition = &cut->partition,
                                          .part = part,
                                          .slots = 1};
    must(graph_new(&options, &cut->parts[part], &error), &error);
    cut->part_count++;
}

/* Each part reads the values and gradients of the other where that part leaves them. */
static void connect(struct cut *cut)
{
    unsigned count;
    const struct graph_crossing *crossings = graph_values(cut->parts[0], &count);
    for (unsigned i = 0; i < count && i < CROSSINGS_MAX; i++)
        cut->values[i] = graph_value_out(cut->parts[crossings[i].from], i, 0);
    crossings = graph_gradients(cut->parts[0], &count);
    for (unsigned i = 0; i < count && i < CROSSINGS_MAX; i++)
        cut->gradients[i] = graph_gradient_out(cut->parts[crossings[i].from], i, 0);
}

/* Makes two stages, the second of which begins with the layer. Returns false if the model cannot be cut there. */
static bool cut_open(struct cut *cut, struct learner *whole, unsigned layer)
{
    unsigned layers = graph_layer_count(whole->graph);
    unsigned *stage_of = memory_allocate(layers, sizeof *stage_of);
    *cut = (struct cut){.whole = whole};
    for (unsigned i = layer; i < layers; i++)
        stage_of[i] = 1;
    bool possible = partition_from_list(whole->graph, 2, stage_of, &cut->partition, NULL) == 0;
    free(stage_of);
    for (unsigned p = 0; possible && p < cut->partition.parts && p < PARTS_MAX; p++)
        open_part(cut, p);
    if (possible)
        connect(cut);
    return possible;
}

static void cut_close(struct cut *cut)
{
    for (unsigned p = 0; p < cut->part_count; p++)
        graph_free(cut->parts[p]);
    partition_release(&cut->partition);
}

static void cut_backward(struct cut *cut, bool accumulate)
{
    struct error error = ERROR_INIT;
    struct device_stream *stream = cut->whole->side->stream;
    struct graph_stage_pass pass = {
        .pass = learner_pass(cut->whole), .values = cut->values, .gradients = cut->gradients};
    pass.pass.accumulate = accumulate;
    for (unsigned p = 0; p < cut->part_count; p++)
        must(graph_stage_forward(cut->parts[p], stream, &pass, &error), &error);
    for (unsigned p = cut->part_count; p-- > 0;)
        must(graph_stage_backward(cut->parts[p], stream, &pass, &error), &error);
    must(device_stream_synchronise(stream, &error), &error);
}

/* Runs two passes, the second accumulating on the first. */
static float *gradients_of(struct learner *whole, struct cut *cut, double *ret_loss)
{
    for (int time = 0; time < 2; time++) {
        struct graph_pass pass = learner_pass(whole);
        pass.accumulate = time > 0;
        if (cut)
            cut_backward(cut, pass.accumulate);
        else
            learner_backward(whole, &pass);
    }
    *ret_loss = learner_mean_loss(whole);
    return learner_gradients(whole);
}

/* Returns the bytes of one example's values that cross. */
static int64_t bytes_across(const struct cut *cut)
{
    unsigned count;
    int64_t bytes = 0;
    const struct graph_crossing *crossings = graph_values(cut->parts[0], &count);
    for (unsigned i = 0; i < count; i++)
        bytes += graph_crossing_floats(&crossings[i], 2) * (int64_t)sizeof(float) / 2;
    return bytes;
}

static int64_t values_across(const struct cut *cut)
{
    unsigned count;
    int64_t values = 0;
    const struct graph_crossing *crossings = graph_values(cut->parts[0], &count);
    for (unsigned i = 0; i < count; i++)
        values += crossings[i].elements;
    return values;
}

void check_stages(struct learner *whole)
{
    const struct work *work = whole->work;
    int64_t elements = whole->state.layout.elements;
    bool halved = work->precision == PRECISION_BFLOAT16 || work->precision == PRECISION_FLOAT16;
    double loss, found_loss;
    float *expected = gradients_of(whole, NULL, &loss);
    unsigned cuts = 0, wrong = 0, wide = 0;
    for (unsigned layer = 1; layer < graph_layer_count(whole->graph); layer++) {
        struct cut cut;
        if (!cut_open(&cut, whole, layer))
            continue;
        float *found = gradients_of(whole, &cut, &found_loss);
        cuts++;
        wrong += found_loss != loss || memcmp(found, expected, (size_t)elements * sizeof *found) != 0;
        wide += bytes_across(&cut) != values_across(&cut) * (halved ? 2 : 4);
        free(found);
        cut_close(&cut);
    }
    char text[128];
    snprintf(text, sizeof text, "%s: cut in two it has the bits of the whole", work->name);
    verdict(cuts > 4 && wrong == 0, text, "%u of %u cuts have not", wrong, cuts);
    snprintf(text, sizeof text, "%s: what crosses has %s bytes a value", work->name, halved ? "two" : "four");
    verdict(cuts > 4 && wide == 0, text, "%u of %u cuts have not", wide, cuts);
    free(expected);
}
