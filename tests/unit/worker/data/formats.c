/* SPDX-License-Identifier: Apache-2.0
 *
 * CIFAR-10, NumPy arrays, llm.c's tokens and TFRecords behind the door of
 * dataset.h: what is read, and the sentence for what cannot be.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memory.h"
#include "tfrecord_write.h"
#include "worker/data/dataset.h"

static const struct example_format cifar = {.input_type = ELEMENT_FLOAT32,
                                            .input_elements = 3072,
                                            .target_type = ELEMENT_INT32,
                                            .target_elements = 1,
                                            .classes = 10};
static const struct example_format images = {.input_type = ELEMENT_FLOAT32,
                                             .input_elements = 4,
                                             .target_type = ELEMENT_INT32,
                                             .target_elements = 1,
                                             .classes = 10};
static const struct example_format text = {.input_type = ELEMENT_INT32,
                                           .input_elements = 3,
                                           .target_type = ELEMENT_INT32,
                                           .target_elements = 3,
                                           .classes = 600};

static char place[64];

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/coxswain-formats-XXXXXX");
    cr_assert_not_null(mkdtemp(place));
}

static void remove_place(void)
{
    char pattern[96];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", place);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    rmdir(place);
}

static const char *path_of(const char *name)
{
    static char paths[64][96];
    static unsigned next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", place, name);
    return path;
}

static void put_file(const char *name, const void *bytes, size_t length)
{
    FILE *file = fopen(path_of(name), "wb");
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static struct data_spec spec_of(enum data_format format, const char *files)
{
    struct data_spec spec = {.format = format, .examples = FIELD_UNSET};
    spec.train.files = files;
    spec.train.first = spec.train.last = spec.validation.first = spec.validation.last = FIELD_UNSET;
    return spec;
}

static struct dataset *opened(const struct data_spec *spec, const struct example_format *format)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_assert_eq(dataset_open(spec, NULL, SPLIT_TRAIN, format, &dataset, &error), 0, "%s", error.message);
    return dataset;
}

static void refused(const struct data_spec *spec, const struct example_format *format, enum error_kind kind,
                    const char *words)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_expect_eq(dataset_open(spec, NULL, SPLIT_TRAIN, format, &dataset, &error), -1);
    cr_expect_eq(error.kind, kind, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

static void unreadable(const struct dataset *dataset, int64_t index, const char *words)
{
    struct error error = ERROR_INIT;
    float input[3072];
    int32_t target[8];
    cr_expect_eq(dataset_read(dataset, &index, 1, input, target, &error), -1);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(formats, cifar10_planes_become_pixels_over_several_files, .init = make_place, .fini = remove_place)
{
    static uint8_t records[2][3073];
    for (int i = 0; i < 2; i++) {
        records[i][0] = (uint8_t)(3 + i);
        for (int c = 0; c < 3; c++)
            memset(records[i] + 1 + c * 1024, 10 * i + c, 1024);
    }
    records[1][2] = 99; /* red, second pixel */
    put_file("data_batch_2.bin", records[1], 3073);
    put_file("data_batch_1.bin", records, 2 * 3073);
    put_file("readme.html", "x", 1);
    struct data_spec spec = spec_of(DATA_FORMAT_CIFAR10, path_of("data_batch_*.bin"));
    struct dataset *dataset = opened(&spec, &cifar);
    cr_assert_eq(dataset_count(dataset), 3);
    cr_assert(strstr(dataset_description(dataset), "2 files"), "%s", dataset_description(dataset));
    int64_t indices[2] = {2, 0};
    static float inputs[2][3072];
    int32_t targets[2];
    cr_assert_eq(dataset_read(dataset, indices, 2, inputs, targets, NULL), 0);
    cr_assert(targets[0] == 4 && targets[1] == 3);
    cr_assert(inputs[0][3] == 99.0f / 255.0f && inputs[0][4] == 11.0f / 255.0f && inputs[1][2] == 2.0f / 255.0f);
    dataset_free(dataset);
    refused(&spec, &text, ERROR_INVALID, "one class each");
    refused(&spec, &images, ERROR_INVALID, "32x32x3");
    records[0][0] = 11;
    put_file("data_batch_1.bin", records, 3073);
    dataset = opened(&spec, &cifar);
    unreadable(dataset, 0, "is 11");
    dataset_free(dataset);
    put_file("data_batch_1.bin", records, 3072);
    refused(&spec, &cifar, ERROR_CORRUPT, "binary version");
    spec.train.files = path_of("nothing-*.bin");
    refused(&spec, &cifar, ERROR_NOT_FOUND, "no file matches");
    spec.train.files = "/t*p/x.bin";
    refused(&spec, &cifar, ERROR_INVALID, "last part");
}

Test(formats, only_a_star_is_special_in_a_name, .init = make_place, .fini = remove_place)
{
    static const uint8_t record[3073] = {7};
    put_file("v[2]?\\_1.bin", record, 3073);
    put_file("v[2]?\\_2.bin", record, 3073);
    put_file("v2x_1.bin", record, 3073);
    struct data_spec spec = spec_of(DATA_FORMAT_CIFAR10, path_of("v[2]?\\_*.bin"));
    struct dataset *dataset = opened(&spec, &cifar);
    cr_expect_eq(dataset_count(dataset), 2);
    dataset_free(dataset);
    put_file("v[2]?\\_*.bin", record, 3073);
    dataset = opened(&spec, &cifar);
    cr_expect_eq(dataset_count(dataset), 1, "that very name");
    dataset_free(dataset);
}

/* Files that a user may supply by mistake or malice: each gives an error message, never a read outside the file. */
Test(formats, hostile_cifar10_files_are_refused, .init = make_place, .fini = remove_place)
{
    static uint8_t record[3073];
    struct data_spec spec = spec_of(DATA_FORMAT_CIFAR10, path_of("batch.bin"));
    const size_t lengths[] = {0, 1, 3071, 3072, 3074, 2 * 3073 - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put_file("batch.bin", record, 0);
        cr_assert_eq(truncate(path_of("batch.bin"), (off_t)lengths[i]), 0);
        refused(&spec, &cifar, ERROR_CORRUPT, "binary version");
    }
    spec.train.files = place; /* a folder */
    struct dataset *dataset = NULL;
    cr_expect_eq(dataset_open(&spec, NULL, SPLIT_TRAIN, &cifar, &dataset, NULL), -1);
    /* One damaged file among good ones is the one that is named. */
    put_file("batch_1.bin", record, sizeof record);
    put_file("batch_2.bin", record, sizeof record - 1);
    spec.train.files = path_of("batch_*.bin");
    refused(&spec, &cifar, ERROR_CORRUPT, "batch_2.bin");
}

Test(formats, a_cifar10_label_is_judged_when_it_is_read, .init = make_place, .fini = remove_place)
{
    static uint8_t records[3][3073];
    struct data_spec spec = spec_of(DATA_FORMAT_CIFAR10, path_of("batch.bin"));
    records[0][0] = 10;
    records[1][0] = 255;
    records[2][0] = 9;
    put_file("batch.bin", records, sizeof records);
    struct dataset *dataset = opened(&spec, &cifar);
    unreadable(dataset, 0, "label 0 is 10");
    unreadable(dataset, 1, "label 1 is 255");
    static float input[3072];
    int32_t target;
    int64_t last = 2;
    cr_expect_eq(dataset_read(dataset, &last, 1, input, &target, NULL), 0);
    cr_expect_eq(target, 9);
    dataset_free(dataset);
}

