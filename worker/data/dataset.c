/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/dataset.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/data/file_name.h"
#include "common/data/mapped_file.h"
#include "common/job/enum_words.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"
#include "worker/data/read_delay.h"

#define READERS_MAX 16
#define READER_EXAMPLES_LEAST 4

static const struct dataset_kind *const kinds[] = {
    [DATA_FORMAT_IDX] = &dataset_idx,
    [DATA_FORMAT_BYTES] = &dataset_bytes,
    [DATA_FORMAT_SYNTHETIC] = &dataset_synthetic,
    [DATA_FORMAT_CIFAR10] = &dataset_cifar10,
    [DATA_FORMAT_NPY] = &dataset_npy,
    [DATA_FORMAT_TOKENS] = &dataset_tokens,
    [DATA_FORMAT_TFRECORD] = &dataset_tfrecord,
    [DATA_FORMAT_CSV] = &dataset_csv,
    [DATA_FORMAT_IMAGE_FOLDER] = &dataset_images,
};

int dataset_path(const struct dataset_source *source, const char *path, char **ret_path, struct error *error)
{
    if (source->is_new) {
        *ret_path = memory_copy_string(path);
        return 0;
    }
    const char *folder = source->spec->path;
    SCOPED_FREE char *below = memory_format("%s%s%s", folder ? folder : "", folder ? "/" : "", path);
    return storage_map_resolve(source->storage, source->spec->storage, below, ret_path, error);
}

const char *dataset_section(const struct dataset_source *source)
{
    return source->files == &source->spec->validation ? "data.validation" : "data.train";
}

static bool names_files(const struct data_files *files)
{
    return files->images || files->labels || files->text || files->files || files->input_count > 0;
}

/* Of every job: a job that goes on from the weights of another must not have learned what it is tested on. */
#define SAMPLE_SEED 20

static int64_t given_or_none(int64_t value)
{
    return value == FIELD_UNSET ? 0 : value;
}

/* Cuts the source's examples into those of this split and the others. */
static int cut_split(struct dataset *dataset, const struct data_spec *spec, enum dataset_split split,
                     struct error *error)
{
    bool validation = split == SPLIT_VALIDATION, own_files = names_files(&spec->validation);
    int64_t end = dataset->count, sample = given_or_none(spec->validation.sample);
    int64_t first = given_or_none(validation && sample == 0 ? spec->validation.first : spec->train.first);
    int64_t held_out = sample > 0 ? sample : given_or_none(spec->validation.last);
    const char *field = sample > 0 ? "sample" : "last";
    if (first < 0 || first > end || held_out < 0 || held_out >= dataset->count)
        return error_set(error, ERROR_INVALID, "data: first %lld and %s %lld do not fit %lld examples",
                         (long long)first, field, (long long)held_out, (long long)dataset->count);
    if (sample > 0) {
        dataset->order_first = first;
        dataset->order = (struct sampler){.seed = SAMPLE_SEED, .count = end - first};
        end -= first;
        first = 0;
    }
    if (!validation && !own_files)
        end -= held_out;
    if (validation && held_out > 0)
        first = end - held_out;
    if (first > end || first < 0 || (!validation && first >= end))
        return error_set(error, ERROR_INVALID,
                         "data: nothing is left to train on; make validation.%s or train.first smaller", field);
    dataset->first = first;
    dataset->count = end - first;
    return 0;
}

/* The number in the source of the split's example `index`. */
static int64_t source_index(const struct dataset *dataset, int64_t index)
{
    int64_t position = dataset->first + index;
    return dataset->order.count > 0 ? dataset->order_first + sampler_index(&dataset->order, 0, position) : position;
}

static int augment(struct dataset *dataset, const struct augmentation_spec *spec, struct error *error)
{
    if (augmentation_check(spec, dataset->format.image, &dataset->augmentation, error) < 0)
        return -1;
    size_t length = strlen(dataset->description), left = sizeof dataset->description - length;
    if (spec->crop_padding > 0)
        snprintf(dataset->description + length, left, ", cropped out of %lld zeros around%s",
                 (long long)spec->crop_padding, spec->horizontal_flip ? ", half mirrored" : "");
    else if (spec->horizontal_flip)
        snprintf(dataset->description + length, left, ", half mirrored");
    return 0;
}

