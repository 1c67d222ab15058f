/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/string_format.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/philox.h"
#include "common/scope.h"
#include "worker/model/graph_internal.h"
#include "worker/model/lowering.h"
#include "worker/xla/client.h"

/* The second has `inputs` in place of `input`. */
#define FORMAT "coxswain-program/1"
#define FORMAT_INPUTS "coxswain-program/2"
#define DOCUMENT "program.json"
#define OUTPUT "entries.predict.output"
/* Values of one tensor, and of one example. */
#define ELEMENTS_MAX ((int64_t)1 << 31)
#define MIB 1048576

_Static_assert(EXAMPLE_RANK_MAX == XLA_RANK_MAX - 1, "a call's argument has one dimension more than an example");

/* In the order of enum program_use. */
enum entry { ENTRY_TRAIN, ENTRY_EVALUATE, ENTRY_PREDICT, ENTRY_INITIALISE, ENTRY_COUNT };
static const char *const entry_names[ENTRY_COUNT] = {"lossAndGradients", "evaluate", "predict", "initialise"};

struct program {
    struct json *document; /* NULL: the program is of layers */
    struct parameter_tensor *tensors;
    unsigned state_count;
    struct parameter_layout layout;
    struct example_format format;
    struct xla_value inputs[EXAMPLE_INPUTS_MAX], target, output; /* of a whole call */
    struct output_format output_format;
    bool predicts; /* there is an output */
    bool initialises;
    int64_t batch;
    unsigned uses;
    const char *platform; /* that the artifacts were read for; NULL: the program is of layers and has none */
    struct buffer artifacts[ENTRY_COUNT];
    struct xla_client *client;
    struct xla_executable *executables[ENTRY_COUNT];
};

/* ---------------------------------------------------------------- the document */

static int wrong(struct error *error, const char *member, const char *wanted)
{
    return error_set(error, ERROR_INVALID, DOCUMENT ": %s: must be %s", member, wanted);
}

/* Reads a shape of at most `most` dimensions; *ret_elements is their product. */
static int parse_shape(const struct json *list, const char *member, unsigned most, int64_t *ret_shape,
                       unsigned *ret_rank, int64_t *ret_elements, struct error *error)
{
    unsigned rank = 0;
    int64_t elements = 1;
    if (json_type(list) != JSON_ARRAY || json_count(list) > most)
        return error_set(error, ERROR_INVALID, DOCUMENT ": %s: must be a list of at most %u sizes", member, most);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        int64_t size = json_integer(item, 0);
        if (size < 1 || size > ELEMENTS_MAX / elements)
            return wrong(error, member, "positive sizes whose product is at most 2^31");
        ret_shape[rank++] = size;
        elements *= size;
    }
    *ret_rank = rank;
    *ret_elements = elements;
    return 0;
}

static int parse_tensor(struct program *program, const struct json *item, const char *list, struct error *error)
{
    char member[64];
    struct parameter_layout *layout = &program->layout;
    unsigned number = layout->tensor_count;
    struct parameter_tensor *tensor = &program->tensors[number];
    const char *name = json_string_at(item, "name", "");
    snprintf(member, sizeof member, "%s[%u].shape", list, number - (*list == 'p' ? program->state_count : 0));
    *tensor = (struct parameter_tensor){.offset = layout->elements, .place = layout->elements, .number = number};
    if (*name == '\0' || strlen(name) >= sizeof tensor->name)
        return error_set(error, ERROR_INVALID, DOCUMENT ": %s: each needs a name of at most %zu bytes", list,
                         sizeof tensor->name - 1);
    if (parameter_layout_find(layout, name) != NULL)
        return error_set(error, ERROR_INVALID, DOCUMENT ": %s: two tensors are called %s", list, name);
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    if (parse_shape(json_member(item, "shape"), member, PARAMETER_RANK_MAX, tensor->shape, &tensor->rank,
                    &tensor->elements, error) < 0)
        return -1;
    tensor->whole_rows = tensor->shape[0];
    layout->tensor_count++;
    layout->elements += tensor->elements;
    return 0;
}

static int parse_tensors(struct program *program, struct error *error)
{
    const struct json *state = json_member(program->document, "state");
    const struct json *parameters = json_member(program->document, "parameters");
    size_t count = json_count(state) + json_count(parameters);
    if (json_type(parameters) != JSON_ARRAY || json_count(parameters) == 0)
        return wrong(error, "parameters", "a list of at least one tensor");
    if (count > PROGRAM_TENSORS_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         DOCUMENT ": state and parameters have %zu tensors; at most %d are supported", count,
                         PROGRAM_TENSORS_MAX);
    program->tensors = memory_allocate(count, sizeof *program->tensors);
    program->layout.tensors = program->tensors;
    for (const struct json *item = json_first(state); item != NULL; item = json_next(item))
        if (parse_tensor(program, item, "state", error) < 0)
            return -1;
    program->state_count = program->layout.tensor_count;
    program->layout.statistics = program->layout.elements;
    for (const struct json *item = json_first(parameters); item != NULL; item = json_next(item))
        if (parse_tensor(program, item, "parameters", error) < 0)
            return -1;
    return 0;
}

/* Reads the type and shape of an input, `target` or an output, called `name`, and puts the call's batch in front of the
 * shape. */