/* Larger than any memory here: mapped, and only what is read is there. */
Test(formats, a_cifar10_file_larger_than_memory_is_read_at_its_end, .init = make_place, .fini = remove_place)
{
    const int64_t count = 30000000; /* 92 GB, all of it a hole */
    static uint8_t record[3073] = {7, 255};
    struct data_spec spec = spec_of(DATA_FORMAT_CIFAR10, path_of("batch.bin"));
    put_file("batch.bin", record, 0);
    if (truncate(path_of("batch.bin"), (off_t)(count - 1) * 3073) != 0)
        cr_skip_test("no holes of this size on this file system");
    FILE *file = fopen(path_of("batch.bin"), "ab");
    cr_assert_eq(fwrite(record, 1, sizeof record, file), sizeof record);
    fclose(file);
    struct dataset *dataset = opened(&spec, &cifar);
    static float input[3072];
    int32_t target;
    int64_t last = count - 1;
    cr_assert_eq(dataset_count(dataset), count);
    cr_assert_eq(dataset_read(dataset, &last, 1, input, &target, NULL), 0);
    cr_expect(target == 7 && input[0] == 1.0f);
    dataset_free(dataset);
}

static size_t put_tokens(uint8_t *bytes, uint32_t magic, uint32_t version, uint32_t count, unsigned token_bytes)
{
    uint32_t header[256] = {magic, version, count};
    memcpy(bytes, header, sizeof header);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t token = 500 + i;
        memcpy(bytes + 1024 + i * token_bytes, &token, token_bytes);
    }
    return 1024 + (size_t)count * token_bytes;
}

Test(formats, tokens_are_windows_within_each_file, .init = make_place, .fini = remove_place)
{
    uint8_t bytes[2048];
    put_file("a.bin", bytes,
             put_tokens(bytes, 20240520, 1, 9, 2)); /* windows at 0 and 3; the third lacks its last target */
    put_file("b.bin", bytes, put_tokens(bytes, 20240801, 7, 4, 4));
    put_file("c.bin", bytes, put_tokens(bytes, 20240520, 1, 0, 2));
    struct data_spec spec = spec_of(DATA_FORMAT_TOKENS, path_of("*.bin"));
    struct dataset *dataset = opened(&spec, &text);
    cr_assert_eq(dataset_count(dataset), 3);
    int64_t indices[2] = {1, 2};
    int32_t inputs[6], targets[6];
    cr_assert_eq(dataset_read(dataset, indices, 2, inputs, targets, NULL), 0);
    cr_assert(inputs[0] == 503 && targets[2] == 506 && inputs[3] == 500 && targets[5] == 503);
    dataset_free(dataset);
    struct example_format small = text;
    small.classes = 505;
    dataset = opened(&spec, &small);
    unreadable(dataset, 1, "model.vocabulary");
    dataset_free(dataset);
    refused(&spec, &images, ERROR_INVALID, "windows of tokens");
    put_file("b.bin", bytes, put_tokens(bytes, 20240520, 1, 9, 2) - 1);
    refused(&spec, &text, ERROR_CORRUPT, "cut off");
    put_file("b.bin", bytes, put_tokens(bytes, 20240520, 2, 9, 2));
    refused(&spec, &text, ERROR_INVALID, "version 2");
    put_file("b.bin", bytes, 1000);
    refused(&spec, &text, ERROR_INVALID, "too few");
    spec.train.files = path_of("c.bin");
    refused(&spec, &text, ERROR_INVALID, "every file is too short");
}

static void put_array(const char *name, const char *dictionary, const void *data, size_t length)
{
    uint8_t bytes[512] = "\x93NUMPY\x01";
    size_t header = strlen(dictionary) + 1;
    bytes[8] = (uint8_t)header;
    memcpy(bytes + 10, dictionary, header - 1);
    bytes[9 + header] = '\n';
    memcpy(bytes + 10 + header, data, length);
    put_file(name, bytes, 10 + header + length);
}

Test(formats, npy_arrays_of_bytes_or_floats, .init = make_place, .fini = remove_place)
{
    const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t labels[] = {3, 9};
    put_array("x.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }", pixels, 8);
    put_array("y.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", labels, 16);
    struct data_spec spec = spec_of(DATA_FORMAT_NPY, NULL);
    spec.train.images = path_of("x.npy");
    spec.train.labels = path_of("y.npy");
    struct dataset *dataset = opened(&spec, &images);
    int64_t index = 1;
    float input[4];
    int32_t target;
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_assert(target == 9 && input[3] == 8.0f / 255.0f);
    dataset_free(dataset);
    const float numbers[] = {0, 1, 2, 3, 4, 5, 6, -7};
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", numbers, 32);
    dataset = opened(&spec, &images);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_assert(input[3] == -7.0f);
    dataset_free(dataset);
    const float wrong[] = {0, 1, 2, 3, 4, 5, NAN, 7};
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", wrong, 32);
    dataset = opened(&spec, &images);
    unreadable(dataset, 1, "x.npy: example 1: value 2 is nan, which is not a finite number");
    dataset_free(dataset);
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", numbers, 32);
    struct example_format few = images;
    few.classes = 4;
    dataset = opened(&spec, &few);
    unreadable(dataset, 1, "y.npy: label 1 is 9");
    dataset_free(dataset);
    few.ignores = true;
    few.ignored = 9;
    dataset = opened(&spec, &few);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_expect_eq(target, 9, "it does not count");
    dataset_free(dataset);
    refused(&spec, &cifar, ERROR_INVALID, "model.inputShape");
    refused(&spec, &text, ERROR_INVALID, "tokens");
    put_array("y.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", numbers, 8);
    refused(&spec, &images, ERROR_INVALID, "integers");
    put_array("y.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", numbers, 12);
    refused(&spec, &images, ERROR_INVALID, "x.npy has 2 examples, but ");
    refused(&spec, &images, ERROR_INVALID, "y.npy has 3; an example is one of each");
    put_array("x.npy", "{'descr': '<f2', 'fortran_order': False, 'shape': (4, 4), }", numbers, 32);
    refused(&spec, &images, ERROR_INVALID, "uint8, float32 or float64");
}

/* What NumPy makes of a table unless it is told otherwise: float64, and labels of int64. */
Test(formats, npy_arrays_of_float64_and_of_integers, .init = make_place, .fini = remove_place)
{
    const double numbers[] = {5.1, 3.5, 1.4, 0.2, 1e39, 0, 0, 0};
    const int16_t integers[] = {-3, 300, 0, 7, 1, 2, 3, 4};
    const uint16_t labels[] = {2, 1};
    put_array("x.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }", numbers, 64);
    put_array("y.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", labels, 4);
    struct data_spec spec = spec_of(DATA_FORMAT_NPY, NULL);
    spec.train.images = path_of("x.npy");
    spec.train.labels = path_of("y.npy");
    struct dataset *dataset = opened(&spec, &images);
    int64_t index = 0;
    float input[4], price;
    int32_t target;
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_expect(input[0] == 5.1f && input[3] == 0.2f && target == 2);
    unreadable(dataset, 1, "x.npy: example 1: value 0 is inf");
    dataset_free(dataset);
    put_array("x.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4), }", integers, 16);
    dataset = opened(&spec, &images);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_expect(input[0] == -3.0f && input[1] == 300.0f && input[3] == 7.0f);
    dataset_free(dataset);
    struct example_format prices = images;
    prices.target_type = ELEMENT_FLOAT32;
    prices.classes = 0;
    put_array("y.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", numbers, 16);
    dataset = opened(&spec, &prices);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &price, NULL), 0);
    cr_expect_eq(price, 5.1f);
    dataset_free(dataset);
}

/* Ten rows of two values, sorted by their labels: the first is the row's number, the second is 3 everywhere. */
static void put_rows(struct data_spec *spec)
{
    double rows[20];
    int32_t labels[10];
    for (int i = 0; i < 10; i++) {
        rows[2 * i] = i;
        rows[2 * i + 1] = 3;
        labels[i] = i / 5;
    }
    put_array("x.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (10, 2), }", rows, sizeof rows);
    put_array("y.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (10,), }", labels, sizeof labels);
    *spec = spec_of(DATA_FORMAT_NPY, NULL);
    spec->train.images = path_of("x.npy");
    spec->train.labels = path_of("y.npy");
}

static const struct example_format rows = {.input_type = ELEMENT_FLOAT32,
                                           .input_elements = 2,
                                           .target_type = ELEMENT_INT32,
                                           .target_elements = 1,
                                           .classes = 2};

