/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/model/graph_internal.h"
#include "worker/model/program.h"

/* Of one example. */
static size_t output_bytes(const struct program *program)
{
    return (size_t)program_output_format(program)->elements * sizeof(float);
}

/* Plans of jobs with a smaller batch are asked for by way of trial (memory_budget.h), before a model of layers is compiled for it. */
static int64_t call_bytes(const struct graph_options *options)
{
    int64_t bytes = program_call_bytes(options->program), batch = program_batch(options->program);
    bool is_smaller = program_is_of_layers(options->program) && options->max_examples < batch;
    return options->plan_only && is_smaller ? bytes / batch * options->max_examples : bytes;
}

int graph_program_build(struct graph *graph, const struct graph_options *options, struct error *error)
{
    graph->program = options->program;
    graph->program_device = options->program_device;
    graph->layout = *program_layout(options->program);
    graph->format = *program_example_format(options->program);
    if (options->partition != NULL)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "a model that is given as a program cannot be cut into stages; take another strategy.type than "
            "Pipeline");
    if (options->layout_only)
        return 0;
    if (options->recompute)
        return error_set(error, ERROR_UNSUPPORTED,
                         "XLA decides itself what it computes again; leave out strategy.recompute");
    if (options->precision != PRECISION_FLOAT32 && !program_is_of_layers(options->program))
        return error_set(error, ERROR_UNSUPPORTED,
                         "a program has the precision that it was exported with; leave out training.precision");
    if (!device_memory_is_shared(options->device))
        return error_set(error, ERROR_UNSUPPORTED,
                         "a program's optimizer runs on the CPU in this release; set devices.type to CPU");
    int64_t flat = graph->layout.elements * (int64_t)sizeof(float);
    graph->activation_bytes = call_bytes(options);
    graph->workspace_bytes = options->evaluation_only ? 0 : flat; /* gradients of one call */
    if (options->keeps_outputs && !options->plan_only)
        graph->program_outputs = memory_allocate((size_t)options->max_examples, output_bytes(options->program));
    if (!options->plan_only && !options->evaluation_only)
        graph->program_gradients = memory_allocate((size_t)graph->layout.elements, sizeof(float));
    return graph_plan_buckets(graph, error);
}

unsigned graph_program_pieces(const struct graph *graph, struct parameter_piece *ret_pieces)
{
    for (unsigned t = 0; t < graph->layout.tensor_count && ret_pieces != NULL; t++) {
        const struct parameter_tensor *tensor = &graph->layout.tensors[t];
        ret_pieces[t] =
            (struct parameter_piece){.offset = tensor->offset, .elements = tensor->elements, .number = tensor->number};
    }
    return graph->layout.tensor_count;
}

/* ---------------------------------------------------------------- passes */

struct program_pass {
    struct graph *graph;
    struct graph_pass pass;
    bool evaluation;
};

/* Adds a call's gradients to the pass's, scaled. For state, which the call gives anew, the gradient is the step to take,
 * times the call's share of the batch (parameter_layout.h). */
static void add_gradients(const struct graph *graph, const struct graph_pass *pass, int64_t examples)
{
    float loss_scale = pass->values != NULL ? pass->values->loss_scale : pass->loss_scale;
    float scale = pass->scale * (loss_scale != 0 ? loss_scale : 1);
    float share = pass->scale * (float)(examples * example_targets(&graph->format));
    const float *from = graph->program_gradients;
    for (int64_t i = 0; i < graph->layout.statistics; i++)
        pass->gradients[i] += share * (pass->parameters[i] - from[i]);
    for (int64_t i = graph->layout.statistics; i < graph->layout.elements; i++)
        pass->gradients[i] += scale * from[i];
}

/* Returns the first target that is neither a class nor ignored; NULL: there is none. */
static const int32_t *first_unknown(const struct example_format *format, const int32_t *targets, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!example_takes_target(format, targets[i]))
            return &targets[i];
    return NULL;
}

/* Returns the first of the values that is not from 0 to `limit` - 1; NULL: there is none. */
static const int32_t *first_outside(const int32_t *values, int64_t count, int64_t limit)
{
    for (int64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] >= limit)
            return &values[i];
    return NULL;
}

/* Returns the number, from 0 in the crew's batch, of the example that has this value. */
static long long example_number(const struct program_call *call, const int32_t *value, const int32_t *values,
                                int64_t elements)
{
    return call->first_example + (value - values) / elements;
}

/* XLA does not report a class or token that is out of range, so targets are checked here, and with a model of layers the tokens of its
 * input, too. Inputs of exported programs are checked when the data is read. */
static int check_batch(const struct graph *graph, const struct program_call *call, struct error *error)
{
    const struct example_format *format = &graph->format;
    const struct example_input *input = &format->inputs[0];
    const int32_t *target = NULL, *token = NULL;
    if (format->target_type == ELEMENT_INT32)
        target = first_unknown(format, call->targets, call->examples * format->target_elements);
    if (program_is_of_layers(graph->program) && input->type == ELEMENT_INT32)
        token = first_outside(call->inputs, call->examples * input->elements, input->vocabulary);
    if (target != NULL)
        return error_set(
            error, ERROR_INVALID,
            "example %lld of the batch has the target %d, and the model has %lld classes: correct the data "
            "or the model",
            example_number(call, target, call->targets, format->target_elements), *target, (long long)format->classes);
    if (token != NULL)
        return error_set(error, ERROR_INVALID,
                         "example %lld of the batch has the token %d, and the model's vocabulary is %lld: correct the "
                         "data or the model",
                         example_number(call, token, call->inputs, input->elements), *token,
                         (long long)input->vocabulary);
    return 0;
}

