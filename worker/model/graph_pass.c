/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/model/graph_internal.h"
#include "worker/model/graph_program.h"
#include "worker/model/program.h"

void *graph_block_memory(const struct graph *graph, int block, unsigned slot)
{
    if (block == NO_BLOCK)
        return NULL;
    if (graph->block_stays[block])
        return graph->slot_arena + slot * graph->slot_bytes + graph->blocks[block].offset;
    return graph->arena + graph->blocks[block].offset;
}

static void *block_memory(const struct graph_run *run, int block)
{
    return graph_block_memory(run->graph, block, run->slot);
}

/* Returns where the pass reads a part of the batch: in the block that it is copied to, if there
 * is one. */
static const void *bring(const struct graph_run *run, const void *from, int64_t bytes, int block)
{
    if (block == NO_BLOCK || run->pass->batch_is_near)
        return from;
    device_copy(run->stream, &(struct copy){bytes, from, block_memory(run, block)});
    return block_memory(run, block);
}

static void round_into(const struct graph_run *run, const float *from, int64_t count, float *to)
{
    if (run->graph->precision == PRECISION_FLOAT16)
        device_round_float16_stored(run->stream, run->graph->stored, &(struct round_float16){count, from, to});
    else
        device_round_bfloat16_stored(run->stream, run->graph->stored, &(struct round_bfloat16){count, from, to});
}

void graph_run_round(const struct graph_run *run, float *values, int64_t count)
{
    if (graph_rounds(run->graph) && run->graph->stored == STORED_FLOAT32)
        round_into(run, values, count, values);
}

/* Rounds the inputs that layers read, and copies the parameters, rounded, for all products of
 * this pass and of later passes with weights_stand. */
static void round_what_is_given(struct graph_run *run)
{
    const struct graph *graph = run->graph;
    if (graph->rounded_parameters != NO_BLOCK && !run->pass->weights_stand)
        round_into(run, run->pass->parameters, graph->layout.elements, block_memory(run, graph->rounded_parameters));
    if (graph->rounded_inputs == NO_BLOCK)
        return;
    float *inputs = block_memory(run, graph->rounded_inputs);
    round_into(run, run->inputs, run->pass->examples * graph->format.input_elements, inputs);
    run->inputs = inputs;
}

void graph_run_begin(struct graph_run *run)
{
    const struct graph *graph = run->graph;
    int64_t input_bytes = run->pass->examples * (int64_t)example_input_bytes(&graph->format);
    int64_t target_bytes = run->pass->examples * (int64_t)example_target_bytes(&graph->format);
    run->inputs = bring(run, run->pass->inputs, input_bytes, graph->batch_inputs);
    run->targets = bring(run, run->pass->targets, target_bytes, graph->batch_targets);
    round_what_is_given(run);
}

static const void *output_of(const struct graph_run *run, int layer)
{
    int owner = graph_output_owner(run->graph, layer);
    if (owner == MODEL_INPUT)
        return run->inputs;
    const struct graph_node *node = &run->graph->nodes[owner];
    return block_memory(run, run->back && node->repeated != NO_BLOCK ? node->repeated : node->output);
}

/* Returns this pass's share of the global batch; `scale` is 1 / targets of the whole batch. */
static float share_of(const struct graph_run *run)
{
    return run->pass->scale * (float)(run->pass->examples * example_targets(&run->graph->format));
}

/* Returns a parameter as products read it: rounded, if the graph rounds. */
static const void *weight_at(const struct graph_run *run, int64_t offset)
{
    const char *rounded = block_memory(run, run->graph->rounded_parameters);
    return rounded ? rounded + offset * stored_bytes(run->graph->stored) : (void *)(run->pass->parameters + offset);
}

