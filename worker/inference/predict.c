/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/predict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/data/csv.h"
#include "common/data/npy.h"
#include "common/memory.h"
#include "common/scope.h"
#include "common/terminal_text.h"
#include "worker/inference/class_report.h"
#include "worker/inference/picture.h"
#include "worker/inference/trained_model.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/evaluation.h"
#include "worker/train/trained_on.h"

#define CLASSES_SHOWN 3
#define VALUES_SHOWN 16
#define TEXT_MAX ((size_t)1 << 20)
#define JSON_MAX ((size_t)4 << 20) /* names of 65,536 classes, and pictures; cox ui reads no more */

static void turn_into_probabilities(const float *logits, int64_t count, struct prediction *predictions, unsigned found)
{
    double sum = 0;
    float maximum = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        maximum = fmaxf(maximum, logits[i]);
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - (double)maximum);
    for (unsigned i = 0; i < found; i++)
        predictions[i].probability = exp(predictions[i].probability - (double)maximum) / sum;
}

unsigned predict_rank(const float *scores, int64_t count, enum output_meaning meaning,
                      struct prediction *ret_predictions, unsigned most)
{
    unsigned found = 0;
    for (int64_t i = 0; i < count; i++) {
        unsigned place = found;
        while (place > 0 && (double)scores[i] > ret_predictions[place - 1].probability)
            place--;
        if (place == most)
            continue;
        found += found < most;
        memmove(&ret_predictions[place + 1], &ret_predictions[place], (found - place - 1) * sizeof *ret_predictions);
        ret_predictions[place] = (struct prediction){i, (double)scores[i]};
    }
    if (meaning == OUTPUT_LOGITS)
        turn_into_probabilities(scores, count, ret_predictions, found);
    return found;
}

/* ---------------------------------------------------------------- one example */

static int write_out(const void *data, size_t length, struct error *error)
{
    if (fwrite(data, 1, length, stdout) != length || fflush(stdout) != 0)
        return error_set_errno(error, "cannot write what is predicted");
    return 0;
}

static int print(const struct buffer *text, struct error *error)
{
    return write_out(text->data, text->length, error);
}

/* Appends the name that the training files have for a class, else its number. */
static void append_class(const struct trainer *trainer, int64_t class, struct buffer *text)
{
    const struct json *name = json_element(dataset_facts(trainer->validation)->classes, (size_t) class);
    const char *word = json_string(name, NULL);
    if (word)
        terminal_text_append(text, word, strlen(word));
    else
        buffer_format(text, "%lld", (long long)class);
}

static int describe(const struct trainer *trainer, const float *pixels, int32_t class, int64_t number,
                    struct error *error)
{
    bool is_new = trainer->arguments->inference.data != NULL;
    const struct example_format *format = graph_example_format(trainer->graph);
    struct prediction ranked[CLASSES_SHOWN];
    unsigned count = predict_rank(graph_outputs(trainer->graph), format->classes,
                                  graph_output_format(trainer->graph).meaning, ranked, CLASSES_SHOWN);
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    if (format->image[0] > 0)
        picture_print(pixels, format->image, &text);
    for (unsigned i = 0; i < count; i++) {
        buffer_append_string(&text, "class ", NULL);
        append_class(trainer, ranked[i].class, &text);
        buffer_format(&text, ": %.1f %%\n", 100 * ranked[i].probability);
    }
    if (!is_new) {
        buffer_format(&text, "example %lld of %lld is of class ", (long long)number,
                      (long long)dataset_count(trainer->validation));
        append_class(trainer, class, &text);
        buffer_format(&text, ": %s\n", ranked[0].class == class ? "right" : "wrong");
    }
    return print(&text, error);
}

/* `ret_targets` NULL: they are not wanted. */
static int evaluate(const struct trainer *trainer, int64_t first, int64_t count, void *ret_targets,
                    struct loss_sums *ret_sums, struct error *error)
{
    const struct evaluation_examples examples = {trainer->validation, first, count, ret_targets};
    return evaluation_run(trainer->graph, trainer->device, trainer->stream, trainer->state.parameters, &examples,
                          ret_sums, error);
}