/* ---------------------------------------------------------------- standardization */

static void describe_standardization(struct dataset *dataset)
{
    const struct standardization *of = &dataset->facts.standardization;
    size_t length = strlen(dataset->description), left = sizeof dataset->description - length;
    if (of->targets == 1)
        snprintf(dataset->description + length, left, ", standardized, labels from mean %.4g and deviation %.4g",
                 of->moments[of->inputs].mean, of->moments[of->inputs].deviation);
    else
        snprintf(dataset->description + length, left, ", standardized");
}

/* Takes the measure of the training examples, as they are in the files. */
static int measure(const struct dataset *training, struct standardization *standardization, struct error *error)
{
    const struct example_format *format = &training->format;
    SCOPED_FREE float *inputs = memory_allocate(1, example_input_bytes(format));
    SCOPED_FREE float *targets = memory_allocate(1, example_target_bytes(format));
    for (int64_t i = 0; i < training->count; i++) {
        if (training->kind->read(training, source_index(training, i), inputs, targets, error) < 0)
            return -1;
        standardization_add(standardization, inputs, targets);
    }
    standardization_finish(standardization);
    return 0;
}

static int64_t standardized_targets(const struct example_format *format)
{
    return format->target_type == ELEMENT_FLOAT32 ? format->target_elements : 0;
}

/* Measures the training examples, which are opened for that unless they are those of `dataset`. */
static int measure_training(struct dataset *dataset, const struct dataset_source *source, enum dataset_split split,
                            struct error *error)
{
    const struct example_format *format = &dataset->format;
    struct dataset *training = NULL;
    struct data_spec plain = *source->spec;
    plain.standardize = false;
    if (split == SPLIT_VALIDATION && dataset_open(&plain, source->storage, SPLIT_TRAIN, format, &training, error) < 0)
        return -1;
    standardization_init(&dataset->facts.standardization, format->input_elements, standardized_targets(format));
    int result = measure(training ? training : dataset, &dataset->facts.standardization, error);
    dataset_free(training);
    return result;
}

static bool knows_moments(const struct dataset_source *source)
{
    const struct training_facts *known = source->known;
    return known && known->standardization.inputs == source->format->input_elements &&
           known->standardization.targets == standardized_targets(source->format);
}

static int standardize(struct dataset *dataset, const struct dataset_source *source, enum dataset_split split,
                       struct error *error)
{
    const struct example_format *format = &dataset->format;
    if (!source->spec->standardize)
        return 0;
    if (format->input_type != ELEMENT_FLOAT32 || format->input_count > 1)
        return error_set(error, ERROR_INVALID, "data.standardize is for models that take numbers, as their only input");
    if (format->input_count > 0 && format->target_type == ELEMENT_FLOAT32)
        return error_set(
            error, ERROR_INVALID,
            "data.standardize: a program has a loss of its own, which takes labels that are numbers as they "
            "are; leave data.standardize out, and store standardized values or compute them in the program");
    if (knows_moments(source))
        standardization_copy(&dataset->facts.standardization, &source->known->standardization);
    else if (measure_training(dataset, source, split, error) < 0)
        return -1;
    describe_standardization(dataset);
    return 0;
}

static void take_names(struct dataset *dataset, const struct training_facts *known)
{
    dataset->facts.columns = known ? json_copy(known->columns) : NULL;
    dataset->facts.classes = known ? json_copy(known->classes) : NULL;
    dataset->facts.words = known ? json_copy(known->words) : NULL;
    dataset->facts.label = known ? memory_copy_string(known->label) : NULL;
}

/* Only what has names gives a program several inputs: arrays, and features of records. */
static int check_inputs(enum data_format given, const struct example_format *format, struct error *error)
{
    if (format->input_count < 2 || given == DATA_FORMAT_NPY || given == DATA_FORMAT_TFRECORD)
        return 0;
    return error_set(
        error, ERROR_INVALID,
        "data.format %s gives each example one input, but the model takes %u, such as %s; take NPY and name "
        "a file for each in data.train.inputs, or TFRecord with a feature for each",
        data_format_words[given], format->input_count, format->inputs[0].name);
}

