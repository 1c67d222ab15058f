/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence fed to a decoder, however it is cut, gives the outputs of a pass
 * over all of it.
 */
#include "worker/model/decoder.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/philox.h"

#define CONTEXT 150
#define VOCABULARY 13

static const struct model_spec gpt = {.preset = PRESET_GPT_BYTES,
                                      .width = 16,
                                      .depth = 2,
                                      .heads = 4,
                                      .context = CONTEXT,
                                      .vocabulary = VOCABULARY,
                                      .dropout = 0.3};

struct bench {
    struct device *device;
    struct device_stream *stream;
    struct graph *graph;
    struct decoder *decoder;
    float *parameters;
    int32_t *tokens;
    struct loss_sums *sums;
};

/* Biases start at zero, where a decoder that leaves them out would not be noticed. */
static void set_large_vectors(const struct parameter_layout *layout, float *parameters)
{
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        for (int64_t i = 0; tensor->rank == 1 && i < tensor->elements; i++)
            parameters[tensor->offset + i] += (float)(philox(t, (uint64_t)i, 0).word[0] >> 8) / 4194304.0f - 2;
    }
}

static void open_bench(struct bench *b, const struct model_spec *model)
{
    struct error error = ERROR_INIT;
    *b = (struct bench){0};
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &b->device, NULL), 0);
    cr_assert_eq(device_stream_new(b->device, &b->stream, NULL), 0);
    const struct graph_options options = {
        .device = b->device, .model = model, .max_examples = 1, .evaluation_only = true};
    cr_assert_eq(graph_new(&options, &b->graph, &error), 0, "%s", error.message);
    int64_t count = graph_layout(b->graph)->elements;
    cr_assert_eq(
        device_allocate(b->device, MEMORY_SHARED, (size_t)count * sizeof(float), (void **)&b->parameters, NULL), 0);
    graph_initialise(graph_layout(b->graph), 5, b->parameters);
    for (int64_t i = 0; i < count; i++) /* so that tokens and positions tell */
        b->parameters[i] *= 8;
    set_large_vectors(graph_layout(b->graph), b->parameters);
    cr_assert_eq(device_allocate(b->device, MEMORY_SHARED, 2 * CONTEXT * sizeof(int32_t), (void **)&b->tokens, NULL),
                 0);
    cr_assert_eq(device_allocate(b->device, MEMORY_SHARED, sizeof *b->sums, (void **)&b->sums, NULL), 0);
    for (int i = 0; i < CONTEXT; i++)
        b->tokens[i] = (int32_t)(philox(3, (uint64_t)i, 0).word[0] % VOCABULARY);
}

static void close_bench(struct bench *b)
{
    decoder_free(b->decoder);
    device_free(b->device, b->parameters);
    device_free(b->device, b->tokens);
    device_free(b->device, b->sums);
    graph_free(b->graph);
    device_stream_free(b->stream);
    device_close(b->device);
}

static const float *whole_pass(struct bench *b)
{
    struct graph_pass pass = {.parameters = b->parameters,
                              .inputs = b->tokens,
                              .targets = b->tokens + CONTEXT,
                              .examples = 1,
                              .sums = b->sums};
    cr_assert_eq(graph_evaluate(b->graph, b->stream, &pass, NULL), 0);
    cr_assert_eq(device_stream_synchronise(b->stream, NULL), 0);
    cr_assert_not_null(graph_outputs(b->graph));
    return graph_outputs(b->graph);
}

/* Pieces of `step` tokens. */
static void check_pieces(struct bench *b, const float *outputs, int64_t step)
{
    struct error error = ERROR_INIT;
    decoder_rewind(b->decoder);
    while (decoder_position(b->decoder) < CONTEXT) {
        int64_t at = decoder_position(b->decoder), count = CONTEXT - at < step ? CONTEXT - at : step;
        cr_assert_eq(decoder_feed(b->decoder, b->tokens + at, count, &error), 0, "%s", error.message);
        const float *row = outputs + (at + count - 1) * VOCABULARY, *logits = decoder_logits(b->decoder);
        for (int i = 0; i < VOCABULARY; i++)
            cr_assert_float_eq(logits[i], row[i], 2e-4 * (1 + fabsf(row[i])), "%f is not %f, token %d behind %lld",
                               (double)logits[i], (double)row[i], i, (long long)at);
    }
}