static int predict_one(const struct trainer *trainer, int64_t number, struct error *error)
{
    SCOPED_FREE float *pixels = memory_allocate(1, example_input_bytes(graph_example_format(trainer->graph)));
    int32_t class;
    struct loss_sums sums;
    if (dataset_read(trainer->validation, &number, 1, pixels, &class, error) < 0 ||
        evaluate(trainer, number, 1, NULL, &sums, error) < 0)
        return -1;
    return describe(trainer, pixels, class, number, error);
}

/* ---------------------------------------------------------------- all of them */

static int predict_all(const struct trainer *trainer, struct error *error)
{
    struct loss_sums sums;
    if (evaluate(trainer, 0, dataset_count(trainer->validation), NULL, &sums, error) < 0)
        return -1;
    struct evaluation_metrics metrics = evaluation_metrics_of(trainer->graph, trainer->validation, &sums);
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    if (isfinite(metrics.accuracy))
        buffer_format(&text, "loss %.4f, accuracy %.2f %%: %lld of %lld\n", metrics.loss, 100 * metrics.accuracy,
                      (long long)sums.correct, (long long)sums.count);
    else if (!isnan(metrics.perplexity))
        buffer_format(&text, "loss %.4f, perplexity %.2f\n", metrics.loss, metrics.perplexity);
    else if (isfinite(metrics.rmse))
        buffer_format(&text, "loss %.4f, RMSE %.6g in the labels' unit\n", metrics.loss, metrics.rmse);
    else
        buffer_format(&text, "loss %.4f\n", metrics.loss);
    return print(&text, error);
}

/* ---------------------------------------------------------------- new ones */

/* Whether the model gives for an example what its labels are: numbers. */
static bool gives_values(const struct trainer *trainer)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    const struct output_format output = graph_output_format(trainer->graph);
    return format->target_type == ELEMENT_FLOAT32 && output.type == ELEMENT_FLOAT32 &&
           output.meaning == OUTPUT_VALUES && output.elements == format->target_elements;
}

/* Evaluates examples from `first` on and copies the model's outputs for them and, unless `ret_targets` is NULL, their targets. If the
 * outputs are values for the labels, both are in the labels' own units. */
static int outputs_of(const struct trainer *trainer, int64_t first, int64_t count, float *ret_outputs,
                      void *ret_targets, struct error *error)
{
    struct loss_sums sums;
    size_t elements = (size_t)graph_output_format(trainer->graph).elements;
    if (evaluate(trainer, first, count, ret_targets, &sums, error) < 0)
        return -1;
    memcpy(ret_outputs, graph_outputs(trainer->graph), (size_t)count * elements * sizeof *ret_outputs);
    if (gives_values(trainer))
        dataset_restore_targets(trainer->validation, ret_outputs, count);
    if (gives_values(trainer) && ret_targets)
        dataset_restore_targets(trainer->validation, ret_targets, count);
    return 0;
}

/* Memory for the targets of a batch of examples. */
static void *batch_targets(const struct trainer *trainer)
{
    return memory_allocate((size_t)graph_max_examples(trainer->graph),
                           example_target_bytes(graph_example_format(trainer->graph)));
}

/* Memory for the outputs of a batch of examples. */
static float *batch_outputs(const struct trainer *trainer)
{
    return memory_allocate((size_t)graph_max_examples(trainer->graph),
                           (size_t)graph_output_format(trainer->graph).elements * sizeof(float));
}

static void list_classes(const struct trainer *trainer, const float *scores, struct buffer *text)
{
    struct prediction ranked[CLASSES_SHOWN];
    unsigned count = predict_rank(scores, graph_example_format(trainer->graph)->classes,
                                  graph_output_format(trainer->graph).meaning, ranked, CLASSES_SHOWN);
    for (unsigned i = 0; i < count; i++) {
        buffer_append_string(text, i > 0 ? ", class " : " class ", NULL);
        append_class(trainer, ranked[i].class, text);
        buffer_format(text, " %.1f %%", 100 * ranked[i].probability);
    }
}

