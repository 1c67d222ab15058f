/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/generate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "common/terminal_text.h"
#include "worker/inference/trained_model.h"
#include "worker/train/error_exit_code.h"

#define PROMPT_MAX ((size_t)1 << 20)

int generate_parse_tokens(const char *text, int32_t **ret_tokens, int64_t *ret_count, struct error *error)
{
    SCOPED_FREE int32_t *tokens = memory_allocate(strlen(text) / 2 + 1, sizeof *tokens);
    int64_t count = 0;
    for (const char *at = text + strspn(text, " ,\n\t"); *at != '\0'; at += strspn(at, " ,\n\t")) {
        char *end;
        errno = 0;
        long token = strtol(at, &end, 10);
        if (!isdigit((unsigned char)*at) || errno != 0 || token > INT32_MAX ||
            (*end != '\0' && strchr(" ,\n\t", *end) == NULL))
            return error_set(
                error, ERROR_INVALID,
                "--generate: \"%.16s\" is not a token; for a model over tokens write their numbers, such as \"17 4\"",
                at);
        tokens[count++] = (int32_t)token;
        at = end;
    }
    *ret_tokens = tokens;
    *ret_count = count;
    tokens = NULL;
    return 0;
}

/* ---------------------------------------------------------------- choosing */

/* `window`: what the decoder has been fed since it last forgot, as much as its position says. */
static int feed(const struct continuation *generation, int32_t *window, const int32_t *tokens, int64_t count,
                struct error *error)
{
    int64_t position = decoder_position(generation->decoder);
    if (decoder_feed(generation->decoder, tokens, count, error) < 0)
        return -1;
    memcpy(window + position, tokens, (size_t)count * sizeof *tokens);
    return 0;
}

static int forget_half(const struct continuation *generation, int32_t *window, struct error *error)
{
    int64_t position = decoder_position(generation->decoder), keeps = position / 2;
    memmove(window, window + position - keeps, (size_t)keeps * sizeof *window);
    decoder_rewind(generation->decoder);
    return keeps > 0 ? decoder_feed(generation->decoder, window, keeps, error) : 0;
}

static int choose_next(const struct continuation *generation, int32_t *window, int64_t number, bool is_last,
                       struct error *error)
{
    int32_t token =
        sampling_choose(&generation->sampling, decoder_logits(generation->decoder), generation->vocabulary, number);
    if (generation->emit(generation->context, token, error) < 0)
        return -1;
    if (is_last)
        return 0;
    if (decoder_position(generation->decoder) == decoder_context(generation->decoder) &&
        forget_half(generation, window, error) < 0)
        return -1;
    return feed(generation, window, &token, 1, error);
}