static int parse_field(const struct program *program, const struct json *field, const char *name,
                       struct xla_value *ret_value, int64_t *ret_elements, struct error *error)
{
    char member[48];
    unsigned rank;
    const char *type = json_string_at(field, "type", "");
    snprintf(member, sizeof member, "%s.shape", name);
    if (strcmp(type, "float32") != 0 && strcmp(type, "int32") != 0)
        return error_set(error, ERROR_INVALID, DOCUMENT ": %s.type: must be float32 or int32", name);
    if (parse_shape(json_member(field, "shape"), member, XLA_RANK_MAX - 1, ret_value->shape + 1, &rank, ret_elements,
                    error) < 0)
        return -1;
    if (*ret_elements > ELEMENTS_MAX / program->batch)
        return wrong(error, member, "small enough that a whole call has at most 2^31 values");
    ret_value->type = *type == 'f' ? XLA_FLOAT32 : XLA_INT32;
    ret_value->shape[0] = program->batch;
    ret_value->rank = rank + 1;
    return 0;
}

/* A call's batch is in front of the shape of `value`. */
static struct example_shape shape_of_example(const struct xla_value *value)
{
    struct example_shape shape = {.rank = value->rank - 1};
    memcpy(shape.dims, value->shape + 1, sizeof shape.dims);
    return shape;
}

static enum element_type element_of(const struct xla_value *value)
{
    return value->type == XLA_FLOAT32 ? ELEMENT_FLOAT32 : ELEMENT_INT32;
}

static int parse_vocabulary(const struct json *item, const char *member, struct example_input *input,
                            struct error *error)
{
    const struct json *vocabulary = json_member(item, "vocabulary");
    char name[48];
    if (vocabulary == NULL)
        return 0;
    snprintf(name, sizeof name, "%s.vocabulary", member);
    input->vocabulary = json_integer(vocabulary, 0);
    if (input->type != ELEMENT_INT32 || input->vocabulary < 1 || input->vocabulary > INT32_MAX)
        return wrong(error, name, "the number of values that an int32 input may have, or left out");
    return 0;
}

/* `member` is what messages call it. */
static int parse_input(struct program *program, const struct json *item, const char *member, const char *name,
                       struct error *error)
{
    struct example_format *format = &program->format;
    struct example_input *input = &format->inputs[format->input_count];
    struct xla_value *value = &program->inputs[format->input_count];
    if (strlen(name) > DATA_INPUT_NAME_MAX || !string_format_matches(STRING_FORMAT_WORD, name))
        return error_set(error, ERROR_INVALID,
                         DOCUMENT ": %s.name: must be at most %d letters, digits, '-', '_' and "
                                  "'.', such as input_ids",
                         member, DATA_INPUT_NAME_MAX);
    for (unsigned i = 0; i < format->input_count; i++)
        if (strcmp(format->inputs[i].name, name) == 0)
            return error_set(error, ERROR_INVALID, DOCUMENT ": inputs: two are called %s", name);
    if (parse_field(program, item, member, value, &input->elements, error) < 0)
        return -1;
    snprintf(input->name, sizeof input->name, "%s", name);
    input->type = element_of(value);
    input->shape = shape_of_example(value);
    format->input_elements += input->elements;
    if (format->input_elements > ELEMENTS_MAX / program->batch)
        return wrong(error, "inputs", "small enough that a whole call has at most 2^31 values");
    format->input_count++;
    return parse_vocabulary(item, member, input, error);
}

static int parse_inputs(struct program *program, struct error *error)
{
    const struct json *list = json_member(program->document, "inputs");
    char member[32];
    unsigned number = 0;
    if (strcmp(json_string_at(program->document, "format", ""), FORMAT) == 0)
        return parse_input(program, json_member(program->document, "input"), "input", "input", error);
    if (json_type(list) != JSON_ARRAY || json_count(list) < 1 || json_count(list) > EXAMPLE_INPUTS_MAX)
        return error_set(error, ERROR_INVALID, DOCUMENT ": inputs: must be a list of 1 to %d inputs",
                         EXAMPLE_INPUTS_MAX);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        snprintf(member, sizeof member, "inputs[%u]", number++);
        if (parse_input(program, item, member, json_string_at(item, "name", ""), error) < 0)
            return -1;
    }
    return 0;
}

static int parse_ignored(struct program *program, struct error *error)
{
    struct example_format *format = &program->format;
    const struct json *ignored = json_at(program->document, "target.ignored");
    int64_t value = json_integer(ignored, INT64_MAX);
    if (ignored == NULL)
        return 0;
    if (format->target_type != ELEMENT_INT32 || value < INT32_MIN || value > INT32_MAX)
        return wrong(error, "target.ignored", "the value of int32 targets that do not count, or left out");
    format->ignores = true;
    format->ignored = (int32_t)value;
    return 0;
}

static int parse_fields(struct program *program, struct error *error)
{
    struct example_format *format = &program->format;
    if (parse_inputs(program, error) < 0 || parse_field(program, json_member(program->document, "target"), "target",
                                                        &program->target, &format->target_elements, error) < 0)
        return -1;
    format->input_type = format->inputs[0].type;
    format->target_type = element_of(&program->target);
    if (format->target_type == ELEMENT_INT32) {
        format->classes = json_integer_at(program->document, "target.classes", 0);
        if (format->classes < 1 || format->classes > INT32_MAX)
            return wrong(error, "target.classes", "the number of classes, or of the vocabulary");
    }
    format->target_shape = shape_of_example(&program->target);
    if (parse_ignored(program, error) < 0)
        return -1;
    if (format->input_count > 1)
        return 0;
    format->input_shape = format->inputs[0].shape;
    if (format->input_type == ELEMENT_FLOAT32 && format->input_shape.rank == 3)
        memcpy(format->image, format->input_shape.dims, sizeof format->image);
    return 0;
}

