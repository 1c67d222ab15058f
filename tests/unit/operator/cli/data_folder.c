/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_folder.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/job/enum_words.h"
#include "common/memory.h"

static char folder[] = "/tmp/cox-folder-XXXXXX";

static void setup(void)
{
    cr_assert(mkdtemp(folder));
}

static void teardown(void)
{
    directory_remove(folder);
}

TestSuite(data_folder, .init = setup, .fini = teardown);

static void put(const char *name)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert_geq(file, 0);
    close(file);
}

/* An image of that class in the folder `name`; "": in the folder itself. */
static void put_image(const char *name, const char *class)
{
    SCOPED_FREE char *outer = memory_format("%s/%s", folder, name);
    SCOPED_FREE char *inner = memory_format("%s/%s", outer, class);
    SCOPED_FREE char *image = memory_format("%s/%s/1.png", name, class);
    (void)mkdir(outer, 0700);
    (void)mkdir(inner, 0700);
    put(image);
}

/* `files` NULL: nothing is found. */
static void check(const char *format, const char *wanted_format, const char *files, const char *labels)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    int result = data_folder_look(folder, format, &found, &error);
    cr_assert_eq(result, files ? 0 : -1, "%s", error.message);
    if (files) {
        cr_expect_str_eq(found.format, wanted_format);
        cr_expect_str_eq(found.files, files);
        cr_expect_str_eq(found.labels ? found.labels : "", labels ? labels : "");
    }
}

/* What is said of a path in the folder that does not exist. */
static void missing(const char *name, const char *wanted)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    SCOPED_FREE char *message = memory_format("there is no file or folder %s%s", path, wanted);
    struct error error = ERROR_INIT;
    cr_assert_eq(data_folder_look(path, NULL, &found, &error), -1);
    cr_expect_eq(error.kind, ERROR_NOT_FOUND);
    cr_expect_str_eq(error.message, message);
}

Test(data_folder, a_name_that_was_probably_meant)
{
    missing("custmers.csv", "");
    put("customers.csv");
    put(".hidden");
    missing("custmers.csv", "; did you mean customers.csv?");
    missing("prices.csv", "; the folder has customers.csv");
    put("\x1b[31m.csv");
    for (char name[] = "d"; *name < 'm'; ++*name)
        put(name);
    missing("prices.csv", "; the folder has ?[31m.csv, customers.csv, d, e, f, g, h, i, ...");
    missing("none/prices.csv", "");
}

Test(data_folder, images_with_their_labels)
{
    check(NULL, NULL, NULL, NULL);
    put("t10k-images-idx3-ubyte.gz");
    check(NULL, NULL, NULL, NULL);
    put("t10k-labels-idx1-ubyte.gz");
    check(NULL, "IDX", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz");
    put("train-images-idx3-ubyte");
    check(NULL, NULL, NULL, NULL);
    put("train-labels-idx1-ubyte");
    check(NULL, "IDX", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
}

/* `message` is said of the folder, whose images no format takes. */
static void refused(const char *message)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    SCOPED_FREE char *wanted = memory_format("%s%s", folder, message);
    struct error error = ERROR_INIT;
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), -1);
    cr_expect(strncmp(error.message, wanted, strlen(wanted)) == 0, "%s", error.message);
}

Test(data_folder, images_of_another_format_are_named)
{
    SCOPED_FREE char *train = memory_format("%s/train", folder);
    SCOPED_FREE char *cats = memory_format("%s/cats", train);
    cr_assert(mkdir(train, 0700) == 0 && mkdir(cats, 0700) == 0);
    put("train/cats/1.txt");
    refused(": no file there has a name of training data");
    put("train/cats/2.WebP");
    refused(
        "/train/cats/2.WebP: only PNG and JPEG images are read; convert the images, and put those of each class into "
        "a folder that has the class's name");
    put("notes");
    refused(": no file there has a name of training data; it holds notes");
    put_image("train", "cats");
    put_image("train", "dogs");
    check(NULL, "ImageFolder", "train", NULL);
}

Test(data_folder, several_files_as_one_pattern)
{
    put("test_batch.bin");
    check("CIFAR10", NULL, NULL, NULL);
    put("data_batch_1.bin");
    put("data_batch_2.bin");
    check(NULL, "CIFAR10", "data_batch_*.bin", NULL);
}

static void put_line(const char *name, const char *line)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fprintf(file, "%s\n", line) > 0);
    fclose(file);
}

Test(data_folder, json_lines_are_what_their_first_line_says)
{
    put_line("notes.jsonl", "{\"text\": \"a document\"}");
    check(NULL, "Bytes", "notes.jsonl", NULL);
    check("CSV", NULL, NULL, NULL);
    put_line("rows.jsonl", "{\"a\": 1, \"kind\": \"x\"}");
    check(NULL, "CSV", "rows.jsonl", NULL);
    check("Bytes", "Bytes", "notes.jsonl", NULL);
}