int generate_tokens(const struct continuation *generation, const int32_t *prompt, int64_t prompt_count, int64_t count,
                    struct error *error)
{
    SCOPED_FREE int32_t *window = memory_allocate((size_t)decoder_context(generation->decoder), sizeof *window);
    decoder_rewind(generation->decoder);
    if (prompt_count < 1)
        return error_set(error, ERROR_INVALID, "the prompt is empty; give at least one token");
    if (feed(generation, window, prompt, prompt_count, error) < 0)
        return error_wrap(error, "the prompt");
    for (int64_t i = 0; i < prompt_count; i++)
        if (generation->emit(generation->context, prompt[i], error) < 0)
            return -1;
    for (int64_t i = 0; i < count; i++)
        if (choose_next(generation, window, i, i + 1 == count, error) < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- printing */

struct printer {
    bool text, terminal;
    bool begun;
    struct terminal_text shown;
};

static int as_byte(struct printer *printer, int32_t token)
{
    if (token > UINT8_MAX)
        return '?';
    return printer->terminal ? terminal_text_next(&printer->shown, (unsigned char)token) : token;
}

static int print_token(void *context, int32_t token, struct error *error)
{
    struct printer *printer = context;
    int result;
    if (printer->text)
        result = putchar(as_byte(printer, token));
    else
        result = printf("%s%d", printer->begun ? " " : "", token);
    printer->begun = true;
    if (result < 0 || fflush(stdout) != 0)
        return error_set_errno(error, "cannot write what is generated");
    return 0;
}

static int print_end(int64_t count, int64_t elapsed_ns, struct error *error)
{
    if (putchar('\n') < 0 || fflush(stdout) != 0)
        return error_set_errno(error, "cannot write what is generated");
    double seconds = (double)elapsed_ns / 1e9;
    (void)fprintf(stderr, "%lld tokens in %.1f s, %.0f a second\n", (long long)count, seconds,
                  seconds > 0 ? (double)count / seconds : 0);
    return 0;
}

/* ---------------------------------------------------------------- the whole of it */

static int parse_prompt(const char *prompt, bool text, int32_t **ret_tokens, int64_t *ret_count, struct error *error)
{
    if (!text)
        return generate_parse_tokens(prompt, ret_tokens, ret_count, error);
    *ret_count = (int64_t)strlen(prompt);
    *ret_tokens = memory_allocate(strlen(prompt) + 1, sizeof **ret_tokens);
    for (int64_t i = 0; i < *ret_count; i++)
        (*ret_tokens)[i] = (unsigned char)prompt[i];
    return 0;
}

static int take_prompt(const struct arguments *arguments, bool text, int32_t **ret_tokens, int64_t *ret_count,
                       struct error *error)
{
    const char *path = arguments->inference.prompt_file;
    SCOPED_BUFFER text_of_file = BUFFER_INIT(PROMPT_MAX);
    if (!path)
        return parse_prompt(arguments->inference.prompt, text, ret_tokens, ret_count, error);
    if (buffer_read_file(&text_of_file, path, error) < 0)
        return error_wrap(error, "--prompt-file");
    if (strlen(buffer_text(&text_of_file)) < text_of_file.length)
        return error_set(error, ERROR_INVALID, "--prompt-file %s: the file has a NUL byte, so it is not a text", path);
    return parse_prompt(buffer_text(&text_of_file), text, ret_tokens, ret_count, error);
}

static int go_on(const struct arguments *arguments, const struct continuation *generation, struct printer *printer,
                 struct error *error)
{
    int64_t count = arguments->inference.tokens, prompt_count, begun = clock_monotonic_ns();
    SCOPED_FREE int32_t *prompt = NULL;
    if (take_prompt(arguments, printer->text, &prompt, &prompt_count, error) < 0)
        return -1;
    if (generate_tokens(generation, prompt, prompt_count, count, error) < 0)
        return -1;
    return print_end(count, clock_monotonic_ns() - begun, error);
}

static int generate(const struct arguments *arguments, struct trainer *trainer, struct error *error)
{
    struct printer printer = {.text = trainer->job->data.format == DATA_FORMAT_BYTES, .terminal = isatty(1) == 1};
    struct continuation generation = {
        .vocabulary = graph_example_format(trainer->graph)->classes,
        .sampling = {arguments->inference.temperature, arguments->inference.top_k, (uint64_t)arguments->inference.seed},
        .emit = print_token,
        .context = &printer,
    };
    if (decoder_new(trainer->graph, trainer->device, trainer->stream, trainer->state.parameters, &generation.decoder,
                    error) < 0)
        return error_wrap(error, "--generate");
    int result = go_on(arguments, &generation, &printer, error);
    decoder_free(generation.decoder);
    return result;
}

int generate_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                 enum exit_code *ret_code, struct error *error)
{
    struct trained_model model;
    int result = trained_model_open(&model, arguments, identity, job, TRAINED_TOKEN_BY_TOKEN, ret_code, error);
    if (result == 0) {
        result = generate(arguments, &model.trainer, error);
        if (result < 0)
            *ret_code = error_exit_code(error, EXIT_CODE_BAD_JOB);
    }
    trained_model_release(&model);
    return result;
}