/* Scores are of the classes of an example's one target. */
static int parse_scores(struct program *program, struct error *error)
{
    struct output_format *output = &program->output_format;
    const struct example_format *format = &program->format;
    const struct json *scores = json_at(program->document, OUTPUT ".scores");
    const char *word = json_string(scores, "");
    if (scores == NULL)
        return 0;
    if (strcmp(word, "logits") != 0 && strcmp(word, "probabilities") != 0)
        return wrong(error, OUTPUT ".scores", "\"logits\" or \"probabilities\"; leave it out for other values");
    if (format->classes == 0 || format->target_elements != 1 || output->type != ELEMENT_FLOAT32 || output->rank != 1 ||
        output->elements != format->classes)
        return wrong(error, OUTPUT ".scores", "left out, unless there is a float32 for each class of an only target");
    output->meaning = *word == 'l' ? OUTPUT_LOGITS : OUTPUT_PROBABILITIES;
    return 0;
}

/* A program may have no `predict`. */
static int parse_output(struct program *program, struct error *error)
{
    struct output_format *output = &program->output_format;
    const struct json *field = json_at(program->document, OUTPUT);
    if (field == NULL)
        return 0;
    if (parse_field(program, field, OUTPUT, &program->output, &output->elements, error) < 0)
        return -1;
    output->type = element_of(&program->output);
    output->rank = program->output.rank - 1;
    memcpy(output->shape, program->output.shape + 1, sizeof output->shape);
    program->predicts = true;
    return parse_scores(program, error);
}

static int parse_document(struct program *program, struct error *error)
{
    const char *format = json_string_at(program->document, "format", "");
    if (strcmp(format, FORMAT) != 0 && strcmp(format, FORMAT_INPUTS) != 0)
        return wrong(error, "format",
                     "\"" FORMAT "\" or \"" FORMAT_INPUTS "\"; was the program exported for another release?");
    program->batch = json_integer_at(program->document, "batch", 0);
    if (program->batch < 1 || program->batch > PROGRAM_BATCH_MAX)
        return wrong(error, "batch", "from 1 to 65536 examples");
    if (parse_tensors(program, error) < 0 || parse_fields(program, error) < 0 || parse_output(program, error) < 0)
        return -1;
    program->initialises = json_at(program->document, "entries.initialise") != NULL;
    if (2 * program->layout.tensor_count + program->format.input_count + 8 > XLA_VALUES_MAX)
        return error_set(error, ERROR_TOO_LARGE, DOCUMENT ": too many tensors");
    return 0;
}

int program_parse(const char *text, size_t length, struct program **ret_program, struct error *error)
{
    struct program *program = memory_allocate(1, sizeof *program);
    for (unsigned i = 0; i < ENTRY_COUNT; i++)
        buffer_init(&program->artifacts[i], PROGRAM_ARTIFACT_MAX);
    int result = json_parse(text, length, PROGRAM_DOCUMENT_MAX, &program->document, error);
    if (result < 0)
        (void)error_wrap(error, DOCUMENT);
    if (result < 0 || parse_document(program, error) < 0) {
        program_free(program);
        return -1;
    }
    *ret_program = program;
    return 0;
}

static bool is_used(const struct program *program, enum entry entry)
{
    return (program->uses >> entry & 1) != 0;
}

/* ---------------------------------------------------------------- layers */

static enum xla_type xla_type_of(enum element_type type)
{
    return type == ELEMENT_INT32 ? XLA_INT32 : XLA_FLOAT32;
}

static void copy_layout(struct program *program, const struct parameter_layout *layout)
{
    program->layout = *layout;
    program->tensors = memory_allocate(layout->tensor_count, sizeof *program->tensors);
    memcpy(program->tensors, layout->tensors, layout->tensor_count * sizeof *program->tensors);
    program->layout.tensors = program->tensors;
    for (unsigned t = 0; t < layout->tensor_count; t++)
        program->state_count += layout->tensors[t].offset < layout->statistics;
}

static void describe_call(struct program *program, const struct graph *graph)
{
    struct example_format *format = &program->format;
    *format = *graph_example_format(graph);
    format->inputs[0] = (struct example_input){.type = format->input_type, .elements = format->input_elements};
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].layer.kind->type == LAYER_EMBEDDING)
            format->inputs[0].vocabulary = graph->nodes[i].layer.spec.size;
    program->inputs[0] = (struct xla_value){
        .type = xla_type_of(format->input_type), .rank = 1 + format->input_shape.rank, .shape = {program->batch}};
    memcpy(program->inputs[0].shape + 1, format->input_shape.dims, format->input_shape.rank * sizeof(int64_t));
    program->target = (struct xla_value){
        .type = xla_type_of(format->target_type), .rank = 2, .shape = {program->batch, format->target_elements}};
}