struct layer_call graph_run_prepare(const struct graph_run *run, unsigned number)
{
    const struct graph *graph = run->graph;
    const struct graph_node *node = &graph->nodes[number];
    struct layer_call call = {
        .layer = &node->layer,
        .stream = run->stream,
        .stored = graph->stored,
        .pass = run->pass,
        .number = node->slice.place,
        .evaluation = run->evaluation,
        .share = share_of(run),
        .n = run->pass->examples,
        .y = (float *)output_of(run, (int)number),
        .kept = block_memory(run, run->back && node->recomputed_kept != NO_BLOCK ? node->recomputed_kept : node->kept),
        .workspace = block_memory(run, graph->workspace),
        .accumulate = run->pass->accumulate,
        .tf32 = graph->precision == PRECISION_TF32,
    };
    for (unsigned i = 0; i < node->layer.input_count; i++)
        call.x[i] = output_of(run, node->inputs[i]);
    for (unsigned p = 0; p < node->layer.parameter_count; p++) {
        int64_t offset = graph->tensors[node->tensors[p]].offset + node->shift[p];
        call.parameters[p] = run->pass->parameters + offset;
        call.gradients[p] = run->pass->gradients ? run->pass->gradients + offset : NULL;
        if (p == 0)
            call.weight = weight_at(run, offset);
        if (p == 1)
            call.bias = weight_at(run, offset);
    }
    if (node->fused_gelu != NO_LAYER)
        call.gelu = (float *)output_of(run, node->fused_gelu);
    if (node->inputs[0] != MODEL_INPUT && graph->nodes[node->inputs[0]].layer.kind->type == LAYER_GELU &&
        graph->nodes[node->inputs[0]].gradient_in_place)
        call.gelu_input = output_of(run, graph->nodes[node->inputs[0]].inputs[0]);
    return call;
}

void graph_run_layer(const struct graph_run *run, unsigned number)
{
    const struct graph_node *node = &run->graph->nodes[number];
    const struct layer *layer = &node->layer;
    struct layer_call call = graph_run_prepare(run, number);
    if (node->fused_norm != NO_LAYER) {
        const struct layer_call norm = graph_run_prepare(run, (unsigned)node->fused_norm);
        layer_norm_run(&norm, &call);
        return;
    }
    if (node->fused_sum != NO_LAYER) {
        const struct layer_call sum = graph_run_prepare(run, (unsigned)node->fused_sum);
        batch_norm_run(&call, &sum);
        return;
    }
    layer->kind->forward(&call);
    graph_run_round(run, call.y, call.n * layer_shape_elements(&layer->output));
}

void graph_run_forward(const struct graph_run *run)
{
    for (unsigned i = 0; i < run->graph->node_count; i++) {
        const struct graph_node *node = &run->graph->nodes[i];
        if (node->in_place || node->run_by != NO_LAYER || !node->own || graph_is_head(run->graph, i))
            continue;
        graph_run_layer(run, i);
    }
}

float graph_run_loss_scale(const struct graph_run *run)
{
    bool told = run->pass->values == NULL && run->pass->loss_scale > 0;
    return told ? run->pass->scale * run->pass->loss_scale : run->pass->scale;
}

void graph_run_loss(const struct graph_run *run, float *gradient)
{
    const struct graph *graph = run->graph;
    if (graph->head_rows > 0) {
        if (run->evaluation)
            graph_head_evaluate(run);
        return;
    }
    int64_t rows = run->pass->examples * graph_loss_rows(graph);
    const float *output = output_of(run, (int)graph->node_count - 1);
    double *workspace = block_memory(run, graph->loss_workspace);
    float scale = graph_run_loss_scale(run);
    if (graph->loss == LOSS_SOFTMAX_CROSS_ENTROPY)
        device_softmax_cross_entropy_stored(run->stream, graph->stored,
                                            &(struct softmax_cross_entropy){rows, graph->format.classes, output,
                                                                            run->targets, scale, gradient, workspace,
                                                                            run->pass->sums, 0, run->pass->values, 0});
    else
        device_mean_squared_error_stored(
            run->stream, graph->stored,
            &(struct mean_squared_error){rows, graph->format.target_elements / graph_loss_rows(graph), output,
                                         run->targets, scale, gradient, workspace, run->pass->sums, run->pass->values});
    if (gradient != NULL)
        graph_run_round(run, gradient,
                        run->pass->examples * layer_shape_elements(&graph->nodes[graph->node_count - 1].layer.output));
}

/* Hands a layer's gradient on to its input. `written`, by layer: the second consumer of an
 * output adds to the gradient that the first wrote. */
