/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_document.h"

#include <math.h>

#include "manifest.h"

#define MODEL "model: {preset: mlp}\n"
#define DATA "data: {format: Synthetic, examples: 100}\n"
#define TRAINING "training: {steps: 10, batchSize: 8}\n"
#define STRATEGY "strategy: {type: OneDevice}\n"

static struct job_document parsed(const char *yaml)
{
    SCOPED_JSON *source = manifest_value(yaml);
    struct job_document document;
    struct error error = ERROR_INIT;
    cr_assert(job_document_parse(source, &document, &error) == 0, "%s", error.message);
    return document;
}

Test(job_document, what_is_not_given_is_default_or_unset)
{
    SCOPED(job_document_release) struct job_document document = parsed(STRATEGY MODEL DATA TRAINING);
    cr_expect(document.strategy.type == STRATEGY_ONE_DEVICE && document.strategy.collective == COLLECTIVE_AUTO);
    cr_expect(document.workers == 1 && document.devices.type == DEVICE_TYPE_CPU && document.devices.count == 1);
    cr_expect(document.model.preset == PRESET_MLP && document.model.width == FIELD_UNSET);
    cr_expect(document.model.layer_count == 0 && document.model.input_rank == 0);
    cr_expect(document.training.steps == 10 && document.training.epochs == FIELD_UNSET);
    cr_expect(document.training.scale_learning_rate == SCALE_NOT_SAID);
    cr_expect(document.training.optimizer.learning_rate == 0.01 && document.training.optimizer.epsilon == 1e-8);
    cr_expect(document.training.optimizer.schedule.type == SCHEDULE_CONSTANT);
    cr_expect(document.training.optimizer.schedule.warmup_steps == 0);
    cr_expect(isnan(document.training.gradient_clip_norm));
    cr_expect(document.training.logical_shards == FIELD_UNSET && document.training.seed == 0);
    cr_expect(!document.checkpoint.enabled && document.checkpoint.every_seconds == FIELD_UNSET);
    cr_expect(document.init_path == NULL && document.export_path == NULL);
    cr_expect(document.evaluation_every_steps == FIELD_UNSET);
    cr_expect(document.data.validation.last == FIELD_UNSET && document.data.train.first == FIELD_UNSET);
    cr_expect(document.crew.role_count == 0 && document.job_name == NULL && document.storage_count == 0);
}

static const char full[] =
    "name: digits\n"
    "namespace: default\n"
    "strategy: {type: MultiWorkerMirrored, collective: Hierarchical}\n"
    "workers: {replicas: 2}\n"
    "devices: {type: Auto, count: 2}\n"
    "model:\n"
    "  inputShape: [28, 28, 1]\n"
    "  layers:\n"
    "  - {type: Conv2D, filters: 6, kernel: 5, padding: 2, name: first}\n"
    "  - {type: Add, inputs: [first, first]}\n"
    "  - {type: Dense, units: 10, bias: false}\n"
    "  loss: MeanSquaredError\n"
    "encryption: {type: TLS}\n"
    "data: {format: IDX, storage: digits, path: mnist, train: {images: a, labels: b, first: 7},"
    " validation: {last: 1000}}\n"
    "training:\n"
    "  epochs: 3\n"
    "  perReplicaBatchSize: 64\n"
    "  scaleLearningRate: Linear\n"
    "  optimizer: {type: AdamW, learningRate: \"3e-4\", schedule: {type: Cosine}}\n"
    "  gradientClipNorm: \"1.0\"\n"
    "  seed: 7\n"
    "init: {storage: digits, path: start}\n"
    "export: {storage: runs, path: m.safetensors}\n"
    "evaluation: {everySteps: 50}\n"
    "storage: [{name: digits, readOnly: true}, {name: runs}]\n"
    "checkpoint: {storage: runs, path: digits, everySeconds: 120, keep: 5, onPreemption: Discard}\n"
    "crew: {roles: [{name: worker, count: 2}], hostPattern: \"d-{role}-{index}.d\", port: 2300}\n";