static int write_functions(struct program *program, const struct graph *graph, enum precision precision,
                           struct error *error)
{
    for (enum entry entry = ENTRY_TRAIN; entry <= ENTRY_EVALUATE; entry++)
        if (is_used(program, entry) && lowering_write(graph, precision, program->batch, entry == ENTRY_EVALUATE,
                                                      &program->artifacts[entry], error) < 0)
            return -1;
    return 0;
}

int program_from_layers(const struct graph *graph, enum precision precision, int64_t batch, unsigned uses,
                        struct program **ret_program, struct error *error)
{
    struct program *program = memory_allocate(1, sizeof *program);
    program->uses = uses;
    program->batch = batch;
    for (unsigned i = 0; i < ENTRY_COUNT; i++)
        buffer_init(&program->artifacts[i], PROGRAM_ARTIFACT_MAX);
    copy_layout(program, graph_layout(graph));
    describe_call(program, graph);
    if (write_functions(program, graph, precision, error) < 0) {
        program_free(program);
        return -1;
    }
    *ret_program = program;
    return 0;
}

bool program_is_of_layers(const struct program *program)
{
    return program->document == NULL;
}

/* ---------------------------------------------------------------- files */

/* Joins folder and name. A name in the document must not lead into another folder. */
static int path_in(const char *folder, const char *name, const char *member, struct buffer *ret_path,
                   struct error *error)
{
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL)
        return wrong(error, member, "the name of a file in the program's folder");
    buffer_clear(ret_path);
    return buffer_format(ret_path, "%s/%s", folder, name) < 0
               ? error_set(
                     error, ERROR_TOO_LARGE,
                     "the path of the program's file %s has more than %d bytes; move the program to a folder with "
                     "a shorter path",
                     name, PATH_MAX)
               : 0;
}

/* The file of a function for that platform. Functions that are the same for several platforms have one. */
static const char *artifact_name(const struct program *program, enum entry entry, const char *platform,
                                 char *ret_member, size_t size)
{
    snprintf(ret_member, size, "entries.%s.platforms.%s", entry_names[entry], platform);
    const char *name = json_string_at(program->document, ret_member, NULL);
    if (name != NULL)
        return name;
    snprintf(ret_member, size, "entries.%s.file", entry_names[entry]);
    return json_string_at(program->document, ret_member, "");
}

static int read_artifacts(struct program *program, const char *folder, struct error *error)
{
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX);
    char member[80];
    if (program->uses == PROGRAM_USES_ALL)
        program->uses =
            PROGRAM_TRAINS | PROGRAM_EVALUATES | PROGRAM_INITIALISES | (program->predicts ? PROGRAM_PREDICTS : 0);
    if (!program->initialises || program_weights(program) != NULL)
        program->uses &= ~(unsigned)PROGRAM_INITIALISES;
    if (is_used(program, ENTRY_PREDICT) && !program->predicts)
        return wrong(error, OUTPUT, "the form of what predict gives; export the program with such a function");
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        if (!is_used(program, i))
            continue;
        const char *name = artifact_name(program, i, program->platform, member, sizeof member);
        if (path_in(folder, name, member, &path, error) < 0 ||
            buffer_read_file(&program->artifacts[i], buffer_text(&path), error) < 0)
            return -1;
    }
    const char *weights = program_weights(program);
    return weights != NULL ? path_in(folder, weights, "weights", &path, error) : 0;
}

int program_open(const char *folder, unsigned uses, const char *platform, struct program **ret_program,
                 struct error *error)
{
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX), text = BUFFER_INIT(PROGRAM_DOCUMENT_MAX);
    struct program *program;
    if (path_in(folder, DOCUMENT, "", &path, error) < 0 || buffer_read_file(&text, buffer_text(&path), error) < 0 ||
        program_parse(buffer_text(&text), text.length, &program, error) < 0)
        return -1;
    program->uses = uses;
    program->platform = platform;
    if (read_artifacts(program, folder, error) < 0) {
        program_free(program);
        return -1;
    }
    *ret_program = program;
    return 0;
}

static void free_executables(struct program *program)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        xla_executable_free(program->executables[i]);
        program->executables[i] = NULL;
    }
}

void program_free(struct program *program)
{
    if (program == NULL)
        return;
    free_executables(program);
    program_drop_artifacts(program);
    xla_client_close(program->client);
    json_free(program->document);
    free(program->tensors);
    free(program);
}

const struct parameter_layout *program_layout(const struct program *program)
{
    return &program->layout;
}

const struct example_format *program_example_format(const struct program *program)
{
    return &program->format;
}

const struct output_format *program_output_format(const struct program *program)
{
    return program->predicts ? &program->output_format : NULL;
}

int64_t program_batch(const struct program *program)
{
    return program->batch;
}

unsigned program_uses(const struct program *program)
{
    return program->uses;
}

bool program_has_start(const struct program *program)
{
    return program->initialises || program_weights(program) != NULL;
}

const char *program_weights(const struct program *program)
{
    return json_string_at(program->document, "weights", NULL);
}

/* ---------------------------------------------------------------- running */

