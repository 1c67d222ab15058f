/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/directory.h"
#include "common/memory.h"
#include "tests/unit/common/data/image_files.h"
#include "worker/data/dataset.h"

static char root[] = "/tmp/coxswain-classes-XXXXXX";

static void setup(void)
{
    cr_assert(mkdtemp(root));
}

static void teardown(void)
{
    directory_remove(root);
}

TestSuite(images, .init = setup, .fini = teardown);

static void put(const char *name, const void *bytes, size_t length)
{
    SCOPED_FREE char *path = memory_format("%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(bytes, 1, length, file) == length);
    fclose(file);
}

/* A grey image of 2x1 pixels. */
static void put_grey(const char *name, uint8_t left, uint8_t right)
{
    struct file_in_memory file;
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 8, 0, NULL, 0, NULL}, 2, 1, (const uint8_t[]){left, right},
              2);
    put(name, file.bytes, file.length);
}

static struct example_format format_of(int64_t height, int64_t width, int64_t channels, int64_t classes)
{
    return (struct example_format){.input_type = ELEMENT_FLOAT32,
                                   .input_elements = height * width * channels,
                                   .input_shape = {3, {height, width, channels}},
                                   .image = {height, width, channels},
                                   .target_type = ELEMENT_INT32,
                                   .target_elements = 1,
                                   .classes = classes};
}

static struct data_spec spec_of(const char *training, const char *validation)
{
    struct data_spec spec = {.format = DATA_FORMAT_IMAGE_FOLDER, .path = root, .examples = FIELD_UNSET};
    spec.train.images = training;
    spec.validation.images = validation;
    spec.train.first = spec.train.last = spec.train.sample = FIELD_UNSET;
    spec.validation.first = spec.validation.last = spec.validation.sample = FIELD_UNSET;
    return spec;
}

static struct dataset *opened(const struct data_spec *spec, enum dataset_split split,
                              const struct example_format *format)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_assert_eq(dataset_open(spec, NULL, split, format, &dataset, &error), 0, "%s", error.message);
    return dataset;
}

static void refused(const struct data_spec *spec, enum dataset_split split, const struct example_format *format,
                    const char *words)
{
    struct error error = ERROR_INIT;
    struct dataset *dataset = NULL;
    cr_expect_eq(dataset_open(spec, NULL, split, format, &dataset, &error), -1);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

static void check_example(const struct dataset *dataset, int64_t index, int32_t class, unsigned left, unsigned right)
{
    float input[2];
    int32_t target;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, &error), 0, "%s", error.message);
    cr_expect_eq(target, class);
    cr_expect(input[0] == (float)left / 255.0f && input[1] == (float)right / 255.0f, "%g %g", (double)input[0],
              (double)input[1]);
}

Test(images, classes_are_folders_in_the_order_of_their_names)
{
    put_grey("dogs/1.png", 10, 20);
    put_grey("cats/2.png", 30, 40);
    put_grey("cats/1.png", 50, 60);
    const struct example_format format = format_of(1, 2, 1, 2);
    const struct data_spec spec = spec_of(NULL, NULL);
    struct dataset *dataset = opened(&spec, SPLIT_TRAIN, &format);
    cr_assert_eq(dataset_count(dataset), 3);
    cr_expect_eq(dataset_keep(dataset, 5), 0, "three images take six bytes");
    cr_expect_eq(dataset_keep(dataset, 6), 6);
    for (int i = 0; i < 2; i++) { /* the second time they are kept */
        check_example(dataset, 0, 0, 50, 60);
        check_example(dataset, 1, 0, 30, 40);
        check_example(dataset, 2, 1, 10, 20);
    }
    cr_expect_str_eq(dataset_example_name(dataset, 2), "dogs/1.png");
    cr_expect(strstr(dataset_description(dataset), "images of 1x2x1, 2 classes, from "), "%s",
              dataset_description(dataset));
    const struct json *classes = dataset_facts(dataset)->classes;
    cr_expect_str_eq(json_string(json_element(classes, 1), ""), "dogs");
    cr_expect(dataset_digests(dataset).classes[0] != '\0');
    dataset_free(dataset);
}

