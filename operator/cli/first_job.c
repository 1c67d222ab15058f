/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/first_job.h"

#include <math.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/fields.h"
#include "common/memory.h"

#define SIDES_MAX 3

/* The smallest crew that shows what a strategy does. */
struct crew {
    int64_t workers, devices, servers;
};
static const struct crew crews[] = {
    [STRATEGY_ONE_DEVICE] = {1, 1, 0},
    [STRATEGY_MIRRORED] = {1, 2, 0},
    [STRATEGY_MULTI_WORKER_MIRRORED] = {2, 1, 0},
    [STRATEGY_PARAMETER_SERVER] = {2, 1, 1},
    [STRATEGY_CENTRAL_STORAGE] = {1, 2, 0},
    [STRATEGY_PEER_TO_PEER] = {2, 1, 0},
    [STRATEGY_PIPELINE] = {2, 1, 0},
};

/* Defaults for data of a format: a model that learns it in minutes, the shape that its images always or mostly have, the held-out part. */
struct material {
    enum preset model;
    int64_t sides[SIDES_MAX]; /* 0: not known */
    int64_t held_out;
};
static const struct material materials[] = {
    [DATA_FORMAT_IDX] = {PRESET_LENET, {28, 28, 1}, 1000},
    [DATA_FORMAT_BYTES] = {PRESET_GPT_BYTES, {0}, 64},
    [DATA_FORMAT_SYNTHETIC] = {PRESET_MLP, {0}, 1000},
    [DATA_FORMAT_CIFAR10] = {PRESET_RESNET20, {32, 32, 3}, 1000},
    [DATA_FORMAT_NPY] = {PRESET_MLP, {0}, 1000},
    [DATA_FORMAT_TOKENS] = {PRESET_GPT2_124M, {0}, 64},
    [DATA_FORMAT_TFRECORD] = {PRESET_MLP, {0}, 1000},
    [DATA_FORMAT_CSV] = {PRESET_MLP, {0}, 1000},
    [DATA_FORMAT_IMAGE_FOLDER] = {PRESET_LENET, {64, 64, 3}, 1000},
};

#define SYNTHETIC_EXAMPLES 10000
#define IMAGE_BATCH 128
#define TEXT_BATCH 16
#define IMAGE_EPOCHS 5
/* With TEXT_BATCH about two minutes of gpt-bytes on two processors. */
#define TEXT_STEPS 400
/* Of gpt-bytes, as the job has it (measured on two processors of an EPYC). */
#define TEXT_WINDOWS_A_MINUTE 3000
#define LEARNING_RATE 1e-3
#define CHECKPOINT_EVERY_SECONDS 60
/* A job is evaluated so often, of which the best weights are kept. Those of a text take longer. */
#define EVALUATIONS 20
#define TEXT_EVALUATIONS 10

/* Of data whose size is known: about so many steps, and one in HELD_OUT_PART examples held out. */
#define TABLE_STEPS 1500
#define IMAGE_STEPS 600
#define EPOCHS_MOST 200
#define BATCHES_LEAST 8
#define HELD_OUT_PART 5
#define HELD_OUT_MOST 1000
#define TEXT_HELD_OUT_MOST 64
#define TABLE_WIDTH 64
#define TABLE_DEPTH 2
#define LENET_LEAST 12
#define LENET_MOST 128

/* A word that is none is refused where the whole job is looked at. */
static int word_of(const char *const *words, const char *word, int otherwise)
{
    int position = word ? words_find(words, word) : otherwise;
    return position < 0 ? otherwise : position;
}