/* Calls each function once, with zeros. Fails if the document does not describe its arguments and results correctly. */
static int try_out(struct program *program, struct error *error)
{
    size_t elements = (size_t)program->layout.elements;
    SCOPED_FREE float *parameters = memory_allocate(elements, sizeof *parameters);
    SCOPED_FREE float *gradients = memory_allocate(elements, sizeof *gradients);
    SCOPED_FREE float *outputs = memory_allocate((size_t)xla_value_elements(&program->output), sizeof *outputs);
    SCOPED_FREE void *inputs = memory_allocate((size_t)program->batch, example_input_bytes(&program->format));
    SCOPED_FREE void *targets = memory_allocate((size_t)program->batch, example_target_bytes(&program->format));
    float loss, hits, counted;
    struct program_call call = {.parameters = parameters,
                                .inputs = inputs,
                                .targets = targets,
                                .examples = program->batch,
                                .gradients = gradients,
                                .loss = &loss,
                                .hits = &hits,
                                .counted = &counted};
    if (is_used(program, ENTRY_TRAIN) && program_run(program, &call, error) < 0)
        return -1;
    call.gradients = NULL;
    if (is_used(program, ENTRY_EVALUATE) && program_run(program, &call, error) < 0)
        return -1;
    call.outputs = outputs;
    if (is_used(program, ENTRY_PREDICT) && program_run(program, &call, error) < 0)
        return -1;
    return is_used(program, ENTRY_INITIALISE) ? program_initialise(program, 0, parameters, error) : 0;
}

void program_set_environment(int threads)
{
    xla_set_environment(threads);
    xla_keep_freed_memory();
}

/* The plugin tells its platform only now, when the artifacts have been read and may even have been compiled. */
static int check_platform(const struct program *program, struct error *error)
{
    const char *platform = xla_client_platform(program->client);
    char member[80];
    for (unsigned i = 0; i < ENTRY_COUNT && program->platform != NULL; i++) {
        const char *read = artifact_name(program, i, program->platform, member, sizeof member);
        if (is_used(program, i) && strcmp(read, artifact_name(program, i, platform, member, sizeof member)) != 0)
            return error_set(error, ERROR_INVALID,
                             "the PJRT plugin is for %s, and devices.type for %s, for which " DOCUMENT
                             " names other files; correct devices.type, or take a plugin for %s",
                             platform, program->platform, program->platform);
    }
    return 0;
}

int program_open_engine(struct program *program, const struct xla_options *options, struct error *error)
{
    if (program->client == NULL && xla_client_open(options, &program->client, error) < 0)
        return -1;
    return check_platform(program, error);
}

/* What the worker has written itself is nothing that the user could correct: the plugin does not suit. */
static int blame(const struct program *program, enum entry entry, struct error *error)
{
    if (!program_is_of_layers(program))
        return error_wrap(error, "program %s", entry_names[entry]);
    if (error->kind != ERROR_INVALID)
        return error_wrap(error, "the model's %s", entry_names[entry]);
    error->kind = ERROR_UNSUPPORTED;
    return error_wrap(error, "this PJRT plugin cannot compile the model's %s; take another version of it",
                      entry_names[entry]);
}

/* Not all plugins say this. */
static int64_t result_bytes(const struct program *program, enum entry entry)
{
    int64_t said = xla_executable_memory(program->executables[entry]).results;
    const int64_t elements[ENTRY_COUNT] = {
        [ENTRY_TRAIN] = program->layout.elements,
        [ENTRY_PREDICT] = xla_value_elements(&program->output),
        [ENTRY_INITIALISE] = program->layout.elements,
    };
    return said > 0 ? said : elements[entry] * (int64_t)sizeof(float);
}

/* The bytes of the examples of one call: inputs and targets. */
static int64_t example_bytes(const struct program *program)
{
    return program->batch * (int64_t)(example_input_bytes(&program->format) + example_target_bytes(&program->format));
}

/* A device with memory of its own must hold the parameters, the examples of a call and of the one after it, and what the largest call needs
 * beside them. Otherwise the plugin would say in the middle of a run that some allocation has failed. */
static int check_memory(const struct program *program, struct error *error)
{
    int64_t left = xla_client_free_memory(program->client), most = 0;
    int64_t parameters = program->layout.elements * (int64_t)sizeof(float), examples = 2 * example_bytes(program);
    enum entry largest = ENTRY_TRAIN;
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        if (program->executables[i] == NULL)
            continue;
        int64_t bytes = xla_executable_memory(program->executables[i]).workspace + result_bytes(program, i);
        largest = bytes > most ? i : largest;
        most = bytes > most ? bytes : most;
    }
    if (left < 0 || parameters + examples + most <= left)
        return 0;
    return error_set(
        error, ERROR_NO_SPACE,
        "a device has %.1f MiB of free memory, and %s needs %.1f: %.1f for parameters and state, %.1f for the "
        "examples of two calls, %.1f for results and temporary values; %s",
        (double)left / MIB, entry_names[largest], (double)(parameters + examples + most) / MIB,
        (double)parameters / MIB, (double)examples / MIB, (double)most / MIB,
        program_is_of_layers(program) ? "lower training.batchSize, or raise training.logicalShards"
                                      : "export the program with a smaller batch");
}

int program_compile(struct program *program, struct error *error)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        const struct buffer *artifact = &program->artifacts[i];
        if (!is_used(program, i))
            continue;
        if (xla_executable_compile(program->client, artifact->data, artifact->length, &program->executables[i], error) <
            0)
            return blame(program, i, error);
    }
    return check_memory(program, error) < 0 ? -1 : try_out(program, error);
}