/* Adds the first values of the split's examples to `seen`, a bit each; returns how many examples there are. */
static int64_t see(const struct data_spec *spec, enum dataset_split split, unsigned *seen)
{
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open(spec, NULL, split, &rows, &dataset, &error), 0, "%s", error.message);
    int64_t count = dataset_count(dataset);
    for (int64_t i = 0; i < count; i++) {
        float input[2];
        int32_t target;
        cr_assert_eq(dataset_read(dataset, &i, 1, input, &target, NULL), 0);
        cr_expect_eq(target, (int32_t)input[0] / 5);
        *seen |= 1u << (int)input[0];
    }
    dataset_free(dataset);
    return count;
}

/* The last four would all be of one class. */
Test(formats, a_sample_is_held_out_from_everywhere, .init = make_place, .fini = remove_place)
{
    struct data_spec spec;
    unsigned learned = 0, held_out = 0, again = 0;
    put_rows(&spec);
    spec.validation.sample = 4;
    cr_expect_eq(see(&spec, SPLIT_TRAIN, &learned), 6);
    cr_expect_eq(see(&spec, SPLIT_VALIDATION, &held_out), 4);
    see(&spec, SPLIT_VALIDATION, &again);
    cr_expect(learned + held_out == 0x3ff && (learned & held_out) == 0 && again == held_out);
    cr_expect((held_out & 0x1f) != 0 && (held_out & 0x3e0) != 0, "%x", held_out);
    spec.train.first = 2;
    learned = held_out = 0;
    cr_expect_eq(see(&spec, SPLIT_TRAIN, &learned), 4);
    cr_expect_eq(see(&spec, SPLIT_VALIDATION, &held_out), 4);
    cr_expect(learned + held_out == 0x3fc && (learned & held_out) == 0);
    spec.train.first = 6;
    refused(&spec, &rows, ERROR_INVALID, "make validation.sample or train.first smaller");
    spec.validation.sample = 10;
    refused(&spec, &rows, ERROR_INVALID, "sample 10 do not fit 10 examples");
}

/* The last two rows are held out: means and deviations are those of 0 to 7. */
Test(formats, values_are_standardized_by_the_training_examples, .init = make_place, .fini = remove_place)
{
    struct data_spec spec;
    struct dataset *dataset = NULL;
    int64_t first = 0;
    float input[2], price;
    int32_t target;
    put_rows(&spec);
    spec.standardize = true;
    spec.validation.last = 2;
    dataset = opened(&spec, &rows);
    cr_expect(strstr(dataset_description(dataset), "standardized"), "%s", dataset_description(dataset));
    cr_assert_eq(dataset_read(dataset, &first, 1, input, &target, NULL), 0);
    cr_expect_float_eq(input[0], -3.5 / sqrt(5.25), 1e-6);
    cr_expect_eq(input[1], 0);
    cr_expect_eq(dataset_target_unit(dataset), 1);
    dataset_free(dataset);
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &rows, &dataset, NULL), 0);
    cr_assert_eq(dataset_read(dataset, &first, 1, input, &target, NULL), 0);
    cr_expect_float_eq(input[0], 4.5 / sqrt(5.25), 1e-6);
    cr_expect(input[1] == 0 && target == 1);
    dataset_free(dataset);
    struct example_format prices = rows;
    prices.target_type = ELEMENT_FLOAT32;
    prices.classes = 0;
    put_array("y.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }",
              (const float[]){10, 30, 10, 30, 10, 30, 10, 30, 40, 50}, 40);
    dataset = opened(&spec, &prices);
    cr_expect(strstr(dataset_description(dataset), "labels from mean 20 and deviation 10"), "%s",
              dataset_description(dataset));
    cr_assert_eq(dataset_read(dataset, &first, 1, input, &price, NULL), 0);
    cr_expect_eq(price, -1);
    cr_expect_eq(dataset_target_unit(dataset), 10);
    dataset_free(dataset);
    refused(&spec, &text, ERROR_INVALID, "tokens");
    struct example_format program = prices;
    program.input_count = 1;
    program.inputs[0] = (struct example_input){"x", ELEMENT_FLOAT32, 2, 0, {1, {2}}};
    refused(&spec, &program, ERROR_INVALID, "a program has a loss of its own");

    put_array("new.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", (const float[]){8, 1}, 8);
    cr_assert_eq(dataset_open_inputs(path_of("new.npy"), &spec, NULL, &prices, NULL, &dataset, NULL), 0);
    cr_assert_eq(dataset_read(dataset, &first, 1, input, &price, NULL), 0);
    cr_expect_float_eq(input[0], 4.5 / sqrt(5.25), 1e-6);
    price = 1.5f;
    dataset_restore_targets(dataset, &price, 1);
    cr_expect_eq(price, 35);
    dataset_free(dataset);
}

/* They are not read again, which can take long. */
Test(formats, what_was_measured_of_the_training_examples_is_taken_over, .init = make_place, .fini = remove_place)
{
    struct data_spec spec;
    struct dataset *validation = NULL;
    int64_t first = 0;
    float input[2];
    int32_t target;
    put_rows(&spec);
    spec.standardize = true;
    put_array("new.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", (const float[]){9, 4}, 8);
    put_array("labels.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", (const uint8_t[1]){1}, 1);
    spec.validation.images = path_of("new.npy");
    spec.validation.labels = path_of("labels.npy");
    struct dataset *training = opened(&spec, &rows);
    cr_assert_eq(unlink(spec.train.images), 0);
    cr_assert_eq(dataset_open_validation(&spec, NULL, training, &validation, NULL), 0);
    dataset_free(training);
    cr_assert_eq(dataset_read(validation, &first, 1, input, &target, NULL), 0);
    cr_expect_float_eq(input[0], 4.5 / sqrt(8.25), 1e-6);
    cr_expect(input[1] == 1 && target == 1);
    cr_expect(strstr(dataset_description(validation), ", standardized"), "%s", dataset_description(validation));
    dataset_free(validation);
}

static const struct data_spec plain;

static void refused_split(const struct data_spec *spec, const char *words)
{
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open(spec, NULL, SPLIT_VALIDATION, &rows, &dataset, &error), -1);
    cr_assert(error.kind == ERROR_INVALID && strstr(error.message, words), "%s", error.message);
}

static void refused_new(const struct data_spec *spec, const char *words)
{
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open_inputs(path_of("new.npy"), spec, NULL, &rows, NULL, &dataset, &error), -1);
    cr_assert(error.kind == ERROR_INVALID && strstr(error.message, words), "%s", error.message);
}

/* Only uint8 is divided by 255: other files must be of it where the training file is, and nowhere else. */
Test(formats, npy_files_are_scaled_like_the_training_file, .init = make_place, .fini = remove_place)
{
    struct data_spec spec;
    struct dataset *dataset = NULL;
    put_rows(&spec);
    put_array("new.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", (const uint8_t[4]){0}, 4);
    put_array("labels.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", (const uint8_t[2]){0}, 2);
    spec.validation.images = path_of("new.npy");
    spec.validation.labels = path_of("labels.npy");
    refused_split(&spec, "is not uint8, whose values alone are divided by 255; save it as float32, too");
    refused_new(&spec, "save it as float32");
    put_array("x.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (10, 2), }", (const uint8_t[20]){0}, 20);
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &rows, &dataset, NULL), 0);
    dataset_free(dataset);
    put_array("new.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }", (const int64_t[4]){0}, 32);
    refused_split(&spec, "new.npy is of type i8, but the training file");
    refused_new(&spec, "save it as uint8, too");
    spec.format = DATA_FORMAT_IDX;
    refused_new(&spec, "save it as uint8");
    put_array("new.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", (const uint8_t[4]){0}, 4);
    spec.format = DATA_FORMAT_CSV;
    refused_new(&spec, "which those of the training table are not; save it as float32");
    spec.format = DATA_FORMAT_NPY;
    spec.train.images = path_of("gone.npy");
    cr_assert_eq(dataset_open_inputs(path_of("new.npy"), &spec, NULL, &rows, NULL, &dataset, NULL), 0);
    dataset_free(dataset);
}