static void list_values(const float *values, int64_t count, struct buffer *text)
{
    for (int64_t i = 0; i < count; i++)
        buffer_format(text, " %.9g", (double)values[i]);
}

static int check_listed(const struct trainer *trainer, struct error *error)
{
    const struct output_format format = graph_output_format(trainer->graph);
    if (format.type == ELEMENT_FLOAT32 && (format.meaning != OUTPUT_VALUES || format.elements <= VALUES_SHOWN))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the model gives %lld numbers for an example, which are too many for a line; add --outputs",
                     (long long)format.elements);
}

/* The values for one example and, of a held-out one, its label. */
static int predict_values(const struct trainer *trainer, int64_t number, struct error *error)
{
    int64_t elements = graph_output_format(trainer->graph).elements;
    const char *word = elements == 1 ? "value" : "values";
    SCOPED_FREE float *outputs = batch_outputs(trainer);
    SCOPED_FREE float *targets = batch_targets(trainer);
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    if (check_listed(trainer, error) < 0 || outputs_of(trainer, number, 1, outputs, targets, error) < 0)
        return -1;
    buffer_format(&text, "%s:", word);
    list_values(outputs, elements, &text);
    buffer_append_byte(&text, '\n', NULL);
    if (!trainer->arguments->inference.data) {
        buffer_format(&text, "example %lld of %lld has the %s", (long long)number,
                      (long long)dataset_count(trainer->validation), word);
        list_values(targets, elements, &text);
        buffer_append_byte(&text, '\n', NULL);
    }
    return print(&text, error);
}

/* Whether there is a score for each class, and not a value. */
static bool gives_scores(const struct trainer *trainer)
{
    const struct output_format format = graph_output_format(trainer->graph);
    return format.meaning != OUTPUT_VALUES && format.elements == graph_example_format(trainer->graph)->classes;
}

static void append_line(const struct trainer *trainer, int64_t number, const float *outputs, struct buffer *text)
{
    const char *name = dataset_example_name(trainer->validation, number);
    if (name)
        terminal_text_append(text, name, strlen(name));
    else
        buffer_format(text, "example %lld", (long long)number);
    buffer_append_byte(text, ':', NULL);
    if (gives_scores(trainer))
        list_classes(trainer, outputs, text);
    else
        list_values(outputs, graph_output_format(trainer->graph).elements, text);
    buffer_append_byte(text, '\n', NULL);
}

/* ---------------------------------------------------------------- a table of answers */

static void append_head(const struct trainer *trainer, struct buffer *text)
{
    int64_t elements = graph_output_format(trainer->graph).elements;
    if (gives_scores(trainer))
        buffer_append_string(text, "class,probability\n", NULL);
    else if (elements == 1)
        buffer_append_string(text, "value\n", NULL);
    for (int64_t i = 0; !gives_scores(trainer) && elements > 1 && i < elements; i++)
        buffer_format(text, "value%lld%c", (long long)i + 1, i + 1 < elements ? ',' : '\n');
}

static void append_row(const struct trainer *trainer, const float *outputs, struct buffer *text)
{
    const struct output_format format = graph_output_format(trainer->graph);
    struct prediction best;
    SCOPED_BUFFER name = BUFFER_INIT(TEXT_MAX);
    if (gives_scores(trainer)) {
        predict_rank(outputs, format.elements, format.meaning, &best, 1);
        append_class(trainer, best.class, &name);
        csv_append_cell(text, buffer_text(&name), ",", NULL);
        buffer_format(text, "%.6f\n", best.probability);
        return;
    }
    for (int64_t i = 0; i < format.elements; i++)
        buffer_format(text, "%.9g%c", (double)outputs[i], i + 1 < format.elements ? ',' : '\n');
}

/* ---------------------------------------------------------------- the score of new examples that have labels */

/* Sums over the examples so far. */
struct score {
    int64_t examples, right;
    double absolute, squares; /* of the distances from the labels, in their units */
};