Test(job_document, reads_every_kind_of_field)
{
    SCOPED(job_document_release) struct job_document document = parsed(full);
    cr_expect_str_eq(document.job_name, "digits");
    cr_expect(document.model.input_rank == 3 && document.model.input_shape[1] == 28);
    cr_expect(document.model.layer_count == 3 && document.model.loss == LOSS_MEAN_SQUARED_ERROR);
    const struct layer_spec *layers = document.model.layers;
    cr_expect(layers[0].type == LAYER_CONV2D && layers[0].filters == 6 && layers[0].stride == FIELD_UNSET);
    cr_expect(layers[0].bias && layers[1].input_count == 2);
    cr_expect_str_eq(layers[1].inputs[1], "first");
    cr_expect(!layers[2].bias && layers[2].units == 10 && layers[2].name == NULL);
    cr_expect(document.data.format == DATA_FORMAT_IDX && document.data.train.first == 7);
    cr_expect(document.data.validation.last == 1000 && document.data.validation.images == NULL);
    cr_expect(document.training.scale_learning_rate == SCALE_LINEAR && document.training.batch_size == FIELD_UNSET);
    cr_expect(document.training.optimizer.learning_rate == 3e-4 && document.training.gradient_clip_norm == 1.0);
    cr_expect(document.checkpoint.enabled && document.checkpoint.every_seconds == 120 && document.checkpoint.keep == 5);
    cr_expect(!document.checkpoint.save_on_preemption && document.checkpoint.every_steps == FIELD_UNSET);
    cr_expect(document.storage_count == 2 && document.storage[0].read_only && !document.storage[1].read_only);
    cr_expect(document.storage[0].source == NULL);
    cr_expect(document.crew.role_count == 1 && document.crew.roles[0].count == 2 && document.crew.port == 2300);
    cr_expect_str_eq(document.crew.host_pattern, "d-{role}-{index}.d");
    cr_expect_str_eq(document.init_storage, "digits");
    cr_expect_str_eq(document.init_path, "start");
    cr_expect(document.encryption == ENCRYPTION_TLS);
    cr_expect_str_eq(document.data.path, "mnist");
}

Test(job_document, names_a_file_for_each_input_of_a_program)
{
    static const char inputs[] = STRATEGY TRAINING
        "model: {program: {path: /m/bert}}\n"
        "data:\n"
        "  format: NPY\n"
        "  train: {inputs: [{name: input_ids, file: ids.npy}, {name: attention_mask, file: m.npy}], labels: y.npy}\n"
        "  validation: {inputs: [{name: input_ids, file: held.npy}], labels: held-y.npy}\n";
    SCOPED(job_document_release) struct job_document document = parsed(inputs);
    cr_assert(document.data.train.input_count == 2 && document.data.validation.input_count == 1);
    cr_expect_str_eq(document.data.train.inputs[1].name, "attention_mask");
    cr_expect_str_eq(document.data.train.inputs[1].file, "m.npy");
    SCOPED_JSON *json = job_document_to_json(&document);
    const struct json *first = json_first(json_at(json, "data.validation.inputs"));
    cr_expect_str_eq(json_string_at(first, "file", ""), "held.npy");
}

Test(job_document, goes_to_json_and_back_unchanged)
{
    SCOPED(job_document_release) struct job_document document = parsed(full);
    SCOPED_JSON *first = job_document_to_json(&document);
    struct job_document again;
    struct error error = ERROR_INIT;
    cr_assert(job_document_parse(first, &again, &error) == 0, "%s", error.message);
    SCOPED_JSON *second = job_document_to_json(&again);
    cr_expect(json_equal(first, second));
    cr_expect(again.training.optimizer.learning_rate == 3e-4 && again.checkpoint.every_seconds == 120);
    job_document_release(&again);
}

Test(job_document, json_leaves_defaults_out)
{
    SCOPED(job_document_release) struct job_document document = parsed(STRATEGY MODEL DATA TRAINING);
    SCOPED_JSON *json = job_document_to_json(&document);
    expect_printed(json, "{\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\"},"
                         "\"data\":{\"format\":\"Synthetic\",\"examples\":100},"
                         "\"training\":{\"steps\":10,\"batchSize\":8}}");
}