/* Also without the training file, by what is kept with the weights. */
Test(formats, new_npy_files_are_scaled_as_the_training_file_was, .init = make_place, .fini = remove_place)
{
    const struct training_facts of_bytes = {.input_scale = 255}, of_numbers = {.input_scale = 1};
    struct data_spec spec;
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    put_rows(&spec);
    dataset = opened(&spec, &rows);
    cr_expect_eq(dataset_facts(dataset)->input_scale, 1);
    dataset_free(dataset);
    cr_assert_eq(unlink(spec.train.images), 0);
    put_array("new.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", (const uint8_t[4]){0}, 4);
    cr_assert_eq(dataset_open_inputs(path_of("new.npy"), &spec, NULL, &rows, &of_bytes, &dataset, NULL), 0);
    dataset_free(dataset);
    cr_assert_eq(dataset_open_inputs(path_of("new.npy"), &spec, NULL, &rows, &of_numbers, &dataset, &error), -1);
    cr_expect(strstr(error.message, "is not uint8, whose values alone are divided by 255"), "%s", error.message);
}

static void refused_inputs(const char *name, const struct example_format *format, const char *words)
{
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open_inputs(path_of(name), &plain, NULL, format, NULL, &dataset, &error), -1);
    cr_assert(error.kind == ERROR_INVALID && strstr(error.message, words), "%s", error.message);
}

Test(formats, npy_inputs_without_labels, .init = make_place, .fini = remove_place)
{
    const float numbers[] = {0, 1, 2, 3, 4, 5, 6, -7};
    struct dataset *dataset = NULL;
    int64_t index = 1;
    float input[4];
    int32_t target = 5;
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", numbers, 32);
    cr_assert_eq(dataset_open_inputs(path_of("x.npy"), &plain, NULL, &images, NULL, &dataset, NULL), 0);
    cr_assert_eq(dataset_count(dataset), 2);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, NULL), 0);
    cr_assert(input[3] == -7.0f && target == 0);
    dataset_free(dataset);
    refused_inputs("x.npy", &text, "the model takes tokens");
    refused_inputs("x.npy", &cifar, "an example has 4 values, but the model's input 3072; change the file");
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", numbers, 16);
    refused_inputs("x.npy", &images, "give it a first dimension of 1");
    put_array("x.npy", "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 4), }", numbers, 8);
    refused_inputs("x.npy", &images, "save them as uint8");
}

static void put_text(const char *name, const char *words)
{
    put_file(name, words, strlen(words));
}

/* An escape in a word would reach the terminal by the log. */
Test(formats, control_characters_of_csv_labels_are_not_shown, .init = make_place, .fini = remove_place)
{
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    put_text("train.csv", "3,4,green\n1,2,\x1b[31mred\n5,6,green\n");
    put_text("test.csv", "7,8,\x1b[5mblue\n");
    struct dataset *dataset = opened(&spec, &rows);
    cr_expect(strstr(dataset_description(dataset), "classes ?[31mred, green"), "%s", dataset_description(dataset));
    dataset_free(dataset);
    spec.validation.files = path_of("test.csv");
    refused_split(&spec, "has the label \"?[5mblue\"");
}

/* Also of the columns' names, and after the file is closed. */
Test(formats, doubled_quotes_of_csv_stand_for_one, .init = make_place, .fini = remove_place)
{
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    put_text("train.csv", "\"a \"\"b\"\"\",c,kind\n3,4,\"say \"\"hi\"\"\"\n1,2,no\n5,6,\"say \"\"hi\"\"\"\n");
    struct dataset *dataset = opened(&spec, &rows);
    const struct training_facts *facts = dataset_facts(dataset);
    cr_expect_str_eq(json_string(json_first(facts->columns), ""), "a \"b\"");
    cr_expect_str_eq(json_string(json_next(json_first(facts->classes)), ""), "say \"hi\"");
    dataset_free(dataset);
}

/* The columns of new rows are told by their names, also if those are numbers. */
Test(formats, new_csv_rows, .init = make_place, .fini = remove_place)
{
    const struct data_spec spec = {.format = DATA_FORMAT_CSV};
    struct training_facts known = {.columns = json_new_array()};
    struct dataset *dataset = NULL;
    const int64_t index = 1;
    float inputs[2];
    int32_t target = 7;
    json_append_string(known.columns, "2019");
    json_append_string(known.columns, "2020");
    put_text("new.csv", "2020,2019\n1,2\n3,4\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &rows, &known, &dataset, NULL), 0);
    cr_expect(dataset_count(dataset) == 2 && dataset_is_table(dataset));
    cr_assert_eq(dataset_read(dataset, &index, 1, inputs, &target, NULL), 0);
    cr_expect(inputs[0] == 4 && inputs[1] == 3 && target == 0);
    dataset_free(dataset);
    put_text("new.csv", "1;2\n3;4\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &rows, &known, &dataset, NULL), 0);
    cr_assert_eq(dataset_read(dataset, &index, 1, inputs, &target, NULL), 0);
    cr_expect(inputs[0] == 3 && inputs[1] == 4);
    dataset_free(dataset);
    training_facts_release(&known);
}

/* Labels are found by the name that is kept with the weights, by data.labelColumn, or at the end. */
Test(formats, new_csv_rows_with_labels, .init = make_place, .fini = remove_place)
{
    static const struct {
        const char *table, *label_column, *kept;
    } cases[] = {{"kind,b,a\nx,1,2\ny,3,4\n", NULL, "kind"},
                 {"b,kind,a\n1,x,2\n3,y,4\n", "kind", NULL},
                 {"b,kind,a\n1,x,2\n3,y,4\n", "2", "kind"},
                 {"2,1,x\n4,3,y\n", NULL, NULL},
                 {"2,x,1\n4,y,3\n", "2", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct data_spec spec = {.format = DATA_FORMAT_CSV, .label_column = cases[i].label_column};
        struct training_facts known = {.columns = json_new_array(), .classes = json_new_array()};
        struct dataset *dataset = NULL;
        struct error error = ERROR_INIT;
        const int64_t index = 1;
        float inputs[2];
        int32_t target = 7;
        json_append_string(known.columns, "a");
        json_append_string(known.columns, "b");
        json_append_string(known.classes, "x");
        json_append_string(known.classes, "y");
        known.label = memory_copy_string(cases[i].kept);
        put_text("new.csv", cases[i].table);
        cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &rows, &known, &dataset, &error), 0, "%s: %s",
                     cases[i].table, error.message);
        cr_expect(dataset_has_targets(dataset));
        cr_assert_eq(dataset_read(dataset, &index, 1, inputs, &target, NULL), 0);
        cr_expect(inputs[0] == 4 && inputs[1] == 3 && target == 1, "%s", cases[i].table);
        dataset_free(dataset);
        put_text("new.csv", "a,b,kind\n1,2,x\n3,4,z\n");
        cr_expect_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &rows, &known, &dataset, &error), -1);
        training_facts_release(&known);
    }
}

static void refused_table(const char *words, const struct training_facts *known, const char *message)
{
    const struct data_spec spec = {.format = DATA_FORMAT_CSV};
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    put_text("new.csv", words);
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &rows, known, &dataset, &error), -1);
    cr_expect(error.kind == ERROR_INVALID && strstr(error.message, message), "%s", error.message);
}

Test(formats, new_csv_rows_that_do_not_fit_are_refused, .init = make_place, .fini = remove_place)
{
    struct training_facts known = {.columns = json_new_array()};
    json_append_string(known.columns, "width");
    json_append_string(known.columns, "height");
    refused_table("height,\x1b[2Jkind,width\n1,2,3\n", &known,
                  "has not learned from the column ?[2Jkind; leave it out");
    refused_table("width,length\n1,2\n", &known, "there is no column height, which the model has learned from");
    refused_table("width,width\n1,2\n", &known, "there is no column height");
    refused_table("1,2,3\n", &known, "line 1 has 3 columns, but the model takes 2; give those");
    refused_table("a,b,c\n1,2,3\n", NULL, "line 1 has 3 columns, but the model takes 2");
    refused_table("1,2\n3\n", NULL, "line 2 has 1 columns, those before it have 2");
    refused_table("1,2\n3,x\n", NULL, "line 2, column 2: \"x\" is not a number");
    refused_table("width,height\n", &known, "hold no examples");
    known.label = memory_copy_string("kind");
    refused_table("width,height,kind\n1,2,a\n", &known,
                  "has not learned from the column kind"); /* the classes are not known */
    known.classes = json_new_array();
    json_append_string(known.classes, "a");
    refused_table("width,height,kind\n1,2,a\n3,4,b\n", &known,
                  "line 3, column 3: no training example has the label \"b\"");
    refused_table("width,height,kind\n1,2,\n", &known, "the label is missing; fill it, or leave the column");
    refused_table("width,height,weight,kind\n1,2,3,a\n", &known,
                  "has not learned from the column weight; leave it out");
    training_facts_release(&known);
}