static void hand_to_input(const struct graph_run *run, const struct layer_call *call, unsigned number, unsigned input,
                          bool *written)
{
    const struct graph *graph = run->graph;
    const struct graph_node *node = &graph->nodes[number];
    int before = node->inputs[input];
    if (before == MODEL_INPUT || !graph->nodes[before].needs_gradient)
        return;
    float *target = block_memory(run, graph->nodes[before].gradient);
    int64_t count = call->n * layer_shape_elements(&node->layer.inputs[input]);
    bool passes = node->layer.kind->gradient_passes || node->gradient_in_place;
    if (graph->nodes[before].waits && (int)number == before + 1)
        return;
    if (passes && written[before])
        device_axpy_stored(run->stream, graph->stored, &(struct axpy){count, 1.0f, call->dy, target});
    else if (passes && target != call->dy)
        device_copy(run->stream, &(struct copy){count * stored_bytes(graph->stored), call->dy, target});
    else if (!passes && written[before] && !call->add_dx)
        device_axpy_stored(run->stream, graph->stored, &(struct axpy){count, 1.0f, call->dx, target});
    if (written[before])
        graph_run_round(run, target, count);
    written[before] = true;
}

static void announce_buckets(const struct graph_run *run, unsigned layer)
{
    for (unsigned b = 0; b < run->graph->bucket_count && !run->pass->is_whole_step; b++)
        if (run->graph->bucket_layers[b] == layer)
            device_event_record(run->graph->bucket_events[b], run->stream);
}

/* A borrowed tensor's gradient is the sum of the borrower's and the lender's. A pass that
 * accumulates computes this sum in a block of its own. */
static void lend_gradient(const struct graph_run *run, unsigned number, struct layer_call *call)
{
    const struct graph_node *node = &run->graph->nodes[number];
    bool borrows = node->lender != NO_LAYER;
    const struct graph_node *lender = borrows ? &run->graph->nodes[node->lender] : node;
    if (!lender->lends)
        return;
    call->lent_begun = !borrows;
    call->accumulate &= !borrows;
    if (!lender->own)
        call->gradients[0] = block_memory(run, lender->lent_gradient);
    else if (run->pass->accumulate)
        call->gradients[0] = block_memory(run, lender->borrowed_gradient);
}

static void take_back_gradient(const struct graph_run *run, unsigned number)
{
    const struct graph *graph = run->graph;
    const struct graph_node *node = &graph->nodes[number];
    if (!node->lends || !run->pass->accumulate)
        return;
    const struct parameter_tensor *tensor = &graph->tensors[node->tensors[0]];
    device_axpy(run->stream, &(struct axpy){tensor->elements, 1.0f, block_memory(run, node->borrowed_gradient),
                                            run->pass->gradients + tensor->offset});
}

static void backward_input(const struct graph_run *run, const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    layer->kind->backward_input(call);
    graph_run_round(run, call->dx, call->n * layer_shape_elements(&layer->inputs[call->input]));
}

/* Runs the backward pass of a layer that computes a separate gradient for each input. */
static void backward_each_input(const struct graph_run *run, struct layer_call *call, unsigned number, bool *written)
{
    const struct graph *graph = run->graph;
    const struct graph_node *node = &graph->nodes[number];
    for (call->input = 0; call->input < node->layer.input_count; call->input++) {
        int before = node->inputs[call->input];
        if (before == MODEL_INPUT || !graph->nodes[before].needs_gradient)
            continue;
        call->dx = block_memory(run, written[before] ? graph->spare : graph->nodes[before].gradient);
        backward_input(run, call);
        hand_to_input(run, call, number, call->input, written);
    }
}

/* Recomputes outputs that were not kept, when the first layer reads them in the backward pass. */
static void repeat_inputs(const struct graph_run *run, unsigned number)
{
    const struct graph *graph = run->graph;
    for (unsigned i = 0; i < graph->nodes[number].layer.input_count; i++) {
        int owner = graph_output_owner(graph, graph->nodes[number].inputs[i]);
        if (owner == MODEL_INPUT || graph->nodes[owner].repeated == NO_BLOCK || graph->nodes[owner].recomputed ||
            graph_last_reader(graph, (unsigned)owner) != number)
            continue;
        graph_run_layer(run, (unsigned)owner);
    }
}

/* Prepares a batch norm that masks by the rectifier of the sum after it. */
static void mask_sum(const struct graph_run *run, unsigned number, struct layer_call *call)
{
    const struct graph *graph = run->graph;
    call->relu_output = output_of(run, (int)number + 1);
    call->others = graph->nodes[number + 2].waits ? block_memory(run, graph->spare) : NULL;
    call->masked = block_memory(run, graph->nodes[number].gradient);
}