static int greedy_token(const float *logits)
{
    int best = 0;
    for (int i = 1; i < VOCABULARY; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* Positions do not see later ones, so the first row of a whole pass is that of the first token alone. */
static void check_prompts_of_one_token(struct bench *b)
{
    for (int token = 0; token < VOCABULARY; token++) {
        b->tokens[0] = token;
        int expected = greedy_token(whole_pass(b));
        decoder_rewind(b->decoder);
        cr_assert_eq(decoder_feed(b->decoder, b->tokens, 1, NULL), 0);
        cr_expect_eq(greedy_token(decoder_logits(b->decoder)), expected, "after token %d", token);
    }
}

static void check_model(const struct model_spec *model)
{
    struct error error = ERROR_INIT;
    struct bench b;
    open_bench(&b, model);
    const float *outputs = whole_pass(&b);
    cr_assert_eq(decoder_new(b.graph, b.device, b.stream, b.parameters, &b.decoder, &error), 0, "%s", error.message);
    cr_assert_eq(decoder_context(b.decoder), CONTEXT);
    check_pieces(&b, outputs, 1);
    check_pieces(&b, outputs, 7);
    check_pieces(&b, outputs, CONTEXT);
    check_prompts_of_one_token(&b);
    close_bench(&b);
}

Test(decoder, gives_what_a_pass_over_the_whole_sequence_gives)
{
    check_model(&gpt);
}

Test(decoder, knows_a_tied_output)
{
    struct model_spec tied = gpt;
    tied.preset = PRESET_GPT2_124M;
    check_model(&tied);
}

Test(decoder, knows_layers_in_place_and_side_by_side)
{
    struct layer_spec layers[] = {
        {.type = LAYER_EMBEDDING, .size = VOCABULARY, .units = 12},
        {.name = "qkv", .type = LAYER_DENSE, .units = 36, .bias = true},
        {.type = LAYER_RELU},
        {.name = "attention", .type = LAYER_ATTENTION, .heads = 3},
        {.name = "wide", .type = LAYER_DENSE, .units = 8, .bias = true, .devices = {0, 1}, .device_count = 2},
        {.name = "bent", .type = LAYER_TANH},
        {.name = "both", .type = LAYER_CONCAT, .inputs = {"bent", "attention"}, .input_count = 2},
        {.name = "output", .type = LAYER_DENSE, .units = VOCABULARY},
        {.type = LAYER_RELU},
    };
    check_model(&(struct model_spec){.layers = layers,
                                     .layer_count = sizeof layers / sizeof *layers,
                                     .context = CONTEXT,
                                     .input_shape = {CONTEXT},
                                     .input_rank = 1});
}

static void check_refused(struct bench *b, const int32_t *tokens, int64_t count, const char *words)
{
    struct error error = ERROR_INIT;
    cr_expect_eq(decoder_feed(b->decoder, tokens, count, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(decoder, refuses_what_does_not_fit)
{
    const int32_t bad[] = {3, VOCABULARY}, negative[] = {-1};
    struct bench b;
    open_bench(&b, &gpt);
    cr_assert_eq(decoder_new(b.graph, b.device, b.stream, b.parameters, &b.decoder, NULL), 0);
    check_refused(&b, bad, 2, "token 13 is not in the vocabulary of 13");
    check_refused(&b, negative, 1, "token -1");
    check_refused(&b, b.tokens, 0, "; 0 more do not fit");
    check_refused(&b, b.tokens, CONTEXT + 1, "151 tokens do not fit the model's context; shorten them to 150");
    cr_assert_eq(decoder_position(b.decoder), 0);
    cr_assert_eq(decoder_feed(b.decoder, b.tokens, CONTEXT, NULL), 0);
    check_refused(&b, b.tokens, 1, "already holds 150; 1 more do not fit");
    close_bench(&b);
}

Test(decoder, refuses_models_that_need_the_sequence_whole)
{
    struct error error = ERROR_INIT;
    struct bench b;
    open_bench(&b, &(struct model_spec){.preset = PRESET_MLP});
    cr_expect_eq(decoder_new(b.graph, b.device, b.stream, b.parameters, &b.decoder, &error), -1);
    cr_expect(strstr(error.message, "does not predict the next token"), "%s", error.message);
    close_bench(&b);
}

Test(decoder, refuses_models_that_say_more_than_they_read)
{
    struct error error = ERROR_INIT;
    struct bench b;
    struct layer_spec layers[] = {
        {.type = LAYER_EMBEDDING, .size = VOCABULARY, .units = 12},
        {.name = "output", .type = LAYER_DENSE, .units = VOCABULARY + 1},
    };
    open_bench(&b, &(struct model_spec){.layers = layers,
                                        .layer_count = sizeof layers / sizeof *layers,
                                        .context = CONTEXT,
                                        .input_shape = {CONTEXT},
                                        .input_rank = 1});
    cr_expect_eq(decoder_new(b.graph, b.device, b.stream, b.parameters, &b.decoder, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect(strstr(error.message, "predicts 14 different tokens but its embedding has only 13"), "%s", error.message);
    close_bench(&b);
}