Test(data_folder, json_lines_may_be_named_ndjson)
{
    put_line("notes.ndjson", "{\"text\": \"a document\"}");
    check(NULL, "Bytes", "notes.ndjson", NULL);
    put_line("train.ndjson", "{\"a\": 1, \"kind\": \"x\"}");
    put_line("test.ndjson", "{\"a\": 1, \"kind\": \"x\"}");
    check(NULL, "CSV", "train.ndjson", NULL);
}

Test(data_folder, folders_of_images)
{
    put_image("", "cats");
    check(NULL, NULL, NULL, NULL); /* plots, perhaps */
    check("ImageFolder", "ImageFolder", ".", NULL);
    put_image("", "dogs");
    put("labels.csv");
    put("README.txt");
    check(NULL, "ImageFolder", ".", NULL);
    put("X.npy");
    put("y.npy");
    check(NULL, "NPY", "X.npy", "y.npy");
}

Test(data_folder, folders_of_images_to_learn_from_and_to_test_with)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    put_image("Train", "cats");
    put_image("Train", "dogs");
    put_image("test", "cats");
    put_image("val", "cats");
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), 0, "%s", error.message);
    cr_expect_str_eq(found.files, "Train");
    cr_expect_str_eq(found.test_files, "val");
}

Test(data_folder, images_without_folders_of_classes)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    put("1.JPG");
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "holds images, and no folders of classes; put the images of each class"), "%s",
              error.message);
}

Test(data_folder, a_text_beside_others_is_most_likely_their_description)
{
    put("README.txt");
    check(NULL, "Bytes", "README.txt", NULL);
    put("x_train.npy");
    put("y_train.npy");
    check(NULL, "NPY", "x_train.npy", "y_train.npy");
    check("Bytes", "Bytes", "README.txt", NULL);
}

Test(data_folder, the_names_that_tables_have)
{
    static const char *const pairs[][2] = {{"data.npy", "labels.npy"},
                                           {"X.npy", "y.npy"},
                                           {"X_train.npy", "y_train.npy"},
                                           {"my-images.npy", "my-labels.npy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        put(pairs[i][0]);
        put(pairs[i][1]);
        check(NULL, "NPY", pairs[i][0], pairs[i][1]);
    }
}

static void check_test(const char *files, const char *labels)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    cr_assert_eq(data_folder_look(folder, NULL, &found, NULL), 0);
    cr_expect_str_eq(found.test_files ? found.test_files : "", files);
    cr_expect_str_eq(found.test_labels ? found.test_labels : "", labels);
}

Test(data_folder, files_to_test_with_have_the_names_of_the_others)
{
    put("X_train.npy");
    put("y_train.npy");
    put("X_test.npy");
    check_test("", "");
    put("y_test.npy");
    check_test("X_test.npy", "y_test.npy");
    put("train-images-idx3-ubyte.gz");
    put("train-labels-idx1-ubyte.gz");
    check_test("", "");
    put("t10k-images-idx3-ubyte.gz");
    put("t10k-labels-idx1-ubyte.gz");
    check_test("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz");
}

/* Each row in a folder of its own. */
Test(data_folder, files_to_test_with_are_not_learned_from)
{
    static const struct {
        const char *put[4], *files, *labels, *test_files, *test_labels;
    } rows[] = {
        {{"Xtest.npy", "Xtrain.npy", "ytest.npy", "ytrain.npy"}, "Xtrain.npy", "ytrain.npy", "Xtest.npy", "ytest.npy"},
        {{"images_test.npy", "images_train.npy", "labels_test.npy", "labels_train.npy"},
         "images_train.npy",
         "labels_train.npy",
         "images_test.npy",
         "labels_test.npy"},
        {{"data_test.npy", "data_train.npy", "labels_test.npy", "labels_train.npy"},
         "data_train.npy",
         "labels_train.npy",
         "data_test.npy",
         "labels_test.npy"},
        {{"test.txt", "train.txt"}, "train.txt", "", "test.txt", ""},
        {{"iris_test.csv", "iris_train.csv"}, "iris_train.csv", "", "iris_test.csv", ""},
        {{"a_val.bin", "a_train.bin"}, "*train*.bin", "", "*val*.bin", ""},
        {{"dataTest.csv", "latest.csv", "test.csv"}, "latest.csv", "", "", ""},
        {{"X.npy", "Y.npy"}, "X.npy", "Y.npy", "", ""},
        {{"X_train.npy", "Y_train.npy", "X_valid.npy", "y_valid.npy"},
         "X_train.npy",
         "Y_train.npy",
         "X_valid.npy",
         "y_valid.npy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
        struct error error = ERROR_INIT;
        directory_remove(folder);
        cr_assert_eq(mkdir(folder, 0700), 0);
        for (size_t j = 0; j < 4 && rows[i].put[j]; j++)
            put(rows[i].put[j]);
        cr_assert_eq(data_folder_look(folder, NULL, &found, &error), 0, "%s", error.message);
        cr_expect_str_eq(found.files, rows[i].files);
        cr_expect_str_eq(found.labels ? found.labels : "", rows[i].labels);
        cr_expect_str_eq(found.test_files ? found.test_files : "", rows[i].test_files);
        cr_expect_str_eq(found.test_labels ? found.test_labels : "", rows[i].test_labels);
        cr_expect_null(found.unused);
    }
}

Test(data_folder, a_second_table_is_not_used)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    put("a.csv");
    put("b.csv");
    cr_assert_eq(data_folder_look(folder, NULL, &found, NULL), 0);
    cr_expect_str_eq(found.files, "a.csv");
    cr_expect_str_eq(found.unused, "b.csv");
}

