/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/first_job.h"

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
    [DATA_FORMAT_IDX] = {PRESET_LENET, {28, 28, 1}, 1000}, [DATA_FORMAT_BYTES] = {PRESET_GPT_BYTES, {0}, 64},
    [DATA_FORMAT_SYNTHETIC] = {PRESET_MLP, {0}, 1000},     [DATA_FORMAT_CIFAR10] = {PRESET_RESNET20, {32, 32, 3}, 1000},
    [DATA_FORMAT_NPY] = {PRESET_MLP, {0}, 1000},           [DATA_FORMAT_TOKENS] = {PRESET_GPT2_124M, {0}, 64},
    [DATA_FORMAT_TFRECORD] = {PRESET_MLP, {0}, 1000},
};

#define SYNTHETIC_EXAMPLES 10000
#define IMAGE_BATCH 128
#define TEXT_BATCH 32
#define IMAGE_EPOCHS 5
#define TEXT_STEPS 1000
#define LEARNING_RATE 1e-3
#define CHECKPOINT_EVERY_SECONDS 60

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

static void set_model(const struct first_job *wish, const struct material *material, struct json *section)
{
    struct json *model = json_set_object(section, "model");
    const char *preset = given(wish->model, preset_name(material->model));
    json_set_string(model, "preset", preset);
    if (material->sides[0] == 0 || !belongs(field_find(&model_type, "inputShape"), preset))
        return;
    struct json *shape = json_set_array(model, "inputShape");
    for (unsigned i = 0; i < SIDES_MAX; i++)
        json_append(shape, json_new_integer(material->sides[i]));
}

/* Each in the field that files of the format have. */
static void set_files(const struct data_files_found *files, struct json *data)
{
    const struct object_type *train = field_find(&data_type, "train")->type;
    const char *names[] = {files->files, files->labels};
    unsigned count = 0;
    for (struct field_cursor at = field_first(train); at.field && count < 2; field_next(&at))
        if (belongs(at.field, files->format))
            json_set_string(json_set_object(data, "train"), at.field->name, names[count++]);
}

static void set_data(const struct first_job *wish, const char *format, int64_t held_out, struct json *section)
{
    struct json *data = json_set_object(section, "data");
    struct data_files_found usual = {.format = NULL};
    json_set_string(data, "format", format);
    if (wish->files || data_files_usual(format, &usual)) {
        json_set_string(data, "storage", FIRST_JOB_DATA);
        set_files(wish->files ? wish->files : &usual, data);
    }
    if (belongs(field_find(&data_type, "examples"), format))
        json_set_integer(data, "examples", SYNTHETIC_EXAMPLES);
    json_set_integer(json_set_object(data, "validation"), "last", held_out);
    data_files_release(&usual);
}

static void set_training(bool text, struct json *section)
{
    struct json *training = json_set_object(section, "training");
    json_set_integer(training, text ? "steps" : "epochs", text ? TEXT_STEPS : IMAGE_EPOCHS);
    json_set_integer(training, "batchSize", text ? TEXT_BATCH : IMAGE_BATCH);
    struct json *optimizer = json_set_object(training, "optimizer");
    json_set_string(optimizer, "type", optimizer_type_name(OPTIMIZER_ADAMW));
    json_set_number(optimizer, "learningRate", LEARNING_RATE);
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
    json_set_string(export, "storage", FIRST_JOB_RUNS);
    SCOPED_FREE char *weights = memory_format("%s/model.safetensors", wish->name);
    json_set_string(export, "path", weights);
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
    set_data(wish, format, material->held_out, section);
    bool has_files = json_at(section, "data.storage") != NULL;
    bool text = belongs(field_find(&model_type, "context"), json_string_at(section, "model.preset", ""));
    set_training(text, section);
    set_storage(wish, has_files, spec, section);
    json_set(spec, "coxswain", section);
    return job;
}