/* The label in the second column, a word; the classes of the file to test with are those of the training file. */
Test(formats, csv_tables, .init = make_place, .fini = remove_place)
{
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    struct dataset *dataset = NULL;
    int64_t indices[2] = {2, 0};
    float inputs[4], price;
    int32_t targets[2];
    put_text("train.csv", "a,kind,b\n1,rose,2\n3,aster,4\n\n5,\"rose\",-6e1\n");
    put_text("test.csv", "7,rose,8\n");
    spec.label_column = "kind";
    dataset = opened(&spec, &rows);
    cr_expect(strstr(dataset_description(dataset), "classes aster, rose"), "%s", dataset_description(dataset));
    cr_assert_eq(dataset_count(dataset), 3);
    cr_assert_eq(dataset_read(dataset, indices, 2, inputs, targets, NULL), 0);
    cr_expect(inputs[0] == 5 && inputs[1] == -60 && inputs[2] == 1 && targets[0] == 1 && targets[1] == 1);
    dataset_free(dataset);
    spec.label_column = "2";
    spec.validation.files = path_of("test.csv");
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &rows, &dataset, NULL), 0);
    cr_assert_eq(dataset_read(dataset, indices + 1, 1, inputs, targets, NULL), 0);
    cr_expect(inputs[1] == 8 && targets[0] == 1);
    dataset_free(dataset);
    struct example_format prices = rows;
    prices.target_type = ELEMENT_FLOAT32;
    prices.classes = 0;
    spec.label_column = NULL;
    put_text("train.csv", "1;2;3.5\n4;5;6\n");
    dataset = opened(&spec, &prices);
    cr_assert_eq(dataset_read(dataset, indices + 1, 1, inputs, &price, NULL), 0);
    cr_expect_eq(price, 3.5f);
    dataset_free(dataset);
}

static void expect_row(const struct dataset *dataset, int64_t index, const float wanted[4], int32_t class)
{
    float inputs[4];
    int32_t target;
    cr_assert_eq(dataset_read(dataset, &index, 1, inputs, &target, NULL), 0);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(inputs[i], wanted[i], "row %lld, value %d: %g", (long long)index, i, (double)inputs[i]);
    cr_expect_eq(target, class);
}

/* A size, one of the cities Oslo and Rome, and a boolean; the name is left out. */
Test(formats, csv_columns_of_words, .init = make_place, .fini = remove_place)
{
    struct example_format format = rows;
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    struct dataset *dataset = NULL;
    format.input_elements = 4;
    spec.skipped_columns = (const char *const[]){"name"};
    spec.skipped_column_count = 1;
    put_text("train.csv", "name,size,city,alone,kind\nAnn,1,Rome,yes,a\nBob,2,Oslo,no,b\nAnn,3,Rome,no,a\n");
    put_text("test.csv", "name,size,city,alone,kind\nCid,4,Bern,true,b\nDan,5,Oslo,false,a\n");
    dataset = opened(&spec, &format);
    expect_row(dataset, 0, (const float[]){1, 0, 1, 1}, 0);
    expect_row(dataset, 1, (const float[]){2, 1, 0, 0}, 1);
    cr_expect_str_eq(dataset_notice(dataset), "");
    cr_expect_eq(dataset_memory(dataset), 3 * 5 * 4);
    struct dataset_digests digests = dataset_digests(dataset);
    cr_expect_neq(digests.words[0], '\0');
    spec.validation.files = path_of("test.csv");
    struct dataset *test = NULL;
    cr_assert_eq(dataset_open_validation(&spec, NULL, dataset, &test, NULL), 0);
    expect_row(test, 0, (const float[]){4, 0, 0, 1}, 1);
    cr_expect_str_eq(dataset_notice(test),
                     "line 2, column 3: the training table does not have the word \"Bern\" there, which "
                     "counts as none of its words");
    cr_expect_str_eq(dataset_digests(test).words, digests.words);
    dataset_free(test);

    /* New rows become numbers by what is kept with the weights. */
    SCOPED_JSON *kept = json_new_object();
    struct training_facts known;
    training_facts_write(dataset_facts(dataset), kept);
    training_facts_read(&known, kept);
    dataset_free(dataset);
    cr_assert_eq(unlink(path_of("train.csv")), 0);
    put_text("new.csv", "alone,city,name,size\nno,Rome,Eve,7\nyes,Bern,Fay,8\nyes,Bonn,Gil,8\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, NULL), 0);
    expect_row(dataset, 0, (const float[]){7, 0, 1, 0}, 0);
    expect_row(dataset, 1, (const float[]){8, 0, 0, 1}, 0);
    cr_expect(strstr(dataset_notice(dataset), "\"Bern\"") &&
                  strstr(dataset_notice(dataset), "; 2 fields have such words"),
              "%s", dataset_notice(dataset));
    dataset_free(dataset);
    spec.skipped_columns = (const char *const[]){"1"}; /* its place, as for names that are empty or have spaces */
    put_text("new.csv", ",size,city,alone\nEve,7,Rome,no\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, NULL), 0);
    expect_row(dataset, 0, (const float[]){7, 0, 1, 0}, 0);
    dataset_free(dataset);
    put_text("new.csv", "Eve,7,Rome,no,b\nFay,8,Oslo,true,a\n"); /* all columns, which have no names */
    known.columns = (json_free(known.columns), NULL);
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, NULL), 0);
    expect_row(dataset, 1, (const float[]){8, 1, 0, 1}, 0);
    cr_expect(dataset_has_targets(dataset));
    dataset_free(dataset);
    /* The first row looks like names. */
    put_text("new.csv", "7,Rome,no\n8,Oslo,yes\n9,Oslo,yes\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, NULL), 0);
    cr_expect_eq(dataset_count(dataset), 3);
    dataset_free(dataset);
    struct error error = ERROR_INIT;
    put_text("new.csv", "7,Rome,perhaps\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, &error), -1);
    cr_expect(strstr(error.message, "line 1, column 3: \"perhaps\" is neither true nor false"), "%s", error.message);
    put_text("new.csv", "7,,yes\n,Rome,no\n");
    cr_assert_eq(dataset_open_inputs(path_of("new.csv"), &spec, NULL, &format, &known, &dataset, &error), -1);
    cr_expect(strstr(error.message,
                     "values are missing in column 1 (1 of 2, the first in line 2), column 2 (1 of 2, the first in "
                     "line 1); fill them, or leave the rows out"),
              "%s", error.message);
    training_facts_release(&known);
}

/* Other words in the same places would be taken for one another. */
Test(formats, csv_words_that_have_changed_have_another_digest, .init = make_place, .fini = remove_place)
{
    struct example_format format = rows;
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    format.input_elements = 3;
    put_text("train.csv", "1,Rome,a\n2,Oslo,b\n");
    struct dataset *dataset = opened(&spec, &format);
    struct dataset_digests before = dataset_digests(dataset);
    dataset_free(dataset);
    put_text("train.csv", "1,Rome,a\n2,Bern,b\n");
    dataset = opened(&spec, &format);
    cr_expect_str_neq(dataset_digests(dataset).words, before.words);
    cr_expect_str_eq(dataset_digests(dataset).classes, before.classes);
    dataset_free(dataset);
    put_text("train.csv", "1,Rome,a\n2,Bern,b\n3,Oslo,a\n");
    refused(
        &spec, &format, ERROR_INVALID,
        "the table has 2 columns besides the label, in which each different word takes a value of its own, the model's "
        "input has 3 values; make model.inputShape [4]");
}

Test(formats, csv_files_with_other_columns_than_the_training_table_are_refused, .init = make_place,
     .fini = remove_place)
{
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    struct dataset *dataset = NULL;
    struct error error = {.kind = ERROR_NONE};
    put_text("train.csv", "a,b,kind\n1,2,rose\n3,4,aster\n");
    put_text("test.csv", "b,a,kind\n2,1,rose\n");
    spec.validation.files = path_of("test.csv");
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &rows, &dataset, &error), -1);
    cr_expect(strstr(error.message, "test.csv: line 1 calls column 1 b, but the training table calls it a"), "%s",
              error.message);
    put_text("test.csv", "kind,a,b\nrose,1,2\n");
    spec.label_column = "kind";
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &rows, &dataset, NULL), 0);
    dataset_free(dataset);
    put_text("train-2.csv", "b,a,kind\n2,1,rose\n");
    spec.train.files = path_of("train*.csv");
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_TRAIN, &rows, &dataset, &error), -1);
    cr_expect(strstr(error.message, "but the training table calls it"), "%s", error.message);
}

