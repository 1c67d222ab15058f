/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/predict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/inference/picture.h"
#include "worker/inference/trained_model.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/evaluation.h"

#define CLASSES_SHOWN 3
#define TEXT_MAX ((size_t)1 << 20)

unsigned predict_rank(const float *logits, int64_t count, struct prediction *ret_predictions, unsigned most)
{
    unsigned found = 0;
    double sum = 0;
    float maximum = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        unsigned place = found;
        while (place > 0 && (double)logits[i] > ret_predictions[place - 1].probability)
            place--;
        if (place == most)
            continue;
        found += found < most;
        memmove(&ret_predictions[place + 1], &ret_predictions[place], (found - place - 1) * sizeof *ret_predictions);
        ret_predictions[place] = (struct prediction){i, (double)logits[i]};
    }
    for (int64_t i = 0; i < count; i++)
        maximum = fmaxf(maximum, logits[i]);
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - (double)maximum);
    for (unsigned i = 0; i < found; i++)
        ret_predictions[i].probability = exp(ret_predictions[i].probability - (double)maximum) / sum;
    return found;
}

/* ---------------------------------------------------------------- one example */

static int print(const struct buffer *text, struct error *error)
{
    if (fwrite(text->data, 1, text->length, stdout) != text->length || fflush(stdout) != 0)
        return error_set_errno(error, "cannot write what is predicted");
    return 0;
}

static int describe(const struct trainer *trainer, const float *pixels, int32_t class, const float *logits,
                    int64_t number, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    struct prediction ranked[CLASSES_SHOWN];
    unsigned count = predict_rank(logits, format->classes, ranked, CLASSES_SHOWN);
    SCOPED_BUFFER text;
    buffer_init(&text, TEXT_MAX);
    if (format->image[0] > 0)
        picture_print(pixels, format->image, &text);
    for (unsigned i = 0; i < count; i++)
        buffer_format(&text, "class %lld: %.1f %%\n", (long long)ranked[i].class, 100 * ranked[i].probability);
    buffer_format(&text, "example %lld of %lld is of class %d: %s\n", (long long)number,
                  (long long)dataset_count(trainer->validation), class, ranked[0].class == class ? "right" : "wrong");
    return print(&text, error);
}

static int evaluate(const struct trainer *trainer, int64_t first, int64_t count, struct loss_sums *ret_sums,
                    struct error *error)
{
    return evaluation_run(trainer->graph, trainer->device, trainer->stream, trainer->state.parameters,
                          trainer->validation, first, count, ret_sums, error);
}

static int predict_one(const struct trainer *trainer, int64_t number, struct error *error)
{
    SCOPED_FREE float *pixels = memory_allocate(1, example_input_bytes(graph_example_format(trainer->graph)));
    int32_t class;
    struct loss_sums sums;
    if (dataset_read(trainer->validation, &number, 1, pixels, &class, error) < 0 ||
        evaluate(trainer, number, 1, &sums, error) < 0)
        return -1;
    return describe(trainer, pixels, class, graph_outputs(trainer->graph), number, error);
}

/* ---------------------------------------------------------------- all of them */

static int predict_all(const struct trainer *trainer, struct error *error)
{
    struct loss_sums sums;
    if (evaluate(trainer, 0, dataset_count(trainer->validation), &sums, error) < 0)
        return -1;
    struct evaluation_metrics metrics = evaluation_metrics(graph_example_format(trainer->graph), &sums);
    SCOPED_BUFFER text;
    buffer_init(&text, TEXT_MAX);
    if (isfinite(metrics.accuracy))
        buffer_format(&text, "loss %.4f, accuracy %.2f %%: %lld of %lld\n", metrics.loss, 100 * metrics.accuracy,
                      (long long)sums.correct, (long long)sums.count);
    else if (!isnan(metrics.perplexity))
        buffer_format(&text, "loss %.4f, perplexity %.2f\n", metrics.loss, metrics.perplexity);
    else
        buffer_format(&text, "loss %.4f\n", metrics.loss);
    return print(&text, error);
}

/* ---------------------------------------------------------------- which */

static int open_examples(struct trainer *trainer, struct error *error)
{
    if (dataset_open(&trainer->job->data, trainer->storage, SPLIT_VALIDATION, graph_example_format(trainer->graph),
                     &trainer->validation, error) < 0)
        return error_wrap(error, "validation data");
    if (dataset_count(trainer->validation) == 0)
        return error_set(error, ERROR_INVALID,
                         "--predict needs held-out examples; add data.validation, such as {last: 1000}");
    return 0;
}

static int choose(const struct trainer *trainer, const char *which, int64_t *ret_number, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    int64_t count = dataset_count(trainer->validation);
    char *end;
    if (format->target_elements != 1 || format->classes == 0)
        return error_set(error, ERROR_INVALID, "--predict: the model's examples have no class each; %s",
                         format->classes ? "ask for all, or take --generate" : "ask for all");
    errno = 0;
    long long number = strtoll(which, &end, 10);
    if (*which == '\0' || *end != '\0' || errno != 0 || number < 0 || number >= count)
        return error_set(error, ERROR_INVALID, "--predict: \"%.32s\" is neither \"all\" nor a number from 0 to %lld",
                         which, (long long)count - 1);
    *ret_number = number;
    return 0;
}

/* `which` NULL: all of them. */
static int predict(struct trainer *trainer, const char *which, enum exit_code *ret_code, struct error *error)
{
    int64_t number;
    *ret_code = EXIT_CODE_BAD_DATA;
    if (open_examples(trainer, error) < 0)
        return -1;
    if (!which)
        return predict_all(trainer, error);
    *ret_code = EXIT_CODE_BAD_JOB;
    if (choose(trainer, which, &number, error) < 0)
        return -1;
    *ret_code = EXIT_CODE_BAD_DATA;
    return predict_one(trainer, number, error);
}

int predict_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                enum exit_code *ret_code, struct error *error)
{
    struct trained_model model;
    const char *which = strcmp(arguments->inference.example, "all") == 0 ? NULL : arguments->inference.example;
    int result = trained_model_open(&model, arguments, identity, job,
                                    which ? TRAINED_EXAMPLE_ALONE : TRAINED_IN_BATCHES, ret_code, error);
    if (result == 0) {
        result = predict(&model.trainer, which, ret_code, error);
        if (result < 0)
            *ret_code = error_exit_code(error, *ret_code);
    }
    trained_model_release(&model);
    return result;
}