static const char *given(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static bool belongs(const struct field *field, const char *kind)
{
    for (const char *const *only = field->only_for; only && *only; only++)
        if (strcmp(*only, kind) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- sections */

static void set_crew(const struct first_job *wish, const char *strategy, struct json *spec)
{
    const struct crew *crew = &crews[word_of(strategy_type_words, strategy, STRATEGY_MULTI_WORKER_MIRRORED)];
    json_set_integer(json_set_object(spec, "workers"), "replicas", wish->workers > 0 ? wish->workers : crew->workers);
    if (crew->servers > 0)
        json_set_integer(json_set_object(spec, "parameterServers"), "replicas", crew->servers);
    if (wish->gpus > 0 || crew->devices > 1) {
        struct json *devices = json_set_object(spec, "devices");
        json_set_string(devices, "type", device_type_name(wish->gpus > 0 ? DEVICE_TYPE_GPU : DEVICE_TYPE_CPU));
        json_set_integer(devices, "count", wish->gpus > 0 ? wish->gpus : crew->devices);
    }
}

/* Sides of images that lenet's two pools leave something of, and that its dense layer can take. */
static bool fits_lenet(const struct data_shape *shape)
{
    int64_t height = shape->sides[0], width = shape->sides[1];
    bool channels = shape->rank == 2 || (shape->rank == 3 && shape->sides[2] <= 4);
    return channels && height >= LENET_LEAST && width >= LENET_LEAST && height <= LENET_MOST && width <= LENET_MOST;
}

static bool is_known(const struct data_shape *shape)
{
    return shape && shape->examples > 0 && shape->rank > 0;
}

static bool is_table(const struct data_shape *shape)
{
    return is_known(shape) && shape->rank == 1;
}

static void set_input_shape(const struct data_shape *shape, const struct material *material, struct json *model)
{
    struct json *sides = json_set_array(model, "inputShape");
    unsigned rank = is_known(shape) ? shape->rank : SIDES_MAX;
    for (unsigned i = 0; i < rank; i++)
        json_append(sides, json_new_integer(is_known(shape) ? shape->sides[i] : material->sides[i]));
    if (is_known(shape) && rank == 2)
        json_append(sides, json_new_integer(1));
}

static struct json *add_layer(struct json *layers, enum layer_type type)
{
    struct json *layer = json_append(layers, json_new_object());
    json_set_string(layer, "type", layer_type_name(type));
    return layer;
}

/* Dense layers that end in the numbers to predict: no preset does. */
static void set_layers(const struct data_shape *shape, struct json *model)
{
    struct json *layers = json_set_array(model, "layers");
    if (shape->rank > 1)
        add_layer(layers, LAYER_FLATTEN);
    for (unsigned i = 0; i < TABLE_DEPTH; i++) {
        json_set_integer(add_layer(layers, LAYER_DENSE), "units", TABLE_WIDTH);
        add_layer(layers, LAYER_RELU);
    }
    json_set_integer(add_layer(layers, LAYER_DENSE), "units", shape->numbers);
    json_set_string(model, "loss", loss_words[LOSS_MEAN_SQUARED_ERROR]);
}

static void set_model(const struct first_job *wish, const struct material *material, struct json *section)
{
    const struct data_shape *shape = wish->shape;
    struct json *model = json_set_object(section, "model");
    enum preset suits = !is_known(shape) ? material->model : fits_lenet(shape) ? PRESET_LENET : PRESET_MLP;
    const char *preset = given(wish->model, preset_name(suits));
    if (is_known(shape) && shape->classes == 0 && !wish->model) {
        set_input_shape(shape, material, model);
        set_layers(shape, model);
        return;
    }
    json_set_string(model, "preset", preset);
    if (belongs(field_find(&model_type, "inputShape"), preset) && (is_known(shape) || material->sides[0] > 0))
        set_input_shape(shape, material, model);
    if (is_known(shape) && shape->classes > 0 && belongs(field_find(&model_type, "classes"), preset))
        json_set_integer(model, "classes", shape->classes);
    if (is_table(shape) && strcmp(preset, preset_name(PRESET_MLP)) == 0) {
        json_set_integer(model, "depth", TABLE_DEPTH);
        json_set_integer(model, "width", TABLE_WIDTH);
    }
}

/* Each in the field that files of the format have. */
static void set_files(const char *format, const char *files, const char *labels, const char *part, struct json *data)
{
    const struct object_type *train = field_find(&data_type, "train")->type;
    const char *names[] = {files, labels};
    unsigned count = 0;
    for (struct field_cursor at = field_first(train); at.field && count < 2; field_next(&at))
        if (belongs(at.field, format) && strcmp(names[count], DATA_FILES_HERE) != 0)
            json_set_string(json_set_object(data, part), at.field->name, names[count++]);
}

static void set_held_out(const struct first_job *wish, const struct material *material, struct json *data)
{
    const struct data_files_found *files = wish->files;
    if (files && files->test_files)
        set_files(files->format, files->test_files, files->test_labels, "validation", data);
    else if (is_known(wish->shape))
        json_set_integer(json_set_object(data, "validation"), "sample", first_job_held_out(wish->shape));
    else if (word_of(data_format_words, wish->format, DATA_FORMAT_SYNTHETIC) == DATA_FORMAT_IMAGE_FOLDER)
        json_set_integer(json_set_object(data, "validation"), "sample", material->held_out);
    else
        json_set_integer(json_set_object(data, "validation"), "last",
                         wish->shape && wish->shape->examples > 0 ? first_job_held_out(wish->shape)
                                                                  : material->held_out);
}

static void set_data(const struct first_job *wish, const char *format, const struct material *material,
                     struct json *section)
{
    struct json *data = json_set_object(section, "data");
    SCOPED(data_files_release) struct data_files_found usual = {.format = NULL};
    json_set_string(data, "format", format);
    if (wish->files || data_files_usual(format, &usual)) {
        const struct data_files_found *files = wish->files ? wish->files : &usual;
        json_set_string(data, "storage", FIRST_JOB_DATA);
        set_files(files->format, files->files, files->labels, "train", data);
    }
    bool is_named = wish->shape && wish->shape->label_reason == LABEL_NAMED;
    if (wish->label || is_named)
        json_set_string(data, "labelColumn", wish->label ? wish->label : wish->shape->label_name);
    if (json_count(wish->skipped) > 0)
        json_set(data, "skipColumns", json_copy(wish->skipped));
    if (wish->drop_rows)
        json_set_string(data, "missing", data_missing_words[DATA_MISSING_DROP_ROW]);
    if (belongs(field_find(&data_type, "examples"), format))
        json_set_integer(data, "examples", SYNTHETIC_EXAMPLES);
    set_held_out(wish, material, data);
    if (is_known(wish->shape) && !wish->shape->pixels && belongs(field_find(&data_type, "standardize"), format))
        json_set_boolean(data, "standardize", true);
}

int64_t first_job_held_out(const struct data_shape *shape)
{
    int64_t most = shape->rank > 0 ? HELD_OUT_MOST : TEXT_HELD_OUT_MOST;
    int64_t part = shape->examples / HELD_OUT_PART < 1 ? 1 : shape->examples / HELD_OUT_PART;
    return shape->tested > 0 ? shape->tested : part < most ? part : most;
}

/* A power of two that leaves an epoch BATCHES_LEAST batches, if there are enough examples; every member of the crew has at least one. */
static int64_t batch_of(int64_t examples, int64_t most, int64_t least)
{
    int64_t batch = most;
    while (batch > least && batch * BATCHES_LEAST > examples)
        batch /= 2;
    return batch < least ? least : batch;
}

static int64_t learned_examples(const struct data_shape *shape)
{
    return shape->tested > 0 ? shape->examples : shape->examples - first_job_held_out(shape);
}

static void set_length(const struct first_job *wish, bool text, int64_t replicas, struct json *training)
{
    const struct data_shape *shape = wish->shape;
    int64_t usual = text ? TEXT_BATCH : IMAGE_BATCH, batch = usual < replicas ? replicas : usual, epochs = IMAGE_EPOCHS;
    if (shape && shape->examples > 0) {
        int64_t learned = learned_examples(shape);
        int64_t steps = is_table(shape) ? TABLE_STEPS : IMAGE_STEPS;
        batch = batch_of(learned, batch, replicas);
        epochs = steps * batch / (learned > 0 ? learned : 1);
        epochs = epochs < IMAGE_EPOCHS ? IMAGE_EPOCHS : epochs > EPOCHS_MOST ? EPOCHS_MOST : epochs;
    }
    json_set_integer(training, text ? "steps" : "epochs", text ? TEXT_STEPS : epochs);
    json_set_integer(training, "batchSize", batch);
}

static void set_training(const struct first_job *wish, bool text, int64_t replicas, struct json *section)
{
    struct json *training = json_set_object(section, "training");
    set_length(wish, text, replicas, training);
    struct json *optimizer = json_set_object(training, "optimizer");
    json_set_string(optimizer, "type", optimizer_type_name(OPTIMIZER_ADAMW));
    json_set_number(optimizer, "learningRate", LEARNING_RATE);
}

/* The steps of the job; 0: that is not known. */
static int64_t steps_of(const struct first_job *wish, const struct json *training)
{
    const struct data_shape *shape = wish->shape;
    int64_t batch = json_integer_at(training, "batchSize", 1), epochs = json_integer_at(training, "epochs", 0);
    int64_t learned = shape && shape->examples > 0 ? learned_examples(shape) : 0;
    return epochs == 0 ? json_integer_at(training, "steps", 0) : epochs * (learned / batch);
}

/* Without it the job is evaluated once an epoch: too often for a small table, and never for a long text. */
static void set_evaluation(int64_t steps, bool text, struct json *section)
{
    int64_t every = steps / (text ? TEXT_EVALUATIONS : EVALUATIONS);
    if (steps > 0)
        json_set_integer(json_set_object(section, "evaluation"), "everySteps", every > 0 ? every : 1);
}

static void add_storage(struct json *spec, const char *name, const char *claim, bool read_only)
{
    struct json *storage = json_append(json_set_array(spec, "storage"), json_new_object());
    json_set_string(storage, "name", name);
    json_set_string(json_set_object(storage, "persistentVolumeClaim"), "claimName", given(claim, name));
    if (read_only)
        json_set_boolean(storage, "readOnly", true);
}

/* A job that needs no files needs no volume, unless one is named. */
static void set_storage(const struct first_job *wish, bool has_files, struct json *spec, struct json *section)
{
    if (has_files)
        add_storage(spec, FIRST_JOB_DATA, wish->data_claim, true);
    if (!has_files && !wish->runs_claim)
        return;
    add_storage(spec, FIRST_JOB_RUNS, wish->runs_claim, false);
    struct json *checkpoint = json_set_object(section, "checkpoint"), *export = json_set_object(section, "export");
    json_set_string(checkpoint, "storage", FIRST_JOB_RUNS);
    json_set_integer(checkpoint, "everySeconds", CHECKPOINT_EVERY_SECONDS);
    json_set_boolean(checkpoint, "keepBest", true);
    json_set_string(export, "storage", FIRST_JOB_RUNS);
    SCOPED_FREE char *weights = memory_format("%s/model.safetensors", wish->name);
    json_set_string(export, "path", weights);
    json_set_string(export, "weights", export_weights_words[EXPORT_BEST]);
}

bool first_job_reads_text(const struct json *section)
{
    return belongs(field_find(&model_type, "context"), json_string_at(section, "model.preset", ""));
}

static bool has_gpus(const struct json *job)
{
    return strcmp(json_string_at(job, "spec.devices.type", ""), device_type_name(DEVICE_TYPE_GPU)) == 0;
}

int64_t first_job_minutes(double windows)
{
    return (int64_t)ceil(windows / TEXT_WINDOWS_A_MINUTE);
}

int64_t first_job_length(const struct json *job)
{
    const struct json *section = json_at(job, "spec.coxswain");
    if (!first_job_reads_text(section) || has_gpus(job))
        return 0;
    if (strcmp(json_string_at(section, "model.preset", ""), preset_name(PRESET_GPT_BYTES)) != 0)
        return -1;
    double windows = json_number_at(section, "training.steps", 0) * json_number_at(section, "training.batchSize", 0);
    return first_job_minutes(windows);
}

void first_job_explain(const struct json *job, struct buffer *out)
{
    int64_t minutes = first_job_length(job);
    if (minutes > 0)
        buffer_format(out,
                      "#\n# Training takes about %lld minutes on two processors, enough to see the loss fall. For "
                      "better texts raise\n"
                      "# training.steps; the time rises with it.\n",
                      (long long)minutes);
    else if (minutes < 0)
        buffer_append_string(
            out,
            "#\n# With a model of this size that takes days on processors: give the job GPUs (--gpus N), "
            "or lower\n# model.depth, model.width and model.context.\n",
            NULL);
}

struct json *first_job_make(const struct first_job *wish)
{
    struct json *job = json_new_object();
    json_set_string(job, "apiVersion", API_GROUP_VERSION);
    json_set_string(job, "kind", TRAINING_JOB_KIND);
    json_set_string(json_set_object(job, "metadata"), "name", wish->name);
    struct json *spec = json_set_object(job, "spec");
    const char *format = given(wish->format, data_format_words[DATA_FORMAT_SYNTHETIC]);
    const struct material *material = &materials[word_of(data_format_words, format, DATA_FORMAT_SYNTHETIC)];
    if (wish->image)
        json_set_string(spec, "image", wish->image);
    const char *strategy = given(wish->strategy, strategy_type_name(STRATEGY_MULTI_WORKER_MIRRORED));
    set_crew(wish, strategy, spec);
    struct json *section = json_new_object(); /* the last one of the spec */
    json_set_string(json_set_object(section, "strategy"), "type", strategy);
    set_model(wish, material, section);
    set_data(wish, format, material, section);
    bool has_files = json_at(section, "data.storage") != NULL;
    int64_t replicas = json_integer_at(spec, "workers.replicas", 1) * json_integer_at(spec, "devices.count", 1);
    bool text = first_job_reads_text(section);
    set_training(wish, text, replicas, section);
    set_evaluation(steps_of(wish, json_member(section, "training")), text, section);
    set_storage(wish, has_files, spec, section);
    json_set(spec, "coxswain", section);
    return job;
}