static void backward_layer(const struct graph_run *run, unsigned number, bool *written)
{
    const struct graph *graph = run->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct layer_kind *kind = node->layer.kind;
    struct layer_call call = graph_run_prepare(run, number);
    int before = node->inputs[0];
    bool wanted = before != MODEL_INPUT && graph->nodes[before].needs_gradient;
    call.dy = block_memory(run, node->gradient);
    if (kind->gradients_differ) {
        backward_each_input(run, &call, number, written);
        announce_buckets(run, number);
        return;
    }
    if (node->masks_sum)
        mask_sum(run, number, &call);
    lend_gradient(run, number, &call);
    call.add_dx = wanted && written[before] && kind->adds_gradient;
    if (wanted)
        call.dx = block_memory(run, written[before] && !call.add_dx ? graph->spare : graph->nodes[before].gradient);
    if (graph_is_head(graph, number))
        graph_head_backward(run, &call);
    else if (kind->backward_parameters)
        kind->backward_parameters(&call);
    take_back_gradient(run, number);
    announce_buckets(run, number);
    if (wanted && kind->backward_input && !node->gradient_in_place && !graph_is_head(graph, number))
        backward_input(run, &call);
    for (unsigned i = 0; i < node->layer.input_count; i++)
        hand_to_input(run, &call, number, i, written);
}

void graph_run_backward(const struct graph_run *run)
{
    const struct graph *graph = run->graph;
    for (unsigned i = graph->node_count; i-- > 0;)
        if (graph->nodes[i].needs_gradient && graph->nodes[i].own) {
            graph_run_recomputed(run, i);
            repeat_inputs(run, i);
            backward_layer(run, i, graph->written);
        }
}

int graph_check_pass(const struct graph *graph, const struct graph_pass *pass, struct error *error)
{
    if (pass->examples < 0 || pass->examples > graph->max_examples)
        return error_set(error, ERROR_INVALID, "a pass of %lld examples does not fit a plan for %lld",
                         (long long)pass->examples, (long long)graph->max_examples);
    return 0;
}

int graph_forward_backward(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                           struct error *error)
{
    if (graph_check_pass(graph, pass, error) < 0)
        return -1;
    if (graph->evaluation_only || graph->layout_only || graph->is_stage)
        return error_set(error, ERROR_INTERNAL,
                         "internal error: this graph was not planned for training the whole model; please report it");
    if (graph->program != NULL)
        return graph_program_launch(graph, stream, pass, false);
    struct graph_run run = {.graph = graph, .stream = stream, .pass = pass};
    graph_run_begin(&run);
    graph_run_forward(&run);
    graph_run_loss(&run, block_memory(&run, graph->nodes[graph->node_count - 1].gradient));
    memset(graph->written, 0, graph->node_count * sizeof *graph->written);
    run.back = true;
    graph_run_backward(&run);
    return 0;
}

int graph_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                   struct error *error)
{
    if (graph_check_pass(graph, pass, error) < 0)
        return -1;
    if (graph->layout_only || graph->is_stage)
        return error_set(error, ERROR_INTERNAL,
                         "internal error: this graph was not planned for evaluating the whole model; please report it");
    if (graph->program != NULL)
        return graph_program_launch(graph, stream, pass, true);
    struct graph_run run = {.graph = graph, .stream = stream, .pass = pass, .evaluation = true};
    graph_run_begin(&run);
    graph_run_forward(&run);
    graph_run_loss(&run, NULL);
    return 0;
}

const void *graph_outputs(const struct graph *graph)
{
    if (graph->program != NULL)
        return graph->program_outputs;
    int owner = graph_output_owner(graph, (int)graph->node_count - 1);
    return graph->stored == STORED_FLOAT32 && owner != MODEL_INPUT && graph->head_rows == 0
               ? graph_block_memory(graph, graph->nodes[owner].output, 0)
               : NULL;
}

struct output_format graph_output_format(const struct graph *graph)
{
    const struct example_format *example = &graph->format;
    struct output_format format = {.type = ELEMENT_FLOAT32};
    if (graph->program != NULL)
        return *program_output_format(graph->program);
    if (example->target_elements > 1 || example->classes == 0)
        format.shape[format.rank++] = example->target_elements;
    if (example->classes > 0)
        format.shape[format.rank++] = example->classes;
    format.meaning = format.rank == 1 && example->classes > 0 ? OUTPUT_LOGITS : OUTPUT_VALUES;
    format.elements = example->target_elements * (example->classes > 0 ? example->classes : 1);
    return format;
}