/* Each function: its length, then its code. */
int program_serialise(const struct program *program, struct buffer *code, struct error *error)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        SCOPED_BUFFER one;
        if (!is_used(program, i))
            continue;
        buffer_init(&one, PROGRAM_CODE_MAX);
        if (xla_executable_serialise(program->executables[i], &one, error) < 0)
            return error_wrap(error, "program %s", entry_names[i]);
        uint64_t length = one.length;
        if (buffer_append(code, &length, sizeof length, error) < 0 ||
            buffer_append(code, one.data, one.length, error) < 0)
            return -1;
    }
    return 0;
}

static int load_all(struct program *program, const void *code, size_t length, struct error *error)
{
    const char *bytes = code;
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        uint64_t own;
        if (!is_used(program, i))
            continue;
        if (length < sizeof own)
            return error_set(error, ERROR_CORRUPT, "internal error: the compiled program is incomplete");
        memcpy(&own, bytes, sizeof own);
        bytes += sizeof own;
        length -= sizeof own;
        if (own > length)
            return error_set(error, ERROR_CORRUPT, "internal error: the compiled program is incomplete");
        if (xla_executable_load(program->client, bytes, own, &program->executables[i], error) < 0)
            return error_wrap(error, "program %s", entry_names[i]);
        bytes += own;
        length -= own;
    }
    return 0;
}

int program_load(struct program *program, const void *code, size_t length, struct error *error)
{
    if (load_all(program, code, length, error) == 0 && check_memory(program, error) == 0)
        return 0;
    free_executables(program);
    return -1;
}

void program_drop_artifacts(struct program *program)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++)
        buffer_release(&program->artifacts[i]);
}

void program_digest(const struct program *program, unsigned char ret_digest[HMAC_BYTES])
{
    unsigned char each[ENTRY_COUNT][HMAC_BYTES];
    for (unsigned i = 0; i < ENTRY_COUNT; i++)
        hmac_sha256(FORMAT, sizeof FORMAT, program->artifacts[i].data, program->artifacts[i].length, each[i]);
    hmac_sha256(FORMAT, sizeof FORMAT, each, sizeof each, ret_digest);
}

const char *program_engine(const struct program *program)
{
    return program->client != NULL ? xla_client_description(program->client) : "";
}

/* A call reads parameters and state where they are, if their place suits the plugin. The examples of a short call are
 * copied to fill the batch, and several inputs are copied to be arrays of their own; that may be copied again. */
static int64_t copied_bytes(const struct program *program)
{
    int64_t bytes = 2 * example_bytes(program);
    for (unsigned i = 0; i < program->layout.tensor_count; i++) {
        const struct parameter_tensor *tensor = &program->tensors[i];
        if (tensor->offset * (int64_t)sizeof(float) % XLA_ALIGNMENT != 0)
            bytes += tensor->elements * (int64_t)sizeof(float);
    }
    return bytes;
}

int64_t program_call_bytes(const struct program *program)
{
    int64_t most = 0;
    bool shares_memory = program->client == NULL || xla_client_shares_memory(program->client);
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        if (program->executables[i] == NULL || !shares_memory)
            continue;
        int64_t bytes = xla_executable_memory(program->executables[i]).workspace + result_bytes(program, i);
        most = bytes > most ? bytes : most;
    }
    return most + copied_bytes(program);
}

static int compile_for(const struct program *program, const struct xla_topology *topology, struct buffer *text,
                       struct error *error)
{
    (void)buffer_format(text, "%-18s %14s %14s %14s %14s\n", "MiB", "arguments", "results", "temporary", "code");
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        const struct buffer *artifact = &program->artifacts[i];
        struct xla_memory memory;
        if (!is_used(program, i))
            continue;
        if (xla_topology_compile(topology, artifact->data, artifact->length, &memory, error) < 0)
            return error_wrap(error, "program %s", entry_names[i]);
        (void)buffer_format(text, "%-18s %14.1f %14.1f %14.1f %14.1f\n", entry_names[i], (double)memory.arguments / MIB,
                            (double)memory.results / MIB, (double)(memory.workspace - memory.code) / MIB,
                            (double)memory.code / MIB);
    }
    return 0;
}

int program_compile_for(const struct program *program, const char *plugin, const char *topology, struct buffer *text,
                        struct error *error)
{
    struct xla_topology *slice;
    if (xla_topology_open(plugin, topology, &slice, error) < 0)
        return -1;
    unsigned devices = xla_topology_device_count(slice);
    (void)buffer_format(text, "compiled for %s, %u device%s, each:\n", topology, devices, devices == 1 ? "" : "s");
    int result = compile_for(program, slice, text, error);
    xla_topology_free(slice);
    return result;
}

static struct xla_value value_of_tensor(const struct parameter_tensor *tensor, const float *flat)
{
    struct xla_value value = {.type = XLA_FLOAT32, .rank = tensor->rank, .data = (float *)flat + tensor->offset};
    memcpy(value.shape, tensor->shape, sizeof tensor->shape);
    return value;
}

/* Appends trained parameters, then state: the document's order. `flat` has state first. */
static unsigned append_tensors(const struct program *program, const float *flat, struct xla_value *values)
{
    unsigned count = 0, total = program->layout.tensor_count;
    for (unsigned i = 0; i < total; i++)
        values[count++] = value_of_tensor(&program->tensors[(i + program->state_count) % total], flat);
    return count;
}

