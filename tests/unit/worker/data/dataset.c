/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/dataset.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/philox.h"

static const struct example_format digits = {.input_type = ELEMENT_FLOAT32,
                                             .input_elements = 4,
                                             .target_type = ELEMENT_INT32,
                                             .target_elements = 1,
                                             .classes = 10};
static const struct example_format text = {.input_type = ELEMENT_INT32,
                                           .input_elements = 5,
                                           .target_type = ELEMENT_INT32,
                                           .target_elements = 5,
                                           .classes = 256};

struct place {
    char directory[64];
    char images[96], labels[96], text[96];
};

static struct place make_place(void)
{
    struct place place = {.directory = "/tmp/coxswain-dataset-XXXXXX"};
    cr_assert_not_null(mkdtemp(place.directory));
    snprintf(place.images, sizeof place.images, "%s/images", place.directory);
    snprintf(place.labels, sizeof place.labels, "%s/labels", place.directory);
    snprintf(place.text, sizeof place.text, "%s/text", place.directory);
    return place;
}

static void remove_place(const struct place *place)
{
    unlink(place->images);
    unlink(place->labels);
    unlink(place->text);
    rmdir(place->directory);
}

static void write_plain(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void write_gzip(const char *path, const void *bytes, size_t length)
{
    gzFile file = gzopen(path, "wb");
    cr_assert_eq(gzwrite(file, bytes, (unsigned)length), (int)length);
    gzclose(file);
}

/* Eight images of 2 x 2: pixel p of image i is 10 i + p; its label is i. */
static void write_digits(const struct place *place, void (*write)(const char *, const void *, size_t))
{
    uint8_t images[16 + 32] = {0, 0, 8, 3, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 2};
    uint8_t labels[8 + 8] = {0, 0, 8, 1, 0, 0, 0, 8};
    for (int i = 0; i < 8; i++) {
        labels[8 + i] = (uint8_t)i;
        for (int p = 0; p < 4; p++)
            images[16 + 4 * i + p] = (uint8_t)(10 * i + p);
    }
    write(place->images, images, sizeof images);
    write(place->labels, labels, sizeof labels);
}

static struct data_spec spec_of(const struct place *place, enum data_format format)
{
    return (struct data_spec){
        .format = format,
        .train = {place->images, place->labels, place->text, FIELD_UNSET, FIELD_UNSET, NULL},
        .validation = {NULL, NULL, NULL, FIELD_UNSET, FIELD_UNSET, NULL},
        .examples = FIELD_UNSET,
    };
}

static struct dataset *open_split(const struct data_spec *spec, enum dataset_split split,
                                  const struct example_format *format)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_assert_eq(dataset_open(spec, NULL, split, format, &dataset, &error), 0, "%s", error.message);
    return dataset;
}

static void check_digits(const struct place *place, const char *how)
{
    struct data_spec spec = spec_of(place, DATA_FORMAT_IDX);
    spec.validation.last = 3;
    struct dataset *train = open_split(&spec, SPLIT_TRAIN, &digits);
    struct dataset *held_out = open_split(&spec, SPLIT_VALIDATION, &digits);
    cr_assert_eq(dataset_count(train), 5);
    cr_assert_eq(dataset_count(held_out), 3);
    cr_assert(strstr(dataset_description(train), how), "%s", dataset_description(train));
    int64_t indices[2] = {2, 0};
    float inputs[8];
    int32_t targets[2];
    cr_assert_eq(dataset_read(held_out, indices, 2, inputs, targets, NULL), 0);
    cr_assert_eq(targets[0], 7);
    cr_assert_eq(targets[1], 5);
    cr_assert_eq(inputs[1], 71.0f / 255.0f);
    cr_assert_eq(inputs[4], 50.0f / 255.0f);
    dataset_free(train);
    dataset_free(held_out);
}

Test(dataset, idx_files_plain_and_gzipped)
{
    struct place place = make_place();
    write_digits(&place, write_plain);
    check_digits(&place, "mapped");
    write_digits(&place, write_gzip);
    check_digits(&place, "inflated into memory");
    remove_place(&place);
}