/* Where the outputs of the pass's examples from `first` on are kept; NULL: they are not, and the call gives loss and hits instead. */
static void *outputs_at(const struct graph *graph, int64_t first)
{
    char *outputs = graph->program_outputs;
    return outputs != NULL ? outputs + (size_t)first * output_bytes(graph->program) : NULL;
}

/* A call of a pass. */
struct pass_call {
    int64_t examples;
    float loss, hits, counted;
    struct program_pending *pending;
};

static int begin_call(const struct program_pass *context, int64_t number, struct pass_call *ret_call,
                      struct error *error)
{
    struct graph *graph = context->graph;
    const struct graph_pass *pass = &context->pass;
    int64_t batch = program_batch(graph->program), first = number * batch, left = pass->examples - first;
    *ret_call = (struct pass_call){.examples = left < batch ? left : batch};
    const struct program_call call = {
        .device = graph->program_device,
        .parameters = pass->parameters,
        .kept = &graph->program_kept,
        .inputs = (const char *)pass->inputs + (size_t)first * example_input_bytes(&graph->format),
        .targets = (const char *)pass->targets + (size_t)first * example_target_bytes(&graph->format),
        .examples = ret_call->examples,
        .seed = pass->seed,
        .step = pass->values != NULL ? pass->values->pass : pass->step,
        .first_example = pass->first_example + first,
        .gradients = context->evaluation ? NULL : graph->program_gradients,
        .loss = &ret_call->loss,
        .hits = &ret_call->hits,
        .counted = &ret_call->counted,
        .outputs = context->evaluation ? outputs_at(graph, first) : NULL,
    };
    return check_batch(graph, &call, error) < 0 || program_begin(graph->program, &call, &ret_call->pending, error) < 0
               ? -1
               : 0;
}

static int finish_call(const struct program_pass *context, struct pass_call *call, struct error *error)
{
    const struct graph *graph = context->graph;
    struct loss_sums *sums = context->pass.sums;
    if (program_finish(graph->program, call->pending, error) < 0)
        return -1;
    program_pending_free(call->pending);
    call->pending = NULL;
    if (!context->evaluation)
        add_gradients(graph, &context->pass, call->examples);
    sums->loss += call->loss;
    sums->correct += isfinite(call->hits) ? llrintf(call->hits) : 0;
    bool counts = graph->format.ignores && graph->program_outputs == NULL;
    sums->count += counts ? llrintf(call->counted) : call->examples * example_targets(&graph->format);
    return 0;
}

/* Where a device has memory of its own, the examples of a call travel while the call before it computes. Elsewhere there would only be more
 * copies of them at a time. */
static int run_calls(const struct program_pass *context, struct pass_call calls[2], struct error *error)
{
    const struct graph *graph = context->graph;
    int64_t batch = program_batch(graph->program), count = (context->pass.examples + batch - 1) / batch;
    bool early = program_overlaps(graph->program);
    for (int64_t i = 0; i < count; i++) {
        struct pass_call *call = &calls[i % 2], *next = &calls[(i + 1) % 2];
        if (call->pending == NULL && begin_call(context, i, call, error) < 0)
            return -1;
        if (program_start(call->pending, error) < 0)
            return -1;
        if (early && i + 1 < count && begin_call(context, i + 1, next, error) < 0)
            return -1;
        if (finish_call(context, call, error) < 0)
            return -1;
    }
    return 0;
}

static int run_pass(const struct program_pass *context, struct error *error)
{
    struct graph *graph = context->graph;
    const struct graph_pass *pass = &context->pass;
    struct pass_call calls[2] = {0};
    if (!pass->weights_stand)
        program_drop_kept(&graph->program_kept);
    *pass->sums = (struct loss_sums){0};
    if (!context->evaluation && !pass->accumulate)
        memset(pass->gradients, 0, (size_t)graph->layout.elements * sizeof(float));
    int result = run_calls(context, calls, error);
    program_pending_free(calls[0].pending);
    program_pending_free(calls[1].pending);
    return result;
}

/* On the stream's thread. */
static int run_and_free(void *owner, struct error *error)
{
    struct program_pass *context = owner;
    int result = error->kind == ERROR_NONE ? run_pass(context, error) : -1;
    free(context);
    return result;
}

int graph_program_launch(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                         bool evaluation)
{
    struct program_pass *context = memory_allocate(1, sizeof *context);
    *context = (struct program_pass){.graph = graph, .pass = *pass, .evaluation = evaluation};
    device_stream_compute(stream, run_and_free, context);
    for (unsigned b = 0; b < graph->bucket_count && !evaluation && !pass->is_whole_step; b++)
        device_event_record(graph->bucket_events[b], stream);
    return 0;
}