Test(data_folder, labels_that_are_missing_are_named)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    put("README.txt");
    put("X.npy");
    cr_expect_eq(data_folder_look(folder, NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "X.npy has no y.npy beside it"), "%s", error.message);
    SCOPED_FREE char *file = memory_format("%s/X.npy", folder);
    cr_expect_eq(data_folder_look(file, NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "X.npy is a file, but not a table"), "%s", error.message);
    SCOPED_FREE char *advice = memory_format("give the folder that it is in (--data %s)", folder);
    cr_expect(strstr(error.message, advice), "%s", error.message);
}

Test(data_folder, files_to_test_with_are_learned_from_if_no_others_are_there)
{
    static const char *const pairs[][2] = {{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
                                           {"X_test.npy", "y_test.npy"},
                                           {"data_val.npy", "labels_val.npy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        SCOPED(data_files_release) struct data_files_found alone = {.format = NULL}, beside = {.format = NULL};
        struct error error = ERROR_INIT;
        directory_remove(folder);
        cr_assert_eq(mkdir(folder, 0700), 0);
        put("README.txt");
        put(pairs[i][0]);
        put(pairs[i][1]);
        cr_assert_eq(data_folder_look(folder, NULL, &alone, &error), 0, "%s", error.message);
        cr_expect_str_eq(alone.files, pairs[i][0]);
        cr_expect_str_eq(alone.labels, pairs[i][1]);
        cr_expect(alone.of_test);
        cr_expect_null(alone.test_files);
        put("rows.csv");
        cr_assert_eq(data_folder_look(folder, NULL, &beside, &error), 0, "%s", error.message);
        cr_expect_str_eq(beside.files, "rows.csv");
        cr_expect_not(beside.of_test);
    }
}

Test(data_folder, a_table_is_taken_by_its_path)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    put("a.csv");
    put("b_train.tsv");
    put("b_test.tsv");
    SCOPED_FREE char *path = memory_format("%s/b_train.tsv", folder);
    cr_assert_eq(data_folder_look(path, NULL, &found, &error), 0, "%s", error.message);
    cr_expect_str_eq(found.folder, folder);
    cr_expect_str_eq(found.format, "CSV");
    cr_expect_str_eq(found.files, "b_train.tsv");
    cr_expect_str_eq(found.test_files, "b_test.tsv");
    cr_expect_null(found.unused);
    cr_expect_eq(data_folder_look(path, "Bytes", &found, &error), -1);
    cr_expect(strstr(error.message, "of format Bytes"), "%s", error.message);
}

Test(data_folder, tables_may_have_tabs_between_columns)
{
    put("a_test.tsv");
    check(NULL, NULL, NULL, NULL);
    put("a.tsv");
    check(NULL, "CSV", "a.tsv", NULL);
}

Test(data_folder, what_is_not_there_is_told)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct error error = ERROR_INIT;
    cr_expect_eq(data_folder_look(folder, "Tokens", &found, &error), -1);
    cr_expect(strstr(error.message, "(*train*.bin)"), "%s", error.message);
    cr_expect_eq(data_folder_look(folder, "Synthetic", &found, &error), -1);
    cr_expect(strstr(error.message, "Synthetic has no files"), "%s", error.message);
    cr_expect_eq(data_folder_look(folder, NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "it holds no files"), "%s", error.message);
    put("model.xlsx");
    put("notes.md");
    cr_expect_eq(data_folder_look(folder, NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "it holds model.xlsx, notes.md. Rename"), "%s", error.message);
    cr_expect_eq(data_folder_look("/nowhere", NULL, &found, &error), -1);
    cr_expect(strstr(error.message, "/nowhere"), "%s", error.message);
}

/* The search finds a folder with the usual names of each format. */
Test(data_folder, every_format_of_files_has_usual_names)
{
    for (size_t i = 0; data_format_words[i]; i++) {
        SCOPED(data_files_release) struct data_files_found usual = {.format = NULL};
        cr_assert_eq(data_files_usual(data_format_words[i], &usual), i != DATA_FORMAT_SYNTHETIC, "%s",
                     data_format_words[i]);
        if (!usual.format)
            continue;
        if (i == DATA_FORMAT_IMAGE_FOLDER)
            put_image(usual.files, "cats");
        else
            put(usual.files);
        if (usual.labels)
            put(usual.labels);
        check(data_format_words[i], data_format_words[i], usual.files, usual.labels);
    }
}