static void refused(const struct data_spec *spec, const struct example_format *format, enum error_kind kind,
                    const char *words)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_expect_eq(dataset_open(spec, NULL, SPLIT_TRAIN, format, &dataset, &error), -1);
    cr_expect_eq(error.kind, kind, "%s: %s", error_kind_name(error.kind), error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(dataset, bad_idx_files_are_named)
{
    struct place place = make_place();
    struct data_spec spec = spec_of(&place, DATA_FORMAT_IDX);
    refused(&spec, &digits, ERROR_NOT_FOUND, place.images);
    write_digits(&place, write_plain);

    uint8_t nine[8 + 9] = {0, 0, 8, 1, 0, 0, 0, 9};
    write_plain(place.labels, nine, sizeof nine);
    refused(&spec, &digits, ERROR_INVALID, "8 images but 9 labels");

    uint8_t beyond[8 + 8] = {0, 0, 8, 1, 0, 0, 0, 8, 0, 10};
    write_plain(place.labels, beyond, sizeof beyond);
    refused(&spec, &digits, ERROR_INVALID, "/labels: label 1 is 10");

    struct example_format larger = digits;
    larger.input_elements = 784;
    refused(&spec, &larger, ERROR_INVALID, "an image has 4 values");
    refused(&spec, &text, ERROR_INVALID, "gpt-bytes");

    uint8_t lying[16 + 6] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}, one[8 + 1] = {0, 0, 8, 1, 0, 0, 0, 1};
    struct example_format standing = digits;
    standing.input_elements = 6;
    standing.input_shape = (struct example_shape){3, {3, 2, 1}};
    write_plain(place.images, lying, sizeof lying);
    write_plain(place.labels, one, sizeof one);
    refused(&spec, &standing, ERROR_INVALID, "the images are 2x3, but the model takes 3x2x1");

    struct data_spec swapped = spec;
    swapped.train.images = place.labels;
    refused(&swapped, &digits, ERROR_INVALID, "mixed up");
    remove_place(&place);
}

Test(dataset, a_truncated_gzip_file_is_corrupt)
{
    struct place place = make_place();
    write_digits(&place, write_gzip);
    cr_assert_eq(truncate(place.images, 30), 0);
    struct data_spec spec = spec_of(&place, DATA_FORMAT_IDX);
    refused(&spec, &digits, ERROR_CORRUPT, "damaged or cut off (unexpected end of file)");
    remove_place(&place);
}

Test(dataset, bytes_are_windows_with_the_next_byte_as_target)
{
    struct place place = make_place();
    write_plain(place.text, "abcdefghijklm", 13);
    struct data_spec spec = spec_of(&place, DATA_FORMAT_BYTES);
    struct dataset *dataset = open_split(&spec, SPLIT_TRAIN, &text);
    cr_assert_eq(dataset_count(dataset), 2);
    int64_t index = 1;
    int32_t inputs[5], targets[5];
    cr_assert_eq(dataset_read(dataset, &index, 1, inputs, targets, NULL), 0);
    cr_assert_eq(inputs[0], 'f');
    cr_assert_eq(targets[0], 'g');
    cr_assert_eq(targets[4], 'k');
    dataset_free(dataset);

    write_plain(place.text, "abcde", 5);
    refused(&spec, &text, ERROR_INVALID, "holds 5 bytes");
    refused(&spec, &digits, ERROR_INVALID, "format IDX");
    remove_place(&place);
}

Test(dataset, synthetic_examples_are_a_function_of_the_index)
{
    struct data_spec spec = spec_of(&(struct place){.directory = ""}, DATA_FORMAT_SYNTHETIC);
    spec.examples = 100;
    struct dataset *dataset = open_split(&spec, SPLIT_TRAIN, &digits);
    int64_t indices[2] = {42, 42};
    float inputs[8];
    int32_t targets[2];
    cr_assert_eq(dataset_count(dataset), 100);
    cr_assert_eq(dataset_read(dataset, indices, 2, inputs, targets, NULL), 0);
    cr_assert_eq(memcmp(inputs, inputs + 4, 16), 0);
    cr_assert_eq(targets[0], targets[1]);
    dataset_free(dataset);
}

/* Values do not depend on how many are drawn at a time. */
Test(dataset, synthetic_values_are_those_of_their_words)
{
    static const struct example_format wide = {.input_type = ELEMENT_FLOAT32,
                                               .input_elements = 77,
                                               .target_type = ELEMENT_INT32,
                                               .target_elements = 1,
                                               .classes = 10};
    struct data_spec spec = spec_of(&(struct place){.directory = ""}, DATA_FORMAT_SYNTHETIC);
    struct dataset *dataset = open_split(&spec, SPLIT_TRAIN, &wide);
    int64_t index = 6;
    float inputs[77];
    int32_t target;
    cr_assert_eq(dataset_read(dataset, &index, 1, inputs, &target, NULL), 0);
    for (uint64_t i = 0; i < 77; i++) {
        float pattern = (float)(philox(1, i, (uint64_t)target).word[0] >> 8) / 16777216.0f;
        float noise = (float)(philox(2, i, 6).word[0] >> 8) / 16777216.0f;
        cr_assert_eq(inputs[i], 0.5f * pattern + 0.5f * noise);
    }
    dataset_free(dataset);
}

Test(dataset, a_split_that_leaves_nothing_is_refused)
{
    struct place place = make_place();
    write_digits(&place, write_plain);
    struct data_spec spec = spec_of(&place, DATA_FORMAT_IDX);
    spec.validation.last = 8;
    refused(&spec, &digits, ERROR_INVALID, "do not fit 8 examples");
    spec.validation.last = FIELD_UNSET;
    struct dataset *none = open_split(&spec, SPLIT_VALIDATION, &digits);
    cr_assert_eq(dataset_count(none), 0);
    dataset_free(none);
    remove_place(&place);
}