/* The words of a row that is left out count for nothing, and a column that the model does not get may lack any. */
Test(formats, csv_rows_with_missing_values_are_left_out_if_the_job_says_so, .init = make_place, .fini = remove_place)
{
    struct example_format format = rows;
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    struct dataset *dataset = NULL;
    format.input_elements = 4;
    spec.missing = DATA_MISSING_DROP_ROW;
    spec.skipped_columns = (const char *const[]){"deck"};
    spec.skipped_column_count = 1;
    put_text("train.csv", "size,city,deck,kind\n1,Rome,,a\n,Bern,x,a\n2,Oslo,y,b\n3,NA,z,b\n4,Rome,,\n5,Kiel,?,a\n");
    dataset = opened(&spec, &format);
    cr_expect_eq(dataset_count(dataset), 3);
    expect_row(dataset, 1, (const float[]){2, 0, 1, 0}, 1);
    expect_row(dataset, 2, (const float[]){5, 1, 0, 0}, 0);
    cr_expect(strstr(dataset_description(dataset), "without 3 rows with missing values"), "%s",
              dataset_description(dataset));
    dataset_free(dataset);
    put_text("test.csv", "size,city,deck,kind\n?,Rome,w,a\n7,Oslo,w,b\n");
    spec.validation.files = path_of("test.csv");
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &format, &dataset, NULL), 0);
    cr_expect_eq(dataset_count(dataset), 1);
    expect_row(dataset, 0, (const float[]){7, 0, 1, 0}, 1);
    dataset_free(dataset);
    put_text("train.csv", "size,city,deck,kind\n1,,x,a\n,Bern,x,a\n");
    refused(&spec, &format, ERROR_INVALID, "values are missing in all rows, so that data.missing: DropRow leaves none");
}

Test(formats, csv_tables_that_cannot_be_read_name_line_and_column, .init = make_place, .fini = remove_place)
{
    static const struct {
        const char *text, *words;
    } tables[] = {
        {"1,2,0\n1,x,1\n", "train.csv: line 2, column 2: \"x\" is not a number"},
        {"1,2,0\n,2,1\n",
         "train.csv: values are missing in column 1 (1 of 2, the first in line 2); correct the table, or leave "
         "columns out: data.skipColumns: [1]; data.missing: DropRow leaves out the rows with missing "
         "values instead"},
        {"1,2,0\n1,-1e40,1\n", "line 2, column 2: -1e+40 is too large for a float32"},
        {"1,2,0\n1,2,\n", "line 2, column 3: the label is missing"},
        {"1,2,0\n1,2\n", "line 2 has 2 columns, those before it have 3"},
        {"1,2,3,0\n", "make model.inputShape [3]"},
        {"1,2,0\n1,2,1\n1,2,2\n", "make model.classes 3, or the units of the last one of model.layers"},
        {"a,b,c\n", "hold no examples"},
        {"1\n", "one column"},
    };
    struct data_spec spec = spec_of(DATA_FORMAT_CSV, path_of("train.csv"));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        put_text("train.csv", tables[i].text);
        refused(&spec, &rows, ERROR_INVALID, tables[i].words);
    }
    put_text("train.csv", "1,2,0\n1,2,1\n");
    spec.label_column = "kind";
    refused(&spec, &rows, ERROR_INVALID, "no column kind among the 3");
    refused(&spec, &text, ERROR_INVALID, "CSV gives rows");
}

/* A program of two words, below 9, and a price. */
static const struct example_format offers = {
    .input_type = ELEMENT_INT32,
    .input_elements = 3,
    .target_type = ELEMENT_INT32,
    .target_elements = 1,
    .classes = 10,
    .input_count = 2,
    .inputs = {{"words", ELEMENT_INT32, 2, 9, {1, {2}}}, {"price", ELEMENT_FLOAT32, 1, 0, {0, {0}}}}};

static void put_offers(void)
{
    static const int16_t words[] = {1, 2, 3, 4, 9, -1};
    static const float prices[] = {0.5f, 1.5f, 2.5f};
    static const uint8_t labels[] = {7, 8, 9};
    put_array("w.npy", "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }", words, sizeof words);
    put_array("p.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", prices, sizeof prices);
    put_array("y.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", labels, sizeof labels);
}

static struct data_spec spec_of_offers(struct data_input inputs[2])
{
    struct data_spec spec = spec_of(DATA_FORMAT_NPY, NULL);
    inputs[0] = (struct data_input){"price", path_of("p.npy")};
    inputs[1] = (struct data_input){"words", path_of("w.npy")};
    spec.train.inputs = inputs;
    spec.train.input_count = 2;
    spec.train.labels = path_of("y.npy");
    return spec;
}

Test(formats, npy_inputs_of_a_program_lie_behind_each_other, .init = make_place, .fini = remove_place)
{
    struct data_input inputs[2];
    struct data_spec spec = spec_of_offers(inputs);
    put_offers();
    struct dataset *dataset = opened(&spec, &offers);
    cr_expect_str_eq(dataset_description(dataset), "records of 2 inputs from w.npy, p.npy");
    const int64_t indices[2] = {1, 0};
    union {
        int32_t integer;
        float number;
    } values[6];
    int32_t targets[2];
    cr_assert_eq(dataset_read(dataset, indices, 2, values, targets, NULL), 0);
    cr_expect(values[0].integer == 3 && values[1].integer == 4 && values[2].number == 1.5f);
    cr_expect(values[3].integer == 1 && values[4].integer == 2 && values[5].number == 0.5f);
    cr_expect(targets[0] == 8 && targets[1] == 7);
    unreadable(dataset, 2, "w.npy: example 2: value 0 is 9, but the input words of the model takes 0 to 8");
    dataset_free(dataset);
    struct example_format any = offers;
    any.inputs[0].vocabulary = 0;
    dataset = opened(&spec, &any);
    const int64_t last = 2;
    cr_assert_eq(dataset_read(dataset, &last, 1, values, targets, NULL), 0);
    cr_expect(values[0].integer == 9 && values[1].integer == -1 && values[2].number == 2.5f);
    dataset_free(dataset);
    const int64_t large[] = {1, 2, 3, INT64_C(1) << 31, 5, 6};
    put_array("w.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", large, sizeof large);
    dataset = opened(&spec, &any);
    unreadable(dataset, 1, "value 1 is 2147483648, but the input words of the model takes -2147483648 to 2147483647");
    dataset_free(dataset);
}

