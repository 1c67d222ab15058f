/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer_cost.h"

#include "common/clock.h"
#include "worker/model/graph_internal.h"

#define TRIES 8 /* the fastest counts; other load slows many of them */
#define MADE_UP 0.01f
/* x, y, dy, dx, kept, workspace, then parameters and their gradients. */
#define PIECES_MAX (LAYER_INPUTS_MAX + 5 + 2 * LAYER_PARAMETERS_MAX)

struct bench {
    struct device *device;
    struct device_stream *stream;
    void *pieces[PIECES_MAX];
    unsigned count;
};

static void *piece(struct bench *bench, int64_t elements, float value, struct error *error)
{
    void *memory = NULL;
    if (elements < 1)
        elements = 1;
    if (device_allocate(bench->device, MEMORY_DEVICE, (size_t)elements * sizeof(float), &memory, error) < 0)
        return NULL;
    bench->pieces[bench->count++] = memory;
    if (value != 0) /* memory is zeroed, which also serves as tokens */
        device_fill(bench->stream, &(struct fill){elements, value, memory});
    return memory;
}

static void clear(struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++)
        device_free(bench->device, bench->pieces[i]);
    bench->count = 0;
}

static bool fill_call(struct bench *bench, const struct layer *layer, struct layer_call *call, struct error *error)
{
    int64_t n = call->n, inputs = layer_shape_elements(&layer->inputs[0]);
    bool whole = true;
    for (unsigned i = 0; i < layer->input_count; i++) {
        float value = layer->inputs[i].integral ? 0 : MADE_UP;
        whole &= (call->x[i] = piece(bench, n * layer_shape_elements(&layer->inputs[i]), value, error)) != NULL;
    }
    whole &= (call->y = piece(bench, n * layer_shape_elements(&layer->output), MADE_UP, error)) != NULL;
    whole &= (call->dy = piece(bench, n * layer_shape_elements(&layer->output), MADE_UP, error)) != NULL;
    whole &= (call->dx = piece(bench, n * inputs, 0, error)) != NULL;
    whole &= (call->kept = piece(bench, layer->kind->kept ? layer->kind->kept(layer, n) : 0, 0, error)) != NULL;
    whole &= (call->workspace =
                  piece(bench, layer->kind->workspace ? layer->kind->workspace(layer, n) : 0, 0, error)) != NULL;
    for (unsigned p = 0; p < layer->parameter_count; p++) {
        int64_t elements = 1;
        for (unsigned r = 0; r < layer->parameters[p].rank; r++)
            elements *= layer->parameters[p].shape[r];
        whole &= (call->parameters[p] = piece(bench, elements, MADE_UP, error)) != NULL;
        whole &= (call->gradients[p] = piece(bench, elements, 0, error)) != NULL;
    }
    call->weight = call->parameters[0];
    return whole;
}

static void run(const struct graph_node *node, const struct layer_call *call)
{
    const struct layer_kind *kind = node->layer.kind;
    if (kind->forward)
        kind->forward(call);
    if (kind->backward_parameters)
        kind->backward_parameters(call);
    if (kind->backward_input && node->inputs[0] != MODEL_INPUT)
        kind->backward_input(call);
}

static int measure(struct bench *bench, const struct graph_node *node, int64_t examples, double *ret_seconds,
                   struct error *error)
{
    const struct graph_pass pass = {.examples = examples, .scale = 1};
    struct layer_call call = {.layer = &node->layer, .stream = bench->stream, .pass = &pass, .share = 1, .n = examples};
    *ret_seconds = 0;
    if (node->in_place)
        return 0;
    if (!fill_call(bench, &node->layer, &call, error))
        return -1;
    for (unsigned i = 0; i <= TRIES; i++) { /* the first run is a warm-up */
        int64_t started = clock_monotonic_ns();
        run(node, &call);
        if (device_stream_synchronise(bench->stream, error) < 0)
            return -1;
        double seconds = (double)(clock_monotonic_ns() - started) / 1e9;
        if (i == 1 || (i > 1 && seconds < *ret_seconds))
            *ret_seconds = seconds;
    }
    return 0;
}

int layer_costs_measure(const struct graph *graph, struct device *device, int64_t examples, double *ret_seconds,
                        struct error *error)
{
    struct bench bench = {.device = device};
    int result = device_stream_new(device, &bench.stream, error);
    for (unsigned i = 0; result == 0 && i < graph->node_count; i++) {
        result = measure(&bench, &graph->nodes[i], examples, &ret_seconds[i], error);
        if (result == 0)
            result = device_stream_synchronise(bench.stream, error);
        clear(&bench);
    }
    device_stream_free(bench.stream);
    return result < 0 ? error_wrap(error, "measuring the layers' costs") : 0;
}