/* Validation without files, `last` and `sample`: no examples at all. */
static struct dataset *empty_dataset(const struct example_format *format)
{
    struct dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->format = *format;
    snprintf(dataset->description, sizeof dataset->description, "no examples");
    return dataset;
}

/* `source` without the files, which the split decides. */
static int open_split(struct dataset_source source, enum dataset_split split, struct dataset **ret_dataset,
                      struct error *error)
{
    const struct data_spec *spec = source.spec;
    const struct data_files *own = &spec->validation;
    bool validation = split == SPLIT_VALIDATION;
    if (validation && !names_files(own) && given_or_none(own->last) == 0 && given_or_none(own->sample) == 0) {
        *ret_dataset = empty_dataset(source.format);
        return 0;
    }
    source.files = validation && names_files(own) ? own : &spec->train;
    struct dataset *dataset = NULL;
    if (check_inputs(spec->format, source.format, error) < 0)
        return -1;
    if (kinds[spec->format]->open(&source, &dataset, error) < 0)
        return -1;
    if (cut_split(dataset, spec, split, error) < 0 || standardize(dataset, &source, split, error) < 0 ||
        (!validation && augment(dataset, &spec->augmentation, error) < 0)) {
        dataset_free(dataset);
        return -1;
    }
    *ret_dataset = dataset;
    return 0;
}

int dataset_open(const struct data_spec *spec, const struct storage_map *storage, enum dataset_split split,
                 const struct example_format *format, struct dataset **ret_dataset, struct error *error)
{
    const struct dataset_source source = {.spec = spec, .storage = storage, .format = format};
    return open_split(source, split, ret_dataset, error);
}

int dataset_open_validation(const struct data_spec *spec, const struct storage_map *storage,
                            const struct dataset *training, struct dataset **ret_dataset, struct error *error)
{
    const struct dataset_source source = {
        .spec = spec, .storage = storage, .format = &training->format, .known = &training->facts};
    return open_split(source, SPLIT_VALIDATION, ret_dataset, error);
}

int dataset_open_held_out(const struct data_spec *spec, const struct storage_map *storage,
                          const struct example_format *format, const struct training_facts *known,
                          struct dataset **ret_dataset, struct error *error)
{
    const struct dataset_source source = {
        .spec = spec, .storage = storage, .format = format, .known = names_files(&spec->validation) ? known : NULL};
    return open_split(source, SPLIT_VALIDATION, ret_dataset, error);
}

/* New examples may be arrays for every format of the training files, or else have the same format as those. */
static const struct dataset_kind *kind_of_inputs(const char *path, const struct data_spec *spec)
{
    bool is_array = file_name_ends(path, ".npy");
    if (!is_array && (spec->format == DATA_FORMAT_CSV || spec->format == DATA_FORMAT_IMAGE_FOLDER))
        return kinds[spec->format];
    return &dataset_npy;
}

int dataset_open_inputs(const char *path, const struct data_spec *spec, const struct storage_map *storage,
                        const struct example_format *format, const struct training_facts *known,
                        struct dataset **ret_dataset, struct error *error)
{
    struct dataset *dataset = NULL;
    const struct data_files files = {.images = path, .files = path, .first = FIELD_UNSET, .last = FIELD_UNSET};
    const struct dataset_source source = {
        .spec = spec, .files = &files, .storage = storage, .format = format, .known = known, .is_new = true};
    if (format->input_count > 1)
        return error_set(error, ERROR_INVALID,
                         "the model takes %u inputs, such as %s, and the file gives one; name a held-out example by "
                         "its number instead",
                         format->input_count, format->inputs[0].name);
    if (format->input_type != ELEMENT_FLOAT32 && format->input_count == 0)
        return error_set(error, ERROR_INVALID,
                         "the model takes tokens, and the file gives other numbers; name a held-out example by its "
                         "number, or continue a text with --generate");
    if (kind_of_inputs(path, spec)->open(&source, &dataset, error) < 0)
        return -1;
    take_names(dataset, known);
    if (standardize(dataset, &source, SPLIT_VALIDATION, error) < 0) {
        dataset_free(dataset);
        return error_wrap(error, "data.standardize: training data");
    }
    *ret_dataset = dataset;
    return 0;
}