Test(formats, npy_inputs_hold_out_the_same_examples_of_each_file, .init = make_place, .fini = remove_place)
{
    struct data_input inputs[2];
    struct data_spec spec = spec_of_offers(inputs);
    struct dataset *dataset;
    struct example_format any = offers;
    float values[3];
    int32_t target;
    const int64_t first = 0;
    put_offers();
    spec.validation.last = 1;
    any.inputs[0].vocabulary = 0;
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &any, &dataset, NULL), 0);
    cr_assert_eq(dataset_count(dataset), 1);
    cr_assert_eq(dataset_read(dataset, &first, 1, values, &target, NULL), 0);
    cr_expect(values[2] == 2.5f && target == 9);
    dataset_free(dataset);
    spec.validation = spec.train;
    spec.validation.labels = path_of("w.npy");
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open(&spec, NULL, SPLIT_VALIDATION, &offers, &dataset, &error), -1);
    cr_expect(strstr(error.message, "2 labels for an example, but the model takes 1"), "%s", error.message);
}

Test(formats, npy_inputs_that_do_not_fit_are_refused, .init = make_place, .fini = remove_place)
{
    struct data_input inputs[2];
    struct data_spec spec = spec_of_offers(inputs);
    static const double doubles[] = {1, 2, 3};
    put_offers();
    inputs[0].name = "prize";
    refused(&spec, &offers, ERROR_INVALID, "data.train.inputs: the model has no input prize; it takes words and price");
    inputs[0].name = "price";
    spec.train.input_count = 1;
    refused(&spec, &offers, ERROR_INVALID,
            "data.train.inputs: there is no file for the input words of the model; it takes words and price");
    refused(&spec, &images, ERROR_INVALID, "data.train.inputs is for programs");
    spec.train.input_count = 0;
    spec.train.images = path_of("p.npy");
    refused(&spec, &offers, ERROR_INVALID, "takes words and price; name a file for each of them in data.train.inputs");
    spec = spec_of_offers(inputs);
    inputs[1].file = path_of("p.npy");
    refused(&spec, &offers, ERROR_INVALID, "p.npy has values of type f4, but the input words of the model is int32");
    inputs[1].file = path_of("y.npy");
    refused(&spec, &offers, ERROR_INVALID,
            "y.npy has 1 values for each example, but the input words of the model takes 2");
    inputs[1].file = path_of("none.npy");
    refused(&spec, &offers, ERROR_NOT_FOUND, "none.npy");
    inputs[1].file = path_of("w.npy");
    put_array("p.npy", "{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }", doubles, sizeof doubles);
    refused(&spec, &offers, ERROR_INVALID, "p.npy has values of type f2, but the input price of the model is float32");
    put_array("p.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", doubles, 8);
    refused(&spec, &offers, ERROR_INVALID, "w.npy has 3 examples, but ");
    spec = spec_of(DATA_FORMAT_SYNTHETIC, NULL);
    spec.examples = 3;
    refused(&spec, &offers, ERROR_INVALID,
            "data.format Synthetic gives each example one input, but the model takes 2, such as words");
}

/* As many values in another order are not what the model takes; a dimension of 1, or joined ones, change no order. */
Test(formats, the_order_of_an_example_is_the_models, .init = make_place, .fini = remove_place)
{
    static const struct {
        struct example_shape wanted;
        const char *stored, *refusal;
    } orders[] = {
        {{3, {3, 2, 4}},
         "2, 4, 3",
         "the images are 2x4x3, but the model takes 3x2x4, as many values in another order; make the "
         "model take 2x4x3 (export: channels_first=True), or store the images as 3x2x4"},
        {{3, {2, 4, 3}}, "3, 2, 4", "make the model take 3x2x4, or store the images as 2x4x3"},
        {{2, {4, 6}}, "6, 4", "the images are 6x4, but the model takes 4x6"},
        {{2, {4, 6}}, "3, 8", "the images are 3x8, but the model takes 4x6"},
        {{3, {2, 4, 3}}, "2, 4, 3", NULL},
        {{3, {2, 4, 3}}, "1, 2, 4, 3, 1", NULL},
        {{3, {1, 4, 6}}, "4, 6", NULL},
        {{3, {4, 6, 1}}, "1, 4, 6", NULL},
        {{2, {4, 6}}, "24", NULL},
        {{1, {24}}, "4, 6", NULL},
        {{2, {8, 3}}, "2, 4, 3", NULL},
        {{3, {2, 4, 3}}, "2, 12", NULL},
        {{0, {0}}, "4, 6", NULL},
    };
    static const uint8_t values[24], classes[1];
    struct data_spec spec = spec_of(DATA_FORMAT_NPY, NULL);
    spec.train.images = path_of("x.npy");
    spec.train.labels = path_of("y.npy");
    put_array("y.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", classes, 1);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        char dictionary[128];
        struct example_format format = images;
        format.input_elements = 24;
        format.input_shape = orders[i].wanted;
        snprintf(dictionary, sizeof dictionary, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, %s), }",
                 orders[i].stored);
        put_array("x.npy", dictionary, values, sizeof values);
        if (orders[i].refusal)
            refused(&spec, &format, ERROR_INVALID, orders[i].refusal);
        else
            dataset_free(opened(&spec, &format));
    }
}

Test(formats, labels_and_cifar10_have_an_order_too, .init = make_place, .fini = remove_place)
{
    static const float values[6];
    static const uint8_t record[3073];
    struct data_spec spec = spec_of(DATA_FORMAT_NPY, NULL);
    spec.train.images = spec.train.labels = path_of("x.npy");
    put_array("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", values, sizeof values);
    struct example_format maps = {.input_elements = 6, .target_elements = 6, .target_shape = {2, {2, 3}}};
    dataset_free(opened(&spec, &maps));
    maps.target_shape = (struct example_shape){2, {3, 2}};
    refused(&spec, &maps, ERROR_INVALID, "the labels are 2x3, but the model takes 3x2");
    put_file("batch.bin", record, sizeof record);
    spec = spec_of(DATA_FORMAT_CIFAR10, path_of("batch.bin"));
    struct example_format planes = cifar;
    planes.input_shape = (struct example_shape){3, {3, 32, 32}};
    refused(&spec, &planes, ERROR_INVALID, "the images are 32x32x3, but the model takes 3x32x32");
}

Test(formats, tfrecords_by_the_names_of_their_features, .init = make_place, .fini = remove_place)
{
    uint8_t file[1024], example[256];
    size_t end = 0;
    for (uint8_t i = 0; i < 3; i++) {
        const uint8_t pixels[] = {i, 1, 2, 3};
        end += put_record(file + end, example, put_example(example, pixels, sizeof pixels, (uint8_t)(4 + i)));
    }
    put_file("a.tfrecord", file, end);
    const float numbers[] = {1, 2, 3, 4};
    size_t length = put_example(example, numbers, sizeof numbers, 9);
    end = put_record(file, example, length);
    example[length - 1] = 77; /* a class too high */
    end += put_record(file + end, example, length);
    put_file("b.tfrecord", file, end);
    struct data_spec spec = spec_of(DATA_FORMAT_TFRECORD, path_of("*.tfrecord"));
    struct dataset *dataset = opened(&spec, &images);
    cr_assert_eq(dataset_count(dataset), 5);
    int64_t indices[2] = {2, 3};
    float inputs[8];
    int32_t targets[2];
    cr_assert_eq(dataset_read(dataset, indices, 2, inputs, targets, NULL), 0);
    cr_assert(targets[0] == 6 && targets[1] == 9 && inputs[0] == 2.0f / 255.0f && inputs[7] == 4.0f);
    unreadable(dataset, 4, "b.tfrecord: record 1: feature label: value 0 is 77, but the model's classes are 0 to 9");
    dataset_free(dataset);
    struct example_format ignoring = images;
    ignoring.ignores = true;
    ignoring.ignored = 77;
    dataset = opened(&spec, &ignoring);
    cr_assert_eq(dataset_read(dataset, &(int64_t){4}, 1, inputs, targets, NULL), 0);
    cr_expect_eq(targets[0], 77);
    dataset_free(dataset);
    spec.image_feature = "picture";
    dataset = opened(&spec, &images);
    unreadable(dataset, 0, "no feature called picture");
    dataset_free(dataset);
    spec.image_feature = NULL;
    end = put_record(file, example, put_example(example, "\x89PNG......", 10, 1));
    put_file("b.tfrecord", file, end);
    dataset = opened(&spec, &images);
    unreadable(dataset, 3, "compressed picture");
    dataset_free(dataset);
    const float wrong[] = {1, -INFINITY, 3, 4};
    put_file("b.tfrecord", file, put_record(file, example, put_example(example, wrong, sizeof wrong, 9)));
    dataset = opened(&spec, &images);
    unreadable(dataset, 3, "record 0: feature image: value 1 is -inf");
    dataset_free(dataset);
    end = put_record(file, example, put_example(example, "\x89PNG......", 10, 1));
    file[14] ^= 1;
    put_file("b.tfrecord", file, end);
    dataset = opened(&spec, &images);
    unreadable(dataset, 3, "CRC of a record's data");
    dataset_free(dataset);
    put_file("b.tfrecord", file, end - 1);
    refused(&spec, &images, ERROR_CORRUPT, "file ends before");
    put_file("b.tfrecord", "not a file of records", 21);
    refused(&spec, &images, ERROR_CORRUPT, "is it a TFRecord file?");
}

