/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated tokens against evaluations of the same model: greedy ones are the
 * most probable of a pass over the whole sequence. And against PyTorch's, from a
 * file that tests/parity/parity.py --golden has written.
 */
#include "worker/inference/generate.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/checkpoint/safetensors.h"

#define CONTEXT 40
#define VOCABULARY 11
#define ASKED 100

static const struct model_spec gpt = {
    .preset = PRESET_GPT_BYTES, .width = 16, .depth = 2, .heads = 2, .context = CONTEXT, .vocabulary = VOCABULARY};

struct bench {
    struct device *device;
    struct device_stream *stream;
    struct graph *graph;
    float *parameters;
    int32_t *targets;
    struct loss_sums *sums;
    struct continuation generation;
    int32_t tokens[CONTEXT + ASKED]; /* prompt and what came */
    int64_t count, most;
};

static int keep(void *context, int32_t token, struct error *error)
{
    struct bench *b = context;
    if (b->count == b->most)
        return error_set(error, ERROR_SYSTEM, "enough");
    b->tokens[b->count++] = token;
    return 0;
}

static void open_model(struct bench *b, const struct model_spec *model)
{
    *b = (struct bench){.most = CONTEXT + ASKED};
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &b->device, NULL), 0);
    cr_assert_eq(device_stream_new(b->device, &b->stream, NULL), 0);
    const struct graph_options options = {
        .device = b->device, .model = model, .max_examples = 1, .evaluation_only = true};
    cr_assert_eq(graph_new(&options, &b->graph, NULL), 0);
    int64_t count = graph_layout(b->graph)->elements;
    cr_assert_eq(
        device_allocate(b->device, MEMORY_SHARED, (size_t)count * sizeof(float), (void **)&b->parameters, NULL), 0);
    cr_assert_eq(device_allocate(b->device, MEMORY_SHARED, CONTEXT * sizeof(int32_t), (void **)&b->targets, NULL), 0);
    cr_assert_eq(device_allocate(b->device, MEMORY_SHARED, sizeof *b->sums, (void **)&b->sums, NULL), 0);
}

/* After the parameters have their values. */
static void open_decoder(struct bench *b)
{
    b->generation = (struct continuation){.vocabulary = VOCABULARY, .emit = keep, .context = b};
    cr_assert_eq(decoder_new(b->graph, b->device, b->stream, b->parameters, &b->generation.decoder, NULL), 0);
}

static void open_bench(struct bench *b)
{
    open_model(b, &gpt);
    graph_initialise(graph_layout(b->graph), 5, b->parameters);
    for (int64_t i = 0; i < graph_layout(b->graph)->elements; i++) /* so that the text does not stand still */
        b->parameters[i] *= 10;
    open_decoder(b);
}

static void close_bench(struct bench *b)
{
    decoder_free(b->generation.decoder);
    device_free(b->device, b->parameters);
    device_free(b->device, b->targets);
    device_free(b->device, b->sums);
    graph_free(b->graph);
    device_stream_free(b->stream);
    device_close(b->device);
}

static int generate(struct bench *b, int64_t count, struct error *error)
{
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    b->count = 0;
    return generate_tokens(&b->generation, prompt, 5, count, error);
}

/* Returns for how many positions behind `from`, in a window of the generated tokens, an evaluation finds the next token the most
 * probable. */
static int64_t evaluated_right(struct bench *b, int64_t first, int64_t from)
{
    struct graph_pass pass = {.parameters = b->parameters,
                              .inputs = b->tokens + first,
                              .targets = b->targets,
                              .examples = 1,
                              .sums = b->sums};
    int64_t right[2];
    for (int shift = 0; shift < 2; shift++) { /* once with the tokens themselves, once with others from there on */
        for (int64_t i = 0; i < CONTEXT; i++)
            b->targets[i] = (b->tokens[first + i + 1] + (i >= from ? shift : 0)) % VOCABULARY;
        cr_assert_eq(graph_evaluate(b->graph, b->stream, &pass, NULL), 0);
        cr_assert_eq(device_stream_synchronise(b->stream, NULL), 0);
        right[shift] = b->sums->correct;
    }
    return right[0] - right[1];
}

Test(generate, greedy_text_is_what_an_evaluation_finds_most_probable)
{
    struct bench b;
    open_bench(&b);
    cr_assert_eq(generate(&b, CONTEXT - 4, NULL), 0);
    cr_assert_eq(b.count, CONTEXT + 1);
    cr_assert_eq(evaluated_right(&b, 0, 4), CONTEXT - 4);
    close_bench(&b);
}