static void add_to_score(const struct trainer *trainer, const float *outputs, const void *target, struct score *score)
{
    const struct output_format output = graph_output_format(trainer->graph);
    const struct example_format *format = graph_example_format(trainer->graph);
    struct prediction best;
    if (format->ignores && *(const int32_t *)target == format->ignored)
        return;
    score->examples++;
    if (gives_scores(trainer)) {
        predict_rank(outputs, output.elements, output.meaning, &best, 1);
        score->right += best.class == *(const int32_t *)target;
        return;
    }
    double distance = fabs((double)*outputs - (double)*(const float *)target);
    score->absolute += distance;
    score->squares += distance * distance;
}

/* Says it on stderr, since what is predicted is a table on stdout. */
static void print_score(const struct trainer *trainer, const struct score *score)
{
    double examples = score->examples > 0 ? (double)score->examples : 1;
    if (gives_scores(trainer))
        fprintf(stderr, "accuracy %.2f %%: %lld of %lld\n", 100 * (double)score->right / examples,
                (long long)score->right, (long long)score->examples);
    else
        fprintf(stderr, "RMSE %.6g, MAE %.6g, in the labels' unit: %lld examples\n", sqrt(score->squares / examples),
                score->absolute / examples, (long long)score->examples);
}

/* Whether the labels of new examples can be compared with what the model gives for them. */
static bool has_score(const struct trainer *trainer)
{
    return dataset_has_targets(trainer->validation) &&
           (gives_scores(trainer) || (gives_values(trainer) && graph_output_format(trainer->graph).elements == 1));
}

/* Prints a line for each example; for the rows of a table, a table. If they have labels, the score follows. */
static int predict_each(const struct trainer *trainer, struct error *error)
{
    int64_t elements = graph_output_format(trainer->graph).elements;
    int64_t count = dataset_count(trainer->validation), batch = graph_max_examples(trainer->graph);
    size_t target_bytes = example_target_bytes(graph_example_format(trainer->graph));
    bool is_table = dataset_is_table(trainer->validation), scores = has_score(trainer);
    struct score score = {.examples = 0};
    SCOPED_FREE float *outputs = batch_outputs(trainer);
    SCOPED_FREE char *targets = batch_targets(trainer);
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    if (is_table)
        append_head(trainer, &text);
    for (int64_t at = 0; at < count; at += batch) {
        int64_t examples = count - at < batch ? count - at : batch;
        if (outputs_of(trainer, at, examples, outputs, targets, error) < 0)
            return -1;
        for (int64_t i = 0; i < examples; i++)
            if (is_table)
                append_row(trainer, outputs + i * elements, &text);
            else
                append_line(trainer, at + i, outputs + i * elements, &text);
        if (print(&text, error) < 0)
            return -1;
        for (int64_t i = 0; i < examples && scores; i++)
            add_to_score(trainer, outputs + i * elements, targets + (size_t)i * target_bytes, &score);
        buffer_clear(&text);
    }
    if (scores)
        print_score(trainer, &score);
    return 0;
}

/* ---------------------------------------------------------------- outputs */