/* A record of a program: two words, a price, a label, each a feature with its name. */
static size_t put_offer(uint8_t *to, const uint8_t words[2], float price, const char *price_name, uint8_t label)
{
    uint8_t features[256], packed[] = {1 << 3 | 2, 2, words[0], words[1]}, class[] = {1 << 3 | 2, 1, label};
    uint8_t number[2 + sizeof price];
    size_t at = put_feature(features, "words", 3, packed, sizeof packed);
    at += put_feature(features + at, price_name, 2, number, put_field(number, 1, &price, sizeof price));
    at += put_feature(features + at, "label", 3, class, sizeof class);
    return put_field(to, 1, features, at);
}

Test(formats, tfrecord_features_are_the_inputs_of_a_program, .init = make_place, .fini = remove_place)
{
    uint8_t file[1024], example[256];
    struct data_spec spec = spec_of(DATA_FORMAT_TFRECORD, path_of("a.tfrecord"));
    size_t end = put_record(file, example, put_offer(example, (uint8_t[]){3, 4}, 1.5f, "price", 7));
    end += put_record(file + end, example, put_offer(example, (uint8_t[]){3, 9}, 2.5f, "price", 8));
    end += put_record(file + end, example, put_offer(example, (uint8_t[]){1, 2}, 2.5f, "cost", 8));
    put_file("a.tfrecord", file, end);
    struct dataset *dataset = opened(&spec, &offers);
    cr_expect_str_eq(dataset_description(dataset), "records of 2 inputs from a.tfrecord (mapped)");
    union {
        int32_t integer;
        float number;
    } values[3];
    int32_t target;
    const int64_t first = 0;
    cr_assert_eq(dataset_read(dataset, &first, 1, values, &target, NULL), 0);
    cr_expect(values[0].integer == 3 && values[1].integer == 4 && values[2].number == 1.5f && target == 7);
    unreadable(dataset, 1, "record 1: feature words: value 1 is 9, but the model takes 0 to 8");
    unreadable(dataset, 2, "no feature called price");
    dataset_free(dataset);
    spec.image_feature = "words";
    refused(&spec, &offers, ERROR_INVALID, "data.imageFeature is for models with one input, but this one takes 2");
}

/* An only input is the feature that imageFeature names, also one of integers; labels may be numbers. */
Test(formats, tfrecord_feature_is_an_only_input_of_a_program, .init = make_place, .fini = remove_place)
{
    uint8_t file[1024], example[256];
    struct data_spec spec = spec_of(DATA_FORMAT_TFRECORD, path_of("a.tfrecord"));
    struct example_format priced = offers;
    put_file("a.tfrecord", file, put_record(file, example, put_offer(example, (uint8_t[]){3, 4}, 1.5f, "price", 7)));
    priced.input_count = 1;
    priced.input_elements = 2;
    priced.target_type = ELEMENT_FLOAT32;
    priced.classes = 0;
    spec.image_feature = "words";
    spec.label_feature = "price";
    struct dataset *dataset = opened(&spec, &priced);
    int32_t words[2];
    float price;
    const int64_t first = 0;
    cr_assert_eq(dataset_read(dataset, &first, 1, words, &price, NULL), 0);
    cr_expect(words[0] == 3 && words[1] == 4 && price == 1.5f);
    dataset_free(dataset);
}

/* XLA would read past the end of a table of embeddings without a word. */
Test(formats, texts_fit_the_vocabulary_of_a_program, .init = make_place, .fini = remove_place)
{
    uint8_t bytes[2048];
    struct example_format small = text;
    small.input_count = 1;
    small.inputs[0] = (struct example_input){.name = "tokens", .type = ELEMENT_INT32, .elements = 3, .vocabulary = 505};
    put_file("a.bin", bytes, put_tokens(bytes, 20240520, 1, 9, 2));
    struct data_spec spec = spec_of(DATA_FORMAT_TOKENS, path_of("a.bin"));
    struct dataset *dataset = opened(&spec, &small);
    unreadable(dataset, 1, "vocabulary has 505; export the program with a larger one");
    dataset_free(dataset);
    small.inputs[0].vocabulary = 255;
    put_file("text.txt", "some text", 9);
    spec = spec_of(DATA_FORMAT_BYTES, NULL);
    spec.train.text = path_of("text.txt");
    refused(&spec, &small, ERROR_INVALID, "data.format Bytes gives windows of bytes");
    small.inputs[0].vocabulary = 256;
    dataset_free(opened(&spec, &small));
}

static void validation_refused(const struct data_spec *spec, const struct example_format *format, const char *words)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_expect_eq(dataset_open(spec, NULL, SPLIT_VALIDATION, format, &dataset, &error), -1);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(formats, refusals_of_validation_files_name_data_validation, .init = make_place, .fini = remove_place)
{
    static const struct example_format bytes = {.input_type = ELEMENT_INT32,
                                                .input_elements = 3,
                                                .target_type = ELEMENT_INT32,
                                                .target_elements = 3,
                                                .classes = 256};
    static const uint8_t two_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t no_images[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2};
    static const uint8_t one_label[] = {0, 0, 8, 1, 0, 0, 0, 1, 3}, no_labels[] = {0, 0, 8, 1, 0, 0, 0, 0};
    struct data_spec spec = spec_of(DATA_FORMAT_IDX, NULL);
    put_file("two", two_images, sizeof two_images);
    put_file("none", no_images, sizeof no_images);
    put_file("one.labels", one_label, sizeof one_label);
    put_file("none.labels", no_labels, sizeof no_labels);
    put_file("empty", "", 0);
    spec.validation.images = path_of("two");
    validation_refused(&spec, &images, "data.validation: format IDX needs images and labels");
    spec.validation.labels = path_of("one.labels");
    validation_refused(&spec, &images, "data.validation: 2 images but 1 labels");
    spec.validation.images = path_of("none");
    spec.validation.labels = path_of("none.labels");
    validation_refused(&spec, &images, "data.validation: the files hold no examples");

    spec = spec_of(DATA_FORMAT_BYTES, NULL);
    spec.validation.text = path_of("one.labels");
    struct example_format long_context = bytes;
    long_context.input_elements = long_context.target_elements = 9;
    validation_refused(&spec, &long_context, "data.validation.text holds 9 bytes");
    spec.validation.text = NULL;
    spec.validation.files = path_of("two");
    validation_refused(&spec, &bytes, "data.validation.text is missing; the format Bytes needs it");

    static uint8_t tokens[1024];
    put_file("no.tokens", tokens, put_tokens(tokens, 20240520, 1, 0, 2));
    spec = spec_of(DATA_FORMAT_TOKENS, NULL);
    spec.validation.files = path_of("no.tokens");
    validation_refused(&spec, &text, "data.validation.files: every file is too short");
    spec.validation.files = NULL;
    spec.validation.text = path_of("two");
    validation_refused(&spec, &text, "data.validation: this format needs files");

    spec = spec_of(DATA_FORMAT_TFRECORD, NULL);
    spec.validation.files = path_of("empty");
    validation_refused(&spec, &images, "data.validation.files hold no record");
}