/* Copies `bytes` of each example, `stride` apart. Repeats those of a short call, from the first one, until the batch is
 * full: repeated examples, unlike zeros, keep the statistics of a batch close to those of the data. */
static void fill_up(char *filled, const char *from, size_t bytes, size_t stride, int64_t examples, int64_t batch)
{
    for (int64_t i = 0; i < batch; i++)
        memcpy(filled + (size_t)i * bytes, from + (size_t)(i % examples) * stride, bytes);
}

static enum entry entry_of(const struct program_call *call)
{
    if (call->outputs != NULL)
        return ENTRY_PREDICT;
    return call->gradients != NULL ? ENTRY_TRAIN : ENTRY_EVALUATE;
}

/* The memory of one call. A short one has copies of what it reads, and of its outputs; so have several inputs. */
struct frame {
    struct xla_kept *parameters; /* NULL: those of the caller are used */
    struct xla_value *arguments, *results;
    unsigned argument_count, result_count;
    float *weight;
    void *inputs, *targets, *outputs;
    uint32_t seed[LOWERING_SEED_WORDS];
};

static void frame_release(struct frame *frame)
{
    xla_kept_free(frame->parameters);
    free(frame->arguments);
    free(frame->results);
    free(frame->weight);
    free(frame->inputs);
    free(frame->targets);
    free(frame->outputs);
}

static struct xla_value with_data(struct xla_value value, const void *data)
{
    value.data = (void *)data;
    return value;
}

/* The input of a model of layers has no name. */
static unsigned input_count(const struct program *program)
{
    return program->format.input_count > 0 ? program->format.input_count : 1;
}

/* Returns how many there are. */
static unsigned append_inputs(const struct program *program, const struct program_call *call, struct frame *frame,
                              struct xla_value *arguments)
{
    const struct example_format *format = &program->format;
    size_t stride = example_input_bytes(format), before = 0; /* in an example */
    if (input_count(program) == 1 && call->examples == program->batch) {
        arguments[0] = with_data(program->inputs[0], call->inputs);
        return 1;
    }
    frame->inputs = memory_allocate((size_t)program->batch, stride);
    for (unsigned i = 0; i < input_count(program); i++) {
        size_t bytes = (size_t)format->inputs[i].elements * sizeof(float);
        char *filled = (char *)frame->inputs + (size_t)program->batch * before;
        fill_up(filled, (const char *)call->inputs + before, bytes, stride, call->examples, program->batch);
        arguments[i] = with_data(program->inputs[i], filled);
        before += bytes;
    }
    return input_count(program);
}

/* Target and weight. Returns how many there are. */
static unsigned append_targets(const struct program *program, const struct program_call *call, struct frame *frame,
                               struct xla_value *arguments)
{
    size_t bytes = example_target_bytes(&program->format);
    if (call->examples < program->batch) {
        frame->targets = memory_allocate((size_t)program->batch, bytes);
        fill_up(frame->targets, call->targets, bytes, bytes, call->examples, program->batch);
    }
    frame->weight = memory_allocate((size_t)program->batch, sizeof *frame->weight);
    for (int64_t i = 0; i < call->examples; i++)
        frame->weight[i] = 1;
    arguments[0] = with_data(program->target, frame->targets != NULL ? frame->targets : call->targets);
    arguments[1] = (struct xla_value){.type = XLA_FLOAT32, .rank = 1, .shape = {program->batch}, .data = frame->weight};
    return 2;
}

/* A program that was exported gets two words that differ for each call, one of layers what its dropouts count by. */
static struct xla_value seed_of(const struct program *program, const struct program_call *call,
                                uint32_t words[LOWERING_SEED_WORDS])
{
    uint64_t first = (uint64_t)call->first_example;
    struct philox_words random = philox(call->seed, (uint64_t)call->step, first);
    const uint32_t counters[LOWERING_SEED_WORDS] = {(uint32_t)call->seed, (uint32_t)(call->seed >> 32),
                                                    (uint32_t)call->step, (uint32_t)first, (uint32_t)(first >> 32)};
    bool of_layers = program_is_of_layers(program);
    unsigned count = of_layers ? LOWERING_SEED_WORDS : 2;
    memcpy(words, of_layers ? counters : random.word, count * sizeof *words);
    return (struct xla_value){.type = XLA_UINT32, .rank = 1, .shape = {count}, .data = words};
}

static void add_arguments(const struct program *program, const struct program_call *call, enum entry entry,
                          struct frame *frame)
{
    struct xla_value *arguments = frame->arguments = memory_allocate(input_count(program) + 3, sizeof *arguments);
    unsigned count = append_inputs(program, call, frame, arguments);
    if (entry != ENTRY_PREDICT)
        count += append_targets(program, call, frame, arguments + count);
    if (entry == ENTRY_TRAIN)
        arguments[count++] = seed_of(program, call, frame->seed);
    frame->argument_count = count;
}