static int print_outputs(const struct trainer *trainer, int64_t first, int64_t count, struct error *error)
{
    const struct output_format format = graph_output_format(trainer->graph);
    struct npy npy = {.kind = format.type == ELEMENT_FLOAT32 ? 'f' : 'i', .item_bytes = 4, .rank = format.rank + 1};
    int64_t batch = graph_max_examples(trainer->graph);
    SCOPED_FREE float *outputs = batch_outputs(trainer);
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    npy.shape[0] = count;
    memcpy(npy.shape + 1, format.shape, format.rank * sizeof *format.shape);
    if (npy_append_header(&text, &npy, error) < 0 || print(&text, error) < 0)
        return -1;
    for (int64_t at = 0; at < count; at += batch) {
        int64_t examples = count - at < batch ? count - at : batch;
        if (outputs_of(trainer, first + at, examples, outputs, NULL, error) < 0 ||
            write_out(outputs, (size_t)examples * (size_t)format.elements * sizeof *outputs, error) < 0)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- as JSON */

/* Adds the examples of the batch that was evaluated last. */
static void add_batch(const struct trainer *trainer, int64_t first, int64_t count, const int32_t *classes,
                      struct class_report *report)
{
    const struct output_format format = graph_output_format(trainer->graph);
    const float *outputs = graph_outputs(trainer->graph);
    for (int64_t i = 0; i < count; i++)
        class_report_add(report, first + i, classes[i], outputs + i * format.elements, format.meaning);
}

static int add_pictures(const struct trainer *trainer, struct json *document, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    if (format->image[0] == 0)
        return 0;
    SCOPED_FREE float *pixels = memory_allocate(1, example_input_bytes(format));
    int32_t class;
    for (struct json *row = json_first(json_at(document, "worst")); row; row = json_next(row)) {
        int64_t number = json_integer_at(row, "example", 0);
        if (dataset_read(trainer->validation, &number, 1, pixels, &class, error) < 0)
            return -1;
        json_set(row, "picture", picture_json(pixels, format->image));
    }
    return 0;
}

static void set_metrics(const struct trainer *trainer, const struct loss_sums *sums, struct json *document)
{
    struct evaluation_metrics metrics = evaluation_metrics_of(trainer->graph, trainer->validation, sums);
    json_set_integer(document, "examples", dataset_count(trainer->validation));
    if (isfinite(metrics.loss))
        json_set_number(document, "loss", metrics.loss);
    if (isfinite(metrics.accuracy))
        json_set_number(document, "accuracy", metrics.accuracy);
    if (isfinite(metrics.perplexity))
        json_set_number(document, "perplexity", metrics.perplexity);
    if (isfinite(metrics.rmse))
        json_set_number(document, "rmse", metrics.rmse);
}

/* Whether each example has one class, and the model gives a score for each class. */
static bool is_classifier(const struct trainer *trainer)
{
    return graph_example_format(trainer->graph)->target_elements == 1 && gives_scores(trainer) &&
           graph_outputs(trainer->graph) != NULL;
}

static int print_json(const struct trainer *trainer, struct error *error)
{
    int64_t count = dataset_count(trainer->validation), batch = graph_max_examples(trainer->graph);
    bool classifies = is_classifier(trainer);
    struct loss_sums sums = {.loss = 0}, some;
    SCOPED(class_report_release) struct class_report report = {.confusion = NULL};
    SCOPED_JSON *document = json_new_object();
    SCOPED_FREE void *targets = batch_targets(trainer);
    SCOPED_BUFFER text = BUFFER_INIT(JSON_MAX);
    if (classifies)
        class_report_init(&report, graph_example_format(trainer->graph)->classes);
    for (int64_t at = 0; at < count; at += batch) {
        int64_t examples = count - at < batch ? count - at : batch;
        if (evaluate(trainer, at, examples, targets, &some, error) < 0)
            return -1;
        if (classifies) /* so a target is one int32 */
            add_batch(trainer, at, examples, targets, &report);
        sums = (struct loss_sums){sums.loss + some.loss, sums.correct + some.correct, sums.count + some.count};
    }
    set_metrics(trainer, &sums, document);
    if (classifies) {
        json_set(document, "classes", json_copy(dataset_facts(trainer->validation)->classes));
        class_report_set(&report, document);
    }
    if (add_pictures(trainer, document, error) < 0 || json_print(document, &text, error) < 0)
        return -1;
    buffer_append_byte(&text, '\n', NULL);
    return print(&text, error);
}

/* ---------------------------------------------------------------- which */

static int open_new(struct trainer *trainer, const char *path, struct error *error)
{
    return dataset_open_inputs(path, &trainer->job->data, trainer->files.storage, graph_example_format(trainer->graph),
                               &trainer->trained_on.facts, &trainer->validation, error) < 0
               ? error_wrap(error, "--data %s", path)
               : 0;
}

static int open_held_out(struct trainer *trainer, struct error *error)
{
    if (dataset_open_held_out(&trainer->job->data, trainer->files.storage, graph_example_format(trainer->graph),
                              &trainer->trained_on.facts, &trainer->validation, error) < 0)
        return error_wrap(error, "validation data");
    if (dataset_count(trainer->validation) == 0)
        return error_set(error, ERROR_INVALID,
                         "predicting needs held-out examples; add data.validation, such as {last: 1000}");
    return 0;
}

static int open_examples(struct trainer *trainer, struct error *error)
{
    const char *data = trainer->arguments->inference.data;
    if ((data ? open_new(trainer, data, error) : open_held_out(trainer, error)) < 0)
        return -1;
    if (*dataset_notice(trainer->validation))
        fprintf(stderr, "%s: %s\n", data ? data : "held-out examples", dataset_notice(trainer->validation));
    return trained_on_check(&trainer->trained_on, trainer->validation, error);
}

/* Whether there is a score for each class of one example. */
static int check_scores(const struct trainer *trainer, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    bool of_text = format->classes > 0 && trainer->xla.program == NULL;
    if (format->target_elements != 1 || format->classes == 0)
        return error_set(
            error, ERROR_INVALID,
            "the model does not classify examples; write --predict all instead of a number, or add --outputs%s",
            of_text ? ", or let it continue a text (cox generate-text, --generate)" : "");
    if (graph_output_format(trainer->graph).meaning == OUTPUT_VALUES)
        return error_set(
            error, ERROR_INVALID,
            "the model's program.json does not say that its outputs are scores of classes; write --predict all "
            "instead of a number, or add --outputs");
    return 0;
}

static int choose(const struct trainer *trainer, const char *which, int64_t *ret_number, struct error *error)
{
    int64_t count = dataset_count(trainer->validation);
    char *end;
    errno = 0;
    long long number = strtoll(which, &end, 10);
    if (*which == '\0' || *end != '\0' || errno != 0 || number < 0 || number >= count)
        return error_set(error, ERROR_INVALID, "\"%.32s\" is neither \"all\" nor a number from 0 to %lld", which,
                         (long long)count - 1);
    *ret_number = number;
    return 0;
}

/* `which` NULL: all of them. */
static int predict(struct trainer *trainer, const char *which, bool outputs, enum exit_code *ret_code,
                   struct error *error)
{
    int64_t number = 0, count = 1;
    *ret_code = EXIT_CODE_BAD_DATA;
    if (open_examples(trainer, error) < 0)
        return -1;
    if (!which)
        count = dataset_count(trainer->validation);
    *ret_code = EXIT_CODE_BAD_JOB;
    bool of_values = gives_values(trainer);
    if (which &&
        ((!outputs && !of_values && check_scores(trainer, error) < 0) || choose(trainer, which, &number, error) < 0))
        return -1;
    bool lists = !which && !outputs && trainer->arguments->inference.data;
    if (lists && check_listed(trainer, error) < 0)
        return -1;
    if ((which || outputs || lists) && graph_outputs(trainer->graph) == NULL)
        return error_set(error, ERROR_UNSUPPORTED, "outputs are stored as float32 only; leave out training.precision");
    *ret_code = EXIT_CODE_BAD_DATA;
    if (trainer->arguments->inference.json)
        return print_json(trainer, error);
    if (outputs)
        return print_outputs(trainer, number, count, error);
    if (lists)
        return predict_each(trainer, error);
    if (!which)
        return predict_all(trainer, error);
    return of_values ? predict_values(trainer, number, error) : predict_one(trainer, number, error);
}

int predict_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                enum exit_code *ret_code, struct error *error)
{
    struct trained_model model;
    const char *which = strcmp(arguments->inference.example, "all") == 0 ? NULL : arguments->inference.example;
    bool outputs = arguments->inference.outputs, json = arguments->inference.json;
    enum trained_passes of_all =
        outputs || json || arguments->inference.data ? TRAINED_BATCH_OUTPUTS : TRAINED_IN_BATCHES;
    *ret_code = EXIT_CODE_BAD_JOB;
    if (outputs && isatty(STDOUT_FILENO) == 1)
        return error_set(error, ERROR_INVALID,
                         "--outputs: refusing to write an NPY file to a terminal; redirect the output (>outputs.npy)");
    int result =
        trained_model_open(&model, arguments, identity, job, which ? TRAINED_EXAMPLE_ALONE : of_all, ret_code, error);
    if (result == 0) {
        result = predict(&model.trainer, which, outputs, ret_code, error);
        if (result < 0)
            *ret_code = error_exit_code(error, *ret_code);
    }
    trained_model_release(&model);
    return result;
}