Test(job_document, names_the_field_and_what_to_write)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: -3}\n",
         "training.batchSize: -3 is below 1; give a number from 1 to 1048576"},
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: 1.5}\n",
         "training.batchSize: 1.5 is not a whole number"},
        {STRATEGY MODEL DATA TRAINING "wrokers: 2\n",
         "wrokers: is not a field that is known here; did you mean workers?"},
        {STRATEGY DATA TRAINING "model: {preset: inception}\n",
         "model.preset: 'inception' is not known; give mlp, lenet, resnet20, resnet50, gpt-bytes, "
         "gpt2-124m, gpt2-355m, gpt2-774m or gpt2-1558m"},
        {STRATEGY DATA TRAINING "model: {preset: \"\"}\n",
         "model.preset: '' is not known; give mlp, lenet, resnet20, resnet50, gpt-bytes, "
         "gpt2-124m, gpt2-355m, gpt2-774m or gpt2-1558m"},
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: 8, optimizer: {learningRate: 0}}\n",
         "training.optimizer.learningRate: 0 is out of bounds; give a number above 0, up to 1000"},
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: 8, optimizer: {type: AdamW, beta2: 1}}\n",
         "training.optimizer.beta2: 1 is out of bounds; give a number from 0 and below 1"},
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: 8, optimizer: {learningRate: [1]}}\n",
         "training.optimizer.learningRate: the value is of type array; give a number, such as 0.01 or 3e-4"},
        {STRATEGY MODEL DATA "training: {epochs: 1, batchSize: 8, optimizer: {type: adam}}\n",
         "training.optimizer.type: 'adam' is not known; did you mean AdamW? There are SGD or AdamW"},
        {STRATEGY DATA TRAINING "model: {preset: gpt2-124}\n",
         "model.preset: 'gpt2-124' is not known; did you mean gpt2-124m? There are mlp, lenet, resnet20, resnet50, "
         "gpt-bytes, gpt2-124m, gpt2-355m, gpt2-774m or gpt2-1558m"},
        {STRATEGY MODEL DATA, "training: is missing; it is required"},
        {STRATEGY MODEL TRAINING "data: [1]\n", "data: the value is of type array; give an object"},
        {STRATEGY MODEL DATA TRAINING "checkpoint: {storage: runs}\n",
         "checkpoint.storage: is not the name of a storage of this job; add it to storage or correct it"},
        {"[]\n", "the value is of type array; give an object"},
        {STRATEGY MODEL DATA TRAINING "workers: {replicas: 0}\ndevices: {count: 0}\n",
         "workers.replicas: 0 is below 1; give a number from 1 to 128 (and 1 more)"},
        {STRATEGY MODEL TRAINING "data: {format: IDX, train: {images: ../a, labels: b}}\n",
         "data.train.images: '../a' does not fit; give a path without empty, '.' and '..' parts, such as "
         "mnist/train.gz"},
        {STRATEGY MODEL TRAINING "data: {format: NPY, train: {labels: y}}\n",
         "data.train: format NPY needs train.labels and either train.images or train.inputs"},
        {STRATEGY MODEL TRAINING "data: {format: NPY, train: {labels: y, images: x, inputs: [{name: a, file: x}]}}\n",
         "data.train: format NPY needs train.labels and either train.images or train.inputs"},
        {STRATEGY MODEL TRAINING
         "data: {format: NPY, train: {labels: y, images: x}, validation: {inputs: [{name: a, file: x}]}}\n",
         "data.validation.labels: validation labels come together with either images or inputs"},
        {STRATEGY MODEL TRAINING "data: {format: IDX, train: {labels: y, images: x, inputs: [{name: a, file: x}]}}\n",
         "data.train.inputs: is for format NPY only and would be ignored here; leave it out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *source = manifest_value(cases[i].yaml);
        struct job_document document = {.workers = 77};
        struct error error = ERROR_INIT;
        cr_expect(job_document_parse(source, &document, &error) < 0, "%s", cases[i].yaml);
        cr_expect(error.kind == ERROR_INVALID);
        cr_expect_str_eq(error.message, cases[i].message);
        cr_expect(document.workers == 77);
    }
}

Test(job_document, enums_have_names)
{
    cr_expect_str_eq(strategy_type_name(STRATEGY_MIRRORED), "Mirrored");
    cr_expect_str_eq(device_type_name(DEVICE_TYPE_AUTO), "Auto");
    cr_expect_str_eq(optimizer_type_name(OPTIMIZER_ADAMW), "AdamW");
    cr_expect_str_eq(layer_type_name(LAYER_MAX_POOL), "MaxPool");
    cr_expect_str_eq(layer_default_name(LAYER_MAX_POOL), "maxPool");
    cr_expect_str_eq(preset_name(PRESET_GPT_BYTES), "gpt-bytes");
}