void dataset_restore_targets(const struct dataset *dataset, float *values, int64_t count)
{
    const struct standardization *standardization = &dataset->facts.standardization;
    for (int64_t i = 0; standardization->targets > 0 && i < count; i++)
        standardization_restore(standardization, values + i * standardization->targets);
}

double dataset_target_unit(const struct dataset *dataset)
{
    const struct standardization *standardization = &dataset->facts.standardization;
    const struct column_moments *moments = standardization->moments + standardization->inputs;
    for (int64_t i = 1; i < standardization->targets; i++)
        if (moments[i].deviation != moments[0].deviation)
            return NAN;
    return standardization->targets > 0 ? moments[0].deviation : 1;
}

bool dataset_has_targets(const struct dataset *dataset)
{
    return dataset->has_targets;
}

bool dataset_is_table(const struct dataset *dataset)
{
    return dataset->kind == &dataset_csv;
}

int64_t dataset_keep(struct dataset *dataset, int64_t most)
{
    return dataset->kind && dataset->kind->keep ? dataset->kind->keep(dataset, most) : 0;
}

void dataset_set_readers(struct dataset *dataset, int threads)
{
    dataset->readers = threads;
}

const char *dataset_example_name(const struct dataset *dataset, int64_t index)
{
    return dataset->kind && dataset->kind->name ? dataset->kind->name(dataset, source_index(dataset, index)) : NULL;
}

const struct training_facts *dataset_facts(const struct dataset *dataset)
{
    return &dataset->facts;
}

struct dataset_digests dataset_digests(const struct dataset *dataset)
{
    struct dataset_digests digests = {"", "", ""};
    SCOPED_BUFFER words = BUFFER_INIT(TRAINING_FACTS_LIST_MAX);
    if (dataset->facts.standardization.inputs > 0)
        snprintf(digests.standardized, sizeof digests.standardized, "%08x", dataset->facts.standardization.digest);
    if (dataset->has_labels)
        snprintf(digests.classes, sizeof digests.classes, "%08x", dataset->labels_digest);
    if (dataset->facts.words && json_print(dataset->facts.words, &words, NULL) == 0)
        snprintf(digests.words, sizeof digests.words, "%08x", crc32c(0, words.data, words.length));
    return digests;
}

void dataset_free(struct dataset *dataset)
{
    if (!dataset)
        return;
    training_facts_release(&dataset->facts);
    if (dataset->kind)
        dataset->kind->free(dataset);
    free(dataset);
}

int64_t dataset_count(const struct dataset *dataset)
{
    return dataset->count;
}

const struct example_format *dataset_format(const struct dataset *dataset)
{
    return &dataset->format;
}

int64_t dataset_memory(const struct dataset *dataset)
{
    return dataset ? dataset->memory : 0;
}

const char *dataset_notice(const struct dataset *dataset)
{
    return dataset->notice;
}

const char *dataset_description(const struct dataset *dataset)
{
    return dataset->description;
}

/* `scratch` NULL: the example as it is; else it passes through there. */
static int read_example(const struct dataset *dataset, const struct dataset_epoch *epoch, int64_t index, void *scratch,
                        void *input, void *target, struct error *error)
{
    const struct augmentation *augmentation = &dataset->augmentation;
    if (index < 0 || index >= dataset->count)
        return error_set(error, ERROR_INTERNAL, "internal error: example %lld of %lld was asked for", (long long)index,
                         (long long)dataset->count);
    if (dataset->kind->read(dataset, source_index(dataset, index), scratch ? scratch : input, target, error) < 0)
        return -1;
    if (dataset->facts.standardization.inputs > 0)
        standardization_apply(&dataset->facts.standardization, scratch ? scratch : input, target);
    if (scratch) {
        struct augmentation_draw draw = augmentation_draw(augmentation, epoch->seed, epoch->number, index);
        augmentation_apply(augmentation, &draw, scratch, input);
    }
    return 0;
}

/* Some examples of a batch, which one thread reads in the order of `indices`. */
struct reading {
    const struct dataset *dataset;
    const struct dataset_epoch *epoch;
    const int64_t *indices;
    int64_t count;
    char *inputs, *targets;
    struct error error;
    int result;
    pthread_t thread;
};

