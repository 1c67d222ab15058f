/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "common/extremes.h"
#include "common/memory.h"
#include "worker/model/graph_internal.h"

/* Most tokens that go through the layers together. */
#define ROWS_MAX 64

struct decoder {
    const struct graph *graph;
    struct device *device;
    struct device_stream *stream;
    const float *parameters;
    float **outputs; /* by layer; NULL: its output is the memory of the layer before */
    bool *stays;     /* by layer: the outputs of all positions are kept, not only those of the last run */
    float *kept, *workspace;
    int32_t *tokens;
    int64_t context, position;
    int64_t rows; /* of the last run */
};

static bool is_attention(const struct graph *graph, unsigned node)
{
    return graph->nodes[node].layer.kind->type == LAYER_ATTENTION;
}

static int64_t width_of(const struct graph *graph, unsigned node)
{
    return graph->nodes[node].layer.output.dims[1];
}

static int64_t vocabulary_of(const struct graph *graph)
{
    return graph->nodes[0].layer.spec.size;
}

static int check_layers(const struct graph *graph, struct error *error)
{
    if (!graph->input.integral || graph->format.classes == 0 ||
        graph->format.target_elements != graph->format.input_elements)
        return error_set(error, ERROR_INVALID,
                         "the model does not predict the next token at each position; use a gpt preset, or layers from "
                         "an embedding to a dense layer over the vocabulary");
    if (graph->format.classes > vocabulary_of(graph))
        return error_set(
            error, ERROR_INVALID,
            "the model predicts %lld different tokens but its embedding has only %lld, so it cannot read its own "
            "predictions; give the last layer as many units as the embedding has tokens",
            (long long)graph->format.classes, (long long)vocabulary_of(graph));
    for (unsigned i = 0; i < graph->node_count; i++) {
        const struct layer *layer = &graph->nodes[i].layer;
        if (layer->output.rank != 2 || layer->output.dims[0] != graph->input.dims[0])
            return error_set(
                error, ERROR_INVALID,
                "layer %s (%s) needs the whole sequence at once, so the model cannot generate token by token",
                layer->name, layer_type_name(layer->kind->type));
    }
    return 0;
}

/* ---------------------------------------------------------------- memory */

static void mark_what_stays(struct decoder *decoder)
{
    const struct graph *graph = decoder->graph;
    for (unsigned i = 0; i < graph->node_count; i++)
        if (is_attention(graph, i)) {
            decoder->stays[i] = true;
            decoder->stays[graph_output_owner(graph, graph->nodes[i].inputs[0])] = true;
        }
}

static int allocate(struct decoder *decoder, int64_t elements, size_t size, void *ret_memory, struct error *error)
{
    return device_allocate(decoder->device, MEMORY_SHARED, (size_t)(elements > 0 ? elements : 1) * size, ret_memory,
                           error);
}

static int allocate_outputs(struct decoder *decoder, struct error *error)
{
    const struct graph *graph = decoder->graph;
    for (unsigned i = 0; i < graph->node_count; i++) {
        int64_t rows = decoder->stays[i] ? decoder->context : ROWS_MAX;
        if (graph->nodes[i].in_place)
            continue;
        if (allocate(decoder, rows * width_of(graph, i), sizeof(float), &decoder->outputs[i], error) < 0)
            return -1;
    }
    return 0;
}

static int allocate_scratch(struct decoder *decoder, struct error *error)
{
    int64_t kept = 0, workspace = 0;
    for (unsigned i = 0; i < decoder->graph->node_count; i++) {
        const struct layer *layer = &decoder->graph->nodes[i].layer;
        kept = int64_max(kept, layer->kind->kept ? layer->kind->kept(layer, 1) : 0);
        workspace = int64_max(workspace, layer->kind->workspace ? layer->kind->workspace(layer, 1) : 0);
    }
    if (allocate(decoder, kept, sizeof(float), &decoder->kept, error) < 0 ||
        allocate(decoder, workspace, sizeof(float), &decoder->workspace, error) < 0)
        return -1;
    return allocate(decoder, ROWS_MAX, sizeof(int32_t), &decoder->tokens, error);
}

int decoder_new(const struct graph *graph, struct device *device, struct device_stream *stream, const float *parameters,
                struct decoder **ret_decoder, struct error *error)
{
    if (check_layers(graph, error) < 0)
        return -1;
    struct decoder *decoder = memory_allocate(1, sizeof *decoder);
    *decoder = (struct decoder){.graph = graph,
                                .device = device,
                                .stream = stream,
                                .parameters = parameters,
                                .context = graph->input.dims[0],
                                .outputs = memory_allocate(graph->node_count, sizeof *decoder->outputs),
                                .stays = memory_allocate(graph->node_count, sizeof *decoder->stays)};
    mark_what_stays(decoder);
    if (allocate_outputs(decoder, error) < 0 || allocate_scratch(decoder, error) < 0) {
        decoder_free(decoder);
        return error_wrap(error, "generation");
    }
    *ret_decoder = decoder;
    return 0;
}