Test(images, an_image_that_changes_ends_the_reading)
{
    put_grey("dogs/1.png", 10, 20);
    put_grey("cats/1.png", 50, 60);
    const struct example_format format = format_of(1, 2, 1, 2);
    const struct data_spec spec = spec_of(NULL, NULL);
    struct dataset *dataset = opened(&spec, SPLIT_TRAIN, &format);
    check_example(dataset, 1, 1, 10, 20);
    put_grey("dogs/1.png", 30, 20);
    SCOPED_FREE char *path = memory_format("%s/dogs/1.png", root);
    cr_assert_eq(utimensat(AT_FDCWD, path, (const struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
    float input[2];
    int32_t target;
    int64_t index = 1;
    struct error error = ERROR_INIT;
    cr_assert_lt(dataset_read(dataset, &index, 1, input, &target, &error), 0);
    cr_expect_eq(error.kind, ERROR_CORRUPT);
    cr_expect(strstr(error.message, "dogs/1.png has changed"), "%s", error.message);
    dataset_free(dataset);
}

Test(images, a_batch_that_several_threads_read_is_in_order)
{
    enum { COUNT = 200 };
    int64_t indices[COUNT];
    float inputs[COUNT][2];
    int32_t targets[COUNT];
    struct error error = ERROR_INIT;
    for (int i = 0; i < COUNT; i++) {
        SCOPED_FREE char *name = memory_format("%c/%03d.png", i < 100 ? 'a' : 'b', i);
        put_grey(name, (uint8_t)i, 0);
        indices[i] = COUNT - 1 - i;
    }
    const struct example_format format = format_of(1, 2, 1, 2);
    const struct data_spec spec = spec_of(NULL, NULL);
    struct dataset *dataset = opened(&spec, SPLIT_TRAIN, &format);
    for (int threads = 0; threads < 100; threads += 33) {
        dataset_set_readers(dataset, threads);
        cr_assert_eq(dataset_read(dataset, indices, COUNT, inputs, targets, &error), 0, "%s", error.message);
        for (int i = 0; i < COUNT; i++)
            cr_expect(inputs[i][0] == (float)(COUNT - 1 - i) / 255.0f && targets[i] == (i < 100), "%d", i);
    }
    put("a/050.png", "no image", 8);
    put("a/020.png", "", 0);
    dataset_free(dataset);
    dataset = opened(&spec, SPLIT_TRAIN, &format);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(dataset_read(dataset, indices, COUNT, inputs, targets, &error), -1);
        cr_expect(strstr(error.message, "/a/050.png: is neither a PNG nor a JPEG file"), "%s", error.message);
    }
    dataset_free(dataset);
}

/* A program of PyTorch takes planes; the sides follow the model, also of a file whose name is wrong. */
Test(images, resized_for_channels_last_and_first)
{
    struct file_in_memory file;
    const uint8_t red_blue[] = {255, 0, 0, 0, 0, 255};
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_RGB, 8, 0, NULL, 0, NULL}, 2, 1, red_blue, 6);
    put("a/wrong.jpg", file.bytes, file.length);
    struct example_format format = format_of(5, 2, 3, 2);
    const struct data_spec spec = spec_of(NULL, NULL);
    float input[30];
    int32_t target;
    int64_t index = 0;
    struct error error = ERROR_INIT;
    struct dataset *dataset = opened(&spec, SPLIT_TRAIN, &format);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, &error), 0, "%s", error.message);
    for (int y = 0; y < 5; y++)
        for (int i = 0; i < 6; i++)
            cr_expect_eq(input[6 * y + i], i == 0 || i == 5 ? 1.0f : 0.0f);
    dataset_free(dataset);
    format.input_shape = (struct example_shape){3, {3, 5, 2}};
    dataset = opened(&spec, SPLIT_TRAIN, &format);
    cr_assert_eq(dataset_read(dataset, &index, 1, input, &target, &error), 0, "%s", error.message);
    for (int i = 0; i < 10; i++)
        cr_expect(input[i] == (float)(i % 2 == 0) && input[10 + i] == 0 && input[20 + i] == (float)(i % 2), "%d", i);
    dataset_free(dataset);
    format.input_shape = (struct example_shape){1, {30}};
    refused(&spec, SPLIT_TRAIN, &format, "make model.inputShape [height, width, channels]");
}

Test(images, the_middle_is_cropped)
{
    struct file_in_memory file;
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 8, 0, NULL, 0, NULL}, 6, 1,
              (const uint8_t[]){1, 2, 3, 4, 5, 6}, 6);
    put("a/1.png", file.bytes, file.length);
    const struct example_format format = format_of(1, 2, 1, 2);
    struct data_spec spec = spec_of(NULL, NULL);
    spec.resize = IMAGE_RESIZE_CENTER_CROP;
    struct dataset *dataset = opened(&spec, SPLIT_TRAIN, &format);
    check_example(dataset, 0, 0, 3, 4);
    dataset_free(dataset);
}

