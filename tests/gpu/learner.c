/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/learner.h"

#include <stdlib.h>

#include "common/memory.h"
#include "common/philox.h"

static void fill_numbers(void *memory, enum element_type type, int64_t count, int64_t limit, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = philox(seed, (uint64_t)i, 0).word[0];
        if (type == ELEMENT_FLOAT32)
            ((float *)memory)[i] = (float)(word >> 8) / 8388608.0f - 1.0f;
        else
            ((int32_t *)memory)[i] = (int32_t)(word % (uint32_t)limit);
    }
}

void learner_open(struct learner *learner, const struct work *work, struct side *side)
{
    struct error error = ERROR_INIT;
    *learner = (struct learner){.work = work, .side = side};
    struct graph_options options = {.device = side->device,
                                    .model = &work->model,
                                    .precision = work->precision,
                                    .max_examples = work->batch,
                                    .logit_rows = work->logit_rows,
                                    .recompute = work->recompute};
    must(graph_new(&options, &learner->graph, &error), &error);
    const struct parameter_layout *layout = graph_layout(learner->graph);
    must(training_state_init(&learner->state, side->device, layout, &work->optimizer, 7, &error), &error);
    const struct example_format *format = graph_example_format(learner->graph);
    size_t batch = (size_t)work->batch;
    must(device_allocate(side->device, MEMORY_SHARED, batch * example_input_bytes(format), &learner->inputs, &error),
         &error);
    must(device_allocate(side->device, MEMORY_SHARED, batch * example_target_bytes(format), &learner->targets, &error),
         &error);
    must(device_allocate(side->device, MEMORY_DEVICE, (size_t)layout->elements * sizeof(float), &learner->gradients,
                         &error),
         &error);
    must(device_allocate(side->device, MEMORY_SHARED, sizeof(struct loss_sums), &learner->sums, &error), &error);
    fill_numbers(learner->inputs, format->input_type, work->batch * format->input_elements, format->classes, 2);
    fill_numbers(learner->targets, format->target_type, work->batch * format->target_elements, format->classes, 3);
}

void learner_close(struct learner *learner)
{
    struct device *device = learner->side->device;
    device_free(device, learner->inputs);
    device_free(device, learner->targets);
    device_free(device, learner->gradients);
    device_free(device, learner->sums);
    training_state_release(&learner->state);
    graph_free(learner->graph);
}

/* The scale is for float16 only; gradients contain it. */
static float loss_scale_of(const struct learner *learner)
{
    return learner->work->precision == PRECISION_FLOAT16 ? 1024 : 1;
}

struct graph_pass learner_pass(struct learner *learner)
{
    const struct example_format *format = graph_example_format(learner->graph);
    return (struct graph_pass){.parameters = learner->state.parameters,
                               .inputs = learner->inputs,
                               .targets = learner->targets,
                               .examples = learner->work->batch,
                               .scale = 1.0f / (float)(learner->work->batch * format->target_elements),
                               .loss_scale = loss_scale_of(learner),
                               .gradients = learner->gradients,
                               .sums = learner->sums,
                               .seed = (uint64_t)learner->state.progress.seed,
                               .step = learner->state.progress.step + 1};
}

double learner_mean_loss(const struct learner *learner)
{
    const struct loss_sums *sums = learner->sums;
    return sums->loss / (double)sums->count;
}

void learner_backward(struct learner *learner, const struct graph_pass *pass)
{
    struct error error = ERROR_INIT;
    must(graph_forward_backward(learner->graph, learner->side->stream, pass, &error), &error);
    must(device_stream_synchronise(learner->side->stream, &error), &error);
}

double learner_loss(struct learner *learner)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = learner_pass(learner);
    must(graph_evaluate(learner->graph, learner->side->stream, &pass, &error), &error);
    must(device_stream_synchronise(learner->side->stream, &error), &error);
    return learner_mean_loss(learner);
}

float *learner_gradients(struct learner *learner)
{
    size_t elements = (size_t)learner->state.layout.elements;
    float *gradients = memory_allocate(elements, sizeof *gradients);
    side_get(learner->side, gradients, learner->gradients, (int64_t)(elements * sizeof *gradients));
    return gradients;
}

double learner_train(struct learner *learner, int steps)
{
    struct error error = ERROR_INIT;
    struct training_state *state = &learner->state;
    for (int i = 0; i < steps; i++) {
        struct graph_pass pass = learner_pass(learner);
        must(graph_forward_backward(learner->graph, learner->side->stream, &pass, &error), &error);
        struct optimizer_range range = {
            .elements = state->layout.elements,
            .statistics = state->layout.statistics,
            .parameters = state->parameters,
            .slots = {state->slots[0], state->slots[1]},
            .gradients = learner->gradients,
            .step = ++state->progress.step,
            .learning_rate = learner->work->optimizer.learning_rate,
            .gradient_scale = 1 / (double)loss_scale_of(learner),
        };
        optimizer_update(learner->side->stream, &learner->work->optimizer, &range);
    }
    must(device_stream_synchronise(learner->side->stream, &error), &error);
    return learner_mean_loss(learner);
}