void decoder_free(struct decoder *decoder)
{
    if (!decoder)
        return;
    for (unsigned i = 0; i < decoder->graph->node_count; i++)
        device_free(decoder->device, decoder->outputs[i]);
    device_free(decoder->device, decoder->kept);
    device_free(decoder->device, decoder->workspace);
    device_free(decoder->device, decoder->tokens);
    free(decoder->outputs);
    free(decoder->stays);
    free(decoder);
}

int64_t decoder_context(const struct decoder *decoder)
{
    return decoder->context;
}

int64_t decoder_position(const struct decoder *decoder)
{
    return decoder->position;
}

void decoder_rewind(struct decoder *decoder)
{
    decoder->position = 0;
}

/* ---------------------------------------------------------------- running */

/* Returns the rows of a layer's output for the current run; the model's input is the tokens. */
static void *rows_at(const struct decoder *decoder, int layer)
{
    int owner = graph_output_owner(decoder->graph, layer);
    if (owner == MODEL_INPUT)
        return decoder->tokens;
    return decoder->outputs[owner] +
           (decoder->stays[owner] ? decoder->position * width_of(decoder->graph, (unsigned)owner) : 0);
}

/* Returns a copy of the layer for a sequence of `rows`. */
static struct layer shortened(const struct layer *layer, int64_t rows)
{
    struct layer result = *layer;
    result.output.dims[0] = rows;
    for (unsigned i = 0; i < layer->input_count; i++)
        result.inputs[i].dims[0] = rows;
    return result;
}

static void run_layer(const struct decoder *decoder, unsigned number, const struct graph_pass *pass)
{
    const struct graph *graph = decoder->graph;
    const struct graph_node *node = &graph->nodes[number];
    bool looks_back = is_attention(graph, number);
    struct layer layer = shortened(&node->layer, decoder->rows + (looks_back ? decoder->position : 0));
    struct layer_call call = {
        .layer = &layer,
        .stream = decoder->stream,
        .stored = STORED_FLOAT32,
        .pass = pass,
        .number = node->slice.place,
        .evaluation = true,
        .first = decoder->position,
        .n = 1,
        .y = looks_back ? decoder->outputs[number] : rows_at(decoder, (int)number),
        .kept = decoder->kept,
        .workspace = decoder->workspace,
    };
    for (unsigned i = 0; i < layer.input_count; i++)
        call.x[i] = looks_back ? decoder->outputs[graph_output_owner(graph, node->inputs[i])]
                               : rows_at(decoder, node->inputs[i]);
    for (unsigned p = 0; p < layer.parameter_count; p++)
        call.parameters[p] = decoder->parameters + graph->tensors[node->tensors[p]].offset + node->shift[p];
    call.weight = call.parameters[0];
    call.bias = call.parameters[1];
    layer.kind->forward(&call);
}

static int run(struct decoder *decoder, const int32_t *tokens, int64_t rows, struct error *error)
{
    const struct graph_pass pass = {.parameters = decoder->parameters, .examples = 1};
    memcpy(decoder->tokens, tokens, (size_t)rows * sizeof *tokens);
    decoder->rows = rows;
    for (unsigned i = 0; i < decoder->graph->node_count; i++)
        if (!decoder->graph->nodes[i].in_place)
            run_layer(decoder, i, &pass);
    if (device_stream_synchronise(decoder->stream, error) < 0)
        return -1;
    decoder->position += rows;
    return 0;
}

static int check_tokens(const struct decoder *decoder, const int32_t *tokens, int64_t count, struct error *error)
{
    int64_t vocabulary = vocabulary_of(decoder->graph);
    if (decoder->position == 0 && count > decoder->context)
        return error_set(error, ERROR_INVALID,
                         "%lld tokens do not fit the model's context; shorten them to %lld (of a model over bytes, to "
                         "%lld bytes)",
                         (long long)count, (long long)decoder->context, (long long)decoder->context);
    if (count < 1 || count > decoder->context - decoder->position)
        return error_set(error, ERROR_INVALID,
                         "the model's context of %lld tokens already holds %lld; %lld more do not fit",
                         (long long)decoder->context, (long long)decoder->position, (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= vocabulary)
            return error_set(error, ERROR_INVALID, "token %d is not in the vocabulary of %lld (0..%lld)", tokens[i],
                             (long long)vocabulary, (long long)vocabulary - 1);
    return 0;
}

int decoder_feed(struct decoder *decoder, const int32_t *tokens, int64_t count, struct error *error)
{
    if (check_tokens(decoder, tokens, count, error) < 0)
        return -1;
    for (int64_t at = 0; at < count; at += ROWS_MAX)
        if (run(decoder, tokens + at, count - at < ROWS_MAX ? count - at : ROWS_MAX, error) < 0)
            return -1;
    return 0;
}

const float *decoder_logits(const struct decoder *decoder)
{
    unsigned last = decoder->graph->node_count - 1;
    int64_t end = decoder->rows;
    int owner = graph_output_owner(decoder->graph, (int)last);
    if (decoder->stays[owner])
        end = decoder->position;
    return decoder->outputs[owner] + (end - 1) * width_of(decoder->graph, last);
}