static int read_examples(struct reading *reading)
{
    const struct dataset *dataset = reading->dataset;
    size_t input_bytes = example_input_bytes(&dataset->format), target_bytes = example_target_bytes(&dataset->format);
    bool augments = reading->epoch != NULL && augmentation_is_active(&dataset->augmentation);
    SCOPED_FREE void *scratch = augments ? memory_allocate(1, input_bytes) : NULL;
    for (int64_t i = 0; i < reading->count; i++)
        if (read_example(dataset, reading->epoch, reading->indices[i], scratch,
                         reading->inputs + (size_t)i * input_bytes, reading->targets + (size_t)i * target_bytes,
                         &reading->error) < 0)
            return -1;
    return 0;
}

static void *run_reading(void *context)
{
    struct reading *reading = context;
    reading->result = read_examples(reading);
    return NULL;
}

/* Returns how many threads read a batch: one, unless examples take long to read and there are enough for several threads. */
static int64_t readers_of(const struct dataset *dataset, int64_t count)
{
    cpu_set_t processors;
    int64_t most = count / READER_EXAMPLES_LEAST;
    if (!dataset->kind->slow || sched_getaffinity(0, sizeof processors, &processors) < 0)
        return 1;
    int64_t readers = dataset->readers > 0 ? dataset->readers : CPU_COUNT(&processors);
    readers = readers < READERS_MAX ? readers : READERS_MAX;
    return most < 1 ? 1 : most < readers ? most : readers;
}

/* Divides the batch among threads. If several fail, reports the failure of the first example, so that each run reports the same one. */
static int read_in_parts(const struct reading *whole, struct error *error)
{
    struct reading parts[READERS_MAX];
    const struct example_format *format = &whole->dataset->format;
    int64_t readers = readers_of(whole->dataset, whole->count), first = 0;
    bool started[READERS_MAX] = {false};
    for (int64_t i = 0; i < readers; i++) {
        int64_t end = whole->count * (i + 1) / readers;
        parts[i] = *whole;
        parts[i].indices += first;
        parts[i].count = end - first;
        parts[i].inputs += (size_t)first * example_input_bytes(format);
        parts[i].targets += (size_t)first * example_target_bytes(format);
        first = end;
        started[i] = i + 1 < readers && pthread_create(&parts[i].thread, NULL, run_reading, &parts[i]) == 0;
    }
    for (int64_t i = 0; i < readers; i++)
        if (!started[i])
            run_reading(&parts[i]);
    for (int64_t i = 0; i < readers; i++)
        if (started[i])
            pthread_join(parts[i].thread, NULL);
    for (int64_t i = 0; i < readers; i++)
        if (parts[i].result < 0)
            return error_set(error, parts[i].error.kind, "%s", parts[i].error.message);
    return 0;
}

/* That a file has shrunk goes before what its missing bytes were taken for. */
static int check_files(const struct dataset *dataset, const int64_t *indices, int64_t count, struct error *error)
{
    struct error cause = ERROR_INIT;
    uint64_t round = mapped_file_round();
    for (int64_t i = 0; i < count && dataset->kind->check != NULL; i++)
        if (indices[i] >= 0 && indices[i] < dataset->count &&
            dataset->kind->check(dataset, source_index(dataset, indices[i]), round, &cause) < 0)
            return error_set(error, cause.kind, "%s", cause.message);
    return 0;
}

static int read_and_check(const struct dataset *dataset, const struct dataset_epoch *epoch, const int64_t *indices,
                          int64_t count, void *inputs, void *targets, struct error *error)
{
    read_delay_sleep();
    const struct reading reading = {.dataset = dataset,
                                    .epoch = epoch,
                                    .indices = indices,
                                    .count = count,
                                    .inputs = inputs,
                                    .targets = targets,
                                    .error = ERROR_INIT};
    int result = read_in_parts(&reading, error);
    return check_files(dataset, indices, count, error) < 0 ? -1 : result;
}

int dataset_read(const struct dataset *dataset, const int64_t *indices, int64_t count, void *inputs, void *targets,
                 struct error *error)
{
    return read_and_check(dataset, NULL, indices, count, inputs, targets, error);
}

int dataset_read_in_epoch(const struct dataset *dataset, struct dataset_epoch epoch, const int64_t *indices,
                          int64_t count, void *inputs, void *targets, struct error *error)
{
    return read_and_check(dataset, &epoch, indices, count, inputs, targets, error);
}