Test(images, test_images_have_the_classes_of_the_training_images)
{
    put_grey("train/a/1.png", 1, 1);
    put_grey("train/b/1.png", 2, 2);
    put_grey("train/c/1.png", 3, 3);
    put_grey("val/c/1.png", 4, 4);
    const struct example_format format = format_of(1, 2, 1, 3), few = format_of(1, 2, 1, 2);
    const struct data_spec spec = spec_of("train", "val");
    struct dataset *training = opened(&spec, SPLIT_TRAIN, &format), *test;
    struct error error = ERROR_INIT;
    cr_expect_eq(dataset_count(training), 3);
    cr_assert_eq(dataset_open_validation(&spec, NULL, training, &test, &error), 0, "%s", error.message);
    check_example(test, 0, 2, 4, 4);
    dataset_free(test);
    test = opened(&spec, SPLIT_VALIDATION, &format);
    check_example(test, 0, 2, 4, 4);
    dataset_free(test);
    dataset_free(training);
    refused(&spec, SPLIT_TRAIN, &few,
            "there are 3 folders of classes, but the model has 2 classes; make model.classes 3, or the units of the "
            "last one of model.layers");
    put_grey("val/d/1.png", 5, 5);
    refused(&spec, SPLIT_VALIDATION, &format, "val/d: the training images have no class of this name");
}

Test(images, held_out_images_are_of_all_classes)
{
    for (int i = 0; i < 40; i++) {
        SCOPED_FREE char *name = memory_format("%c/%02d.png", i < 20 ? 'a' : 'b', i);
        put_grey(name, (uint8_t)i, 0);
    }
    struct data_spec spec = spec_of(NULL, NULL);
    spec.validation.sample = 10;
    const struct example_format format = format_of(1, 2, 1, 2);
    struct dataset *test = opened(&spec, SPLIT_VALIDATION, &format);
    int64_t indices[10], of_b = 0;
    float inputs[10][2];
    int32_t targets[10];
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_count(test), 10);
    for (int i = 0; i < 10; i++)
        indices[i] = i;
    cr_assert_eq(dataset_read(test, indices, 10, inputs, targets, &error), 0, "%s", error.message);
    for (int i = 0; i < 10; i++)
        of_b += targets[i];
    cr_expect(of_b > 0 && of_b < 10);
    dataset_free(test);
}

Test(images, new_images_have_names_and_no_classes)
{
    put_grey("new/x.png", 7, 8);
    put_grey("new/below/y.png", 9, 10);
    const struct example_format format = format_of(1, 2, 1, 2);
    const struct data_spec spec = spec_of(NULL, NULL);
    struct training_facts known = {.input_scale = 0};
    struct dataset *dataset;
    struct error error = ERROR_INIT;
    SCOPED_FREE char *path = memory_format("%s/new", root);
    cr_assert_eq(dataset_open_inputs(path, &spec, NULL, &format, &known, &dataset, &error), 0, "%s", error.message);
    cr_assert_eq(dataset_count(dataset), 2);
    cr_expect_str_eq(dataset_example_name(dataset, 0), "below/y.png");
    check_example(dataset, 1, 0, 7, 8);
    dataset_free(dataset);
    cr_assert_eq(dataset_open_inputs(root, &spec, NULL, &format, &known, &dataset, &error), 0, "%s", error.message);
    cr_expect(!dataset_has_targets(dataset)); /* "new" is no class */
    dataset_free(dataset);
    put_grey("labelled/b/z.png", 11, 12);
    known.classes = json_new_array();
    json_append_string(known.classes, "a");
    json_append_string(known.classes, "b");
    SCOPED_FREE char *labelled = memory_format("%s/labelled", root);
    cr_assert_eq(dataset_open_inputs(labelled, &spec, NULL, &format, &known, &dataset, &error), 0, "%s", error.message);
    cr_expect(dataset_has_targets(dataset));
    check_example(dataset, 0, 1, 11, 12);
    dataset_free(dataset);
    training_facts_release(&known);
    SCOPED_FREE char *nowhere = memory_format("%s/none", root);
    cr_expect_eq(dataset_open_inputs(nowhere, &spec, NULL, &format, NULL, &dataset, &error), -1);
    cr_expect(strstr(error.message, "none: No such file"), "%s", error.message);
}