static void add_results(const struct program *program, const struct program_call *call, enum entry entry,
                        struct frame *frame)
{
    struct xla_value *results = frame->results = memory_allocate(program->layout.tensor_count + 3, sizeof *results);
    unsigned count = 0;
    if (entry == ENTRY_PREDICT) {
        if (call->examples < program->batch)
            frame->outputs = memory_allocate((size_t)xla_value_elements(&program->output), sizeof(float));
        results[count++] = with_data(program->output, frame->outputs != NULL ? frame->outputs : call->outputs);
    } else {
        results[count++] = (struct xla_value){.type = XLA_FLOAT32, .data = call->loss};
        results[count++] = (struct xla_value){.type = XLA_FLOAT32, .data = call->hits};
        if (program->format.ignores)
            results[count++] = (struct xla_value){.type = XLA_FLOAT32, .data = call->counted};
    }
    if (entry == ENTRY_TRAIN)
        count += append_tensors(program, call->gradients, results + count);
    frame->result_count = count;
}

static int bring_parameters(const struct program *program, const struct program_call *call, struct xla_kept **ret_kept,
                            struct error *error)
{
    SCOPED_FREE struct xla_value *values = memory_allocate(program->layout.tensor_count, sizeof *values);
    unsigned count = append_tensors(program, call->parameters, values);
    return xla_kept_new(program->client, call->device, values, count, ret_kept, error);
}

void program_drop_kept(struct xla_kept **kept)
{
    xla_kept_free(*kept);
    *kept = NULL;
}

struct program_pending {
    struct program_call call;
    enum entry entry;
    struct frame frame;
    struct xla_run *run;
};

void program_pending_free(struct program_pending *pending)
{
    if (pending == NULL)
        return;
    xla_run_free(pending->run);
    frame_release(&pending->frame);
    free(pending);
}

static int bring_all(struct program *program, struct program_pending *pending, struct error *error)
{
    struct program_call *call = &pending->call;
    struct frame *frame = &pending->frame;
    struct xla_executable *executable = program->executables[pending->entry];
    struct xla_kept **kept = call->kept != NULL ? call->kept : &frame->parameters;
    if (executable == NULL)
        return error_set(error, ERROR_INTERNAL, "internal error: a program is run before it is compiled");
    add_arguments(program, call, pending->entry, frame);
    add_results(program, call, pending->entry, frame);
    if (*kept == NULL && bring_parameters(program, call, kept, error) < 0)
        return -1;
    return xla_run_new(executable, *kept, frame->arguments, frame->argument_count, &pending->run, error);
}

int program_begin(struct program *program, const struct program_call *call, struct program_pending **ret_pending,
                  struct error *error)
{
    struct program_pending *pending = memory_allocate(1, sizeof *pending);
    *pending = (struct program_pending){.call = *call, .entry = entry_of(call)};
    if (bring_all(program, pending, error) < 0) {
        program_pending_free(pending);
        return error_wrap(error, "program %s", entry_names[entry_of(call)]);
    }
    *ret_pending = pending;
    return 0;
}

int program_start(struct program_pending *pending, struct error *error)
{
    return xla_run_start(pending->run, error) < 0 ? error_wrap(error, "program %s", entry_names[pending->entry]) : 0;
}

int program_finish(const struct program *program, struct program_pending *pending, struct error *error)
{
    const struct program_call *call = &pending->call;
    const struct frame *frame = &pending->frame;
    if (xla_run_finish(pending->run, frame->results, frame->result_count, error) < 0)
        return error_wrap(error, "program %s", entry_names[pending->entry]);
    if (frame->outputs != NULL)
        memcpy(call->outputs, frame->outputs,
               (size_t)(call->examples * program->output_format.elements) * sizeof(float));
    return 0;
}

int program_run(struct program *program, const struct program_call *call, struct error *error)
{
    struct program_pending *pending = NULL;
    int result = program_begin(program, call, &pending, error) < 0 || program_start(pending, error) < 0 ||
                         program_finish(program, pending, error) < 0
                     ? -1
                     : 0;
    program_pending_free(pending);
    return result;
}

bool program_overlaps(const struct program *program)
{
    return !xla_client_shares_memory(program->client);
}

/* The executable's only argument is kept for it. */
static int run_initialise(struct program *program, const struct xla_kept *seed, float *ret_values, struct error *error)
{
    SCOPED_FREE struct xla_value *results = memory_allocate(program->layout.tensor_count, sizeof *results);
    unsigned count = append_tensors(program, ret_values, results);
    struct xla_run *run = NULL;
    int result = xla_run_new(program->executables[ENTRY_INITIALISE], seed, NULL, 0, &run, error) < 0 ||
                         xla_run_start(run, error) < 0 || xla_run_finish(run, results, count, error) < 0
                     ? -1
                     : 0;
    xla_run_free(run);
    return result;
}

int program_initialise(struct program *program, uint64_t seed, float *ret_values, struct error *error)
{
    uint32_t words[2] = {(uint32_t)(seed >> 32), (uint32_t)seed};
    const struct xla_value value = {.type = XLA_UINT32, .rank = 1, .shape = {2}, .data = words};
    struct xla_kept *kept = NULL;
    if (program->executables[ENTRY_INITIALISE] == NULL)
        return error_set(error, ERROR_INTERNAL, "internal error: a program is run before it is compiled");
    int result = xla_kept_new(program->client, 0, &value, 1, &kept, error);
    if (result == 0)
        result = run_initialise(program, kept, ret_values, error);
    xla_kept_free(kept);
    return result < 0 ? error_wrap(error, "program %s", entry_names[ENTRY_INITIALISE]) : 0;
}