Test(generate, goes_on_beyond_the_context_with_its_newer_half)
{
    struct bench b;
    open_bench(&b);
    cr_assert_eq(generate(&b, ASKED, NULL), 0);
    cr_assert_eq(b.count, 5 + ASKED);
    /* 40 fill the context and the 41st is chosen behind them; then 20 of the 40 stay. */
    cr_assert_eq(evaluated_right(&b, CONTEXT / 2, CONTEXT / 2), CONTEXT / 2);
    cr_assert_eq(evaluated_right(&b, CONTEXT, CONTEXT / 2), CONTEXT / 2);
    close_bench(&b);
}

/* From each token PyTorch has generated as many as this, of a model with a context of a quarter as many. */
#define GOLDEN_TOKENS 48

Test(generate, greedy_text_is_that_of_pytorch)
{
    static const struct model_spec model = {.preset = PRESET_GPT_BYTES,
                                            .width = 8,
                                            .depth = 2,
                                            .heads = 2,
                                            .context = GOLDEN_TOKENS / 4,
                                            .vocabulary = VOCABULARY};
    struct bench b;
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(safetensors_open("tests/unit/worker/model/golden/text.safetensors", &file, &error), 0, "%s",
                 error.message);
    open_model(&b, &model);
    const struct parameter_layout *layout = graph_layout(b.graph);
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        char name[160];
        snprintf(name, sizeof name, "w/%s", layout->tensors[t].name);
        const struct safetensors_tensor *tensor = safetensors_find(&file, name);
        cr_assert_not_null(tensor, "%s", name);
        memcpy(b.parameters + layout->tensors[t].offset, tensor->data,
               (size_t)layout->tensors[t].elements * sizeof *b.parameters);
    }
    open_decoder(&b);
    const float *expected = safetensors_find(&file, "tokens")->data;
    for (int32_t first = 0; first < VOCABULARY; first++) {
        b.count = 0;
        cr_assert_eq(generate_tokens(&b.generation, &first, 1, GOLDEN_TOKENS, NULL), 0);
        for (int i = 0; i < GOLDEN_TOKENS; i++)
            cr_expect_eq(b.tokens[1 + i], (int32_t)expected[first * GOLDEN_TOKENS + i], "token %d after %d", i, first);
    }
    close_bench(&b);
    safetensors_close(&file);
}

Test(generate, equal_seeds_give_equal_texts)
{
    struct bench b, c;
    open_bench(&b);
    open_bench(&c);
    b.generation.sampling = c.generation.sampling = (struct sampling){.temperature = 1, .seed = 3};
    cr_assert_eq(generate(&b, ASKED, NULL), 0);
    cr_assert_eq(generate(&c, ASKED, NULL), 0);
    cr_assert_eq(memcmp(b.tokens, c.tokens, sizeof b.tokens), 0);
    c.generation.sampling.seed = 4;
    cr_assert_eq(generate(&c, ASKED, NULL), 0);
    cr_assert_neq(memcmp(b.tokens, c.tokens, sizeof b.tokens), 0);
    close_bench(&b);
    close_bench(&c);
}

Test(generate, ends_when_its_reader_does)
{
    struct error error = ERROR_INIT;
    struct bench b;
    open_bench(&b);
    b.most = 20;
    cr_assert_eq(generate(&b, ASKED, &error), -1);
    cr_assert_str_eq(error.message, "enough");
    close_bench(&b);
}

Test(generate, refuses_prompts_that_do_not_fit)
{
    const int32_t bad[] = {VOCABULARY}, many[CONTEXT + 1] = {0};
    struct error error = ERROR_INIT;
    struct bench b;
    open_bench(&b);
    cr_expect_eq(generate_tokens(&b.generation, bad, 0, 1, &error), -1);
    cr_expect(strstr(error.message, "is empty"), "%s", error.message);
    cr_expect_eq(generate_tokens(&b.generation, bad, 1, 1, &error), -1);
    cr_expect(strstr(error.message, "vocabulary of 11"), "%s", error.message);
    cr_expect_eq(generate_tokens(&b.generation, many, CONTEXT + 1, 1, &error), -1);
    cr_expect(strstr(error.message, "shorten them to 40"), "%s", error.message);
    cr_expect_eq(b.count, 0);
    close_bench(&b);
}

Test(generate, reads_tokens_as_numbers)
{
    struct error error = ERROR_INIT;
    int32_t *tokens;
    int64_t count;
    cr_assert_eq(generate_parse_tokens(" 17, 4\n250 ", &tokens, &count, &error), 0, "%s", error.message);
    cr_assert_eq(count, 3);
    cr_assert(tokens[0] == 17 && tokens[1] == 4 && tokens[2] == 250);
    free(tokens);
    cr_assert_eq(generate_parse_tokens("", &tokens, &count, &error), 0);
    cr_assert_eq(count, 0);
    free(tokens);
    static const char *const bad[] = {"x", "1 -2", "1x", "99999999999", "1;2", "+3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(generate_parse_tokens(bad[i], &tokens, &count, &error), -1, "%s", bad[i]);
}
