/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_shape.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/data/npy.h"
#include "common/directory.h"
#include "common/job/training_job.h"
#include "common/memory.h"
#include "operator/cli/first_job.h"
#include "tests/unit/common/data/image_files.h"

static char folder[] = "/tmp/cox-shape-XXXXXX";
static const char *column; /* of the labels; NULL: the last one */
static bool drop_rows;
static struct json *skipped; /* the columns that are left out */

static void setup(void)
{
    cr_assert(mkdtemp(folder));
    skipped = json_new_array();
}

static void teardown(void)
{
    directory_remove(folder);
    json_free(skipped);
}

TestSuite(data_shape, .init = setup, .fini = teardown);

static void put(const char *name, const void *bytes, size_t length)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert_eq(write(file, bytes, length), (ssize_t)length);
    close(file);
}

static void put_array(const char *name, struct npy npy, const void *values, size_t length)
{
    SCOPED_BUFFER file = BUFFER_INIT(1 << 16);
    cr_assert_eq(npy_append_header(&file, &npy, NULL), 0);
    cr_assert_eq(buffer_append(&file, values, length, NULL), 0);
    put(name, file.data, file.length);
}

/* 150 rows of 4 float64, sorted by the class. */
static void put_table(const char *values, const char *labels)
{
    static const double rows[600];
    int64_t classes[150];
    for (int i = 0; i < 150; i++)
        classes[i] = i / 50;
    put_array(values, (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {150, 4}}, rows, sizeof rows);
    put_array(labels, (struct npy){.kind = 'i', .item_bytes = 8, .rank = 1, .shape = {150}}, classes, sizeof classes);
}

/* What is found is described as `wanted`; returns the job for it, which is valid. */
static struct json *job_for(const char *wanted)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    struct data_shape shape;
    struct error error = ERROR_INIT;
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), 0, "%s", error.message);
    cr_assert_eq(data_shape_read(folder, &found, &(struct data_columns){column, skipped, drop_rows}, &shape, &error), 0,
                 "%s", error.message);
    data_shape_describe(&shape, &text);
    cr_expect_str_eq(buffer_text(&text), wanted);
    struct json *job = first_job_make(&(struct first_job){.name = "mine",
                                                          .format = found.format,
                                                          .files = &found,
                                                          .label = column,
                                                          .skipped = skipped,
                                                          .shape = &shape,
                                                          .drop_rows = drop_rows});
    SCOPED_JSON *violations = training_job_violations(job, NULL);
    cr_expect_eq(json_count(violations), 0u, "%s", json_string_at(json_first(violations), "message", ""));
    return job;
}

static void refused(const char *words)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct data_shape shape;
    struct error error = ERROR_INIT;
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), 0, "%s", error.message);
    cr_assert_eq(data_shape_read(folder, &found, &(struct data_columns){column, skipped, drop_rows}, &shape, &error),
                 -1);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

static int64_t number(const struct json *job, const char *path)
{
    SCOPED_FREE char *full = memory_format("spec.coxswain.%s", path);
    return json_integer_at(job, full, -1);
}

Test(data_shape, a_table_with_classes)
{
    put_table("X.npy", "y.npy");
    SCOPED_JSON *job = job_for("150 examples of 4 values, 3 classes");
    const struct json *shape = json_at(job, "spec.coxswain.model.inputShape");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.model.preset", ""), "mlp");
    cr_expect_eq(json_count(shape), 1u);
    cr_expect_eq(json_integer(json_first(shape), 0), 4);
    cr_expect_eq(number(job, "model.classes"), 3);
    cr_expect_eq(number(job, "data.validation.sample"), 30);
    cr_expect_eq(number(job, "training.batchSize"), 8);
    cr_expect_eq(number(job, "training.epochs"), 100);
    cr_expect(json_boolean_at(job, "spec.coxswain.data.standardize", false));
}

Test(data_shape, files_to_test_with_hold_nothing_out)
{
    put_table("x_train.npy", "y_train.npy");
    put_table("x_test.npy", "y_test.npy");
    SCOPED_JSON *job = job_for("150 examples of 4 values, 3 classes");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.data.validation.images", ""), "x_test.npy");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.data.validation.labels", ""), "y_test.npy");
    cr_expect_eq(number(job, "data.validation.sample"), -1);
}

Test(data_shape, labels_that_are_numbers_are_predicted)
{
    static const double values[60];
    put_array("data.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {20, 3}}, values, 480);
    put_array("labels.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {20, 2}}, values, 320);
    SCOPED_JSON *job = job_for("20 examples of 3 values, 2 numbers to predict");
    const struct json *layer = json_first(json_at(job, "spec.coxswain.model.layers"));
    cr_expect_str_eq(json_string_at(layer, "type", ""), "Dense");
    while (json_next(layer))
        layer = json_next(layer);
    cr_expect_eq(json_integer_at(layer, "units", 0), 2);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.model.loss", ""), "MeanSquaredError");
    cr_expect_eq(number(job, "data.validation.sample"), 4);
}

Test(data_shape, images_of_bytes)
{
    uint8_t images[16 + 10 * 144] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 12, 0, 0, 0, 12};
    uint8_t labels[8 + 10] = {0, 0, 8, 1, 0, 0, 0, 10, 6};
    put("train-images-idx3-ubyte", images, sizeof images);
    put("train-labels-idx1-ubyte", labels, sizeof labels);
    SCOPED_JSON *job = job_for("10 examples of 12x12 pixels, 7 classes");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.model.preset", ""), "lenet");
    cr_expect_eq(json_count(json_at(job, "spec.coxswain.model.inputShape")), 3u);
    cr_expect_eq(number(job, "data.validation.sample"), 2);
    cr_expect_eq(number(job, "training.batchSize"), 2);
    labels[7] = 9;
    put("train-labels-idx1-ubyte", labels, sizeof labels - 1);
    refused("train-images-idx3-ubyte holds 10 examples, but train-labels-idx1-ubyte 9 labels");
}

Test(data_shape, a_text)
{
    static char text[256 * 20 + 1];
    memset(text, 'x', sizeof text);
    put("corpus.txt", text, sizeof text);
    SCOPED_JSON *job = job_for("20 windows of 256 bytes");
    cr_expect_eq(number(job, "data.validation.last"), 4);
    cr_expect_eq(number(job, "training.batchSize"), 2);
    put("corpus.txt", text, 300);
    refused("corpus.txt is too short");
}

Test(data_shape, labels_that_no_class_may_be)
{
    put_table("X.npy", "y.npy");
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 2, .rank = 1, .shape = {1}}, &(int16_t){-1}, 2);
    refused("X.npy holds 150 examples, but y.npy 1 labels");
    put_array("X.npy", (struct npy){.kind = 'i', .item_bytes = 2, .rank = 1, .shape = {1}}, &(int16_t){0}, 2);
    refused("y.npy: label 0 is -1; classes are counted from 0");
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 4, .rank = 1, .shape = {1}}, &(int32_t){1 << 20}, 4);
    refused("go up to 1048576: save them as float32 if they are numbers to predict");
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 2, .shape = {1, 3}}, "\0\1\0", 3);
    refused("y.npy has 3 integers for each example");
    put("y.npy", "nonsense", 8);
    refused("y.npy: it is not a NumPy array file");
}

static void described(const char *wanted)
{
    SCOPED_JSON *job = job_for(wanted);
    cr_expect(job);
}

Test(data_shape, classes_without_examples_are_told)
{
    static const double rows[4];
    put_array("X.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 1, .shape = {4}}, rows, sizeof rows);
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 1, .shape = {4}}, "\1\2\4\3", 4);
    described("4 examples of 1 value, 5 classes (no example has a label below 1; subtract 1 if classes begin there)");
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 1, .shape = {4}}, "\1\1\1\1", 4);
    refused("y.npy: all examples have the same label, so there is nothing to learn");
}

Test(data_shape, one_hot_labels_are_told)
{
    static const double rows[4], one_hot[] = {0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0}, others[] = {0, 1, 1, 1, 0, 0};
    put_array("X.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 1, .shape = {4}}, rows, sizeof rows);
    put_array("y.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {4, 3}}, one_hot, sizeof one_hot);
    described("4 examples of 1 value, 3 numbers to predict (save y.argmax(axis=1) as the labels if these are one-hot "
              "classes)");
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 2, .shape = {4, 2}}, "\0\1\1\0\1\0\0\1", 8);
    refused("save one that is its class (y.argmax(axis=1)), or floats to predict");
    put_array("X.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 1, .shape = {2}}, rows, 16);
    put_array("y.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {2, 3}}, others, sizeof others);
    described("2 examples of 1 value, 3 numbers to predict");
}

Test(data_shape, channels_that_come_first_are_told)
{
    static const uint8_t images[2 * 3 * 16 * 16];
    put_array("X.npy", (struct npy){.kind = 'u', .item_bytes = 1, .rank = 4, .shape = {2, 3, 16, 16}}, images,
              sizeof images);
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 1, .shape = {2}}, "\0\1", 2);
    described("2 examples of 3x16x16 pixels (if the first size is the number of colours, save X.transpose(0, 2, 3, 1), "
              "which puts it last), 2 classes");
}

Test(data_shape, missing_values_of_arrays_are_named)
{
    const double rows[] = {1, 2, 3, NAN};
    put_array("X.npy", (struct npy){.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {2, 2}}, rows, sizeof rows);
    put_array("y.npy", (struct npy){.kind = 'i', .item_bytes = 1, .rank = 1, .shape = {2}}, "\0\1", 2);
    refused("X.npy: example 1 has a value that is missing or too large (NaN)");
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* A table whose label is the row's number modulo `different`, in that format. */
static void put_rows(int rows, int different, const char *format)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    buffer_append_string(&text, "a,b\n", NULL);
    for (int i = 0; i < rows; i++) {
        SCOPED_FREE char *label = memory_format("%d%s", i % different, format);
        buffer_format(&text, "0.5,%s\n", label);
    }
    put("t.csv", text.data, text.length);
}

Test(data_shape, integers_are_classes_if_there_are_several_examples_of_each)
{
    put_rows(100, 100, "");
    described("100 examples of 1 value, 1 number to predict");
    put_rows(500, 100, "");
    described("500 examples of 1 value, 100 classes");
    put_rows(499, 100, "");
    described("499 examples of 1 value, 1 number to predict");
    put_rows(10, 10, "");
    described("10 examples of 1 value, 10 classes");
    put_rows(6000, 1001, "");
    described("6000 examples of 1 value, 1 number to predict");
    put_rows(100, 50, "x");
    refused("t.csv: column 2: the labels of 100 rows have 50 different words, too many for classes");
}

Test(data_shape, classes_saved_as_floats_are_told)
{
    static const double labels[] = {0, 1, 2, 1}, others[] = {0, 1, 2.5, 1}, missing[] = {0, 1, NAN, 1};
    const struct npy npy = {.kind = 'f', .item_bytes = 8, .rank = 1, .shape = {4}};
    put_array("X.npy", npy, labels, sizeof labels);
    put_array("y.npy", npy, labels, sizeof labels);
    described("4 examples of 1 value, 1 number to predict (save the labels as integers if they are classes)");
    put_array("y.npy", npy, others, sizeof others);
    described("4 examples of 1 value, 1 number to predict");
    put_array("y.npy", npy, missing, sizeof missing);
    refused("y.npy: label 2 is missing");
    directory_remove(folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    put_rows(30, 3, ".0");
    described("30 examples of 1 value, 1 number to predict (save the labels as integers if they are classes)");
}

/* A name that is missing makes its column none of identifiers, as for the worker, which gets no list of those in rows that are left out. */
Test(data_shape, rows_with_missing_values_are_left_out_if_that_is_wanted)
{
    SCOPED_JSON *job = NULL;
    put("t.csv", "city,size,kind\nRome,1,a\nOslo,,b\nRome,3,b\nOslo,4,a\nBern,5,\n",
        strlen("city,size,kind\nRome,1,a\nOslo,,b\nRome,3,b\nOslo,4,a\nBern,5,\n"));
    drop_rows = true;
    job = job_for("3 examples of 3 values (2 rows left out, since values are missing) from 2 columns, 2 classes");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.data.missing", ""), "DropRow");
    put("t.csv", "city,size,kind\n,1,a\nOslo,,b\n", strlen("city,size,kind\n,1,a\nOslo,,b\n"));
    refused("values are missing in all 2 rows; leave out the columns that lack most by --skip");
}

Test(data_shape, identifiers_with_missing_values_stay_inputs)
{
    static const char text[] = "name,size,kind\nAda,1,a\n,2,b\nEve,3,b\nFay,4,a\n";
    put("t.csv", text, strlen(text));
    drop_rows = true;
    json_free(job_for("3 examples of 4 values (1 row left out, since values are missing) from 2 columns, 2 classes"));
    cr_expect_eq(json_count(skipped), 0u);
}

Test(data_shape, cells_of_a_table_that_cannot_be_used)
{
    static const struct {
        const char *table, *message;
    } rows[] = {
        {"a,price\n1,10\n2,\n3,30\n", "t.csv: line 3, column 2 (price): the label is missing"},
        {"a,price\n1,1\n2,2\n3,3\n4,4\n5,x5\n6,6\n7,7\n8,8\n9,9\n10,10\n11,11\n",
         "line 6, column 2 (price): \"x5\" is not a number, but most labels are"},
        {"a,b,c\n1,2,0\n1,NaN,1\n",
         "values are missing in b (1 of 2, the first in line 3); correct the table, or leave columns out: --skip b; "
         "--drop-rows leaves out the rows with missing values instead"},
        {"1,2,0\n1,,1\n", "values are missing in column 2 (1 of 2, the first in line 2)"},
        {"a,b,c\n1,2,0\n1,2\n", "line 3 has 2 columns, those before it have 3"},
        {"a,city,c\n1,Paris,0\n1,4,0\n", "line 2, column 2 (city): \"Paris\" is not a number, but other values of the"},
        {"a,b\n", "the table has no rows"},
        {"1\n2\n", "line 1 has one column"},
        {"a;b;kind\n3,5;x;0\n3,5;y;1\n1,25;x;0\n",
         "t.csv: a has numbers with a comma, such as \"3,5\" in line 2: write them with a decimal point; correct"},
        {"a;price\n1;-1.200,5\n2;7\n3;8,25\n",
         "t.csv: line 2, column 2 (price): \"-1.200,5\" has a comma; write the numbers of this column with a decimal"},
        {"1,2,0\n", "t.csv holds only one example; add more"},
        {"a,b,kind\n1,2,low\n3,4,low\n", "t.csv: all examples have the same label, so there is nothing to learn; add "
                                         "examples of another class, or name the right labels by --label COLUMN"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text("t.csv", rows[i].table);
        refused(rows[i].message);
    }
}

Test(data_shape, a_table_that_is_not_gzip_though_it_is_named_so)
{
    put_text("t.csv.gz", "PK\003\004\n");
    refused("t.csv.gz: it is not gzip, though its name ends in .gz (compress it, or rename it): line 1 has one column");
    put_text("t.csv.gz", "a,kind\n5,x\n5,y\n");
    json_free(job_for("2 examples of 1 value, 2 classes"));
}

/* Words take a value each, booleans one; a column with another word in each row is left out. */
Test(data_shape, words_and_booleans)
{
    put_text("t.csv", "name,sex,alone,age,kind\nAnn,f,true,3,x\nBob,m,false,4,y\nCid,m,true,5,x\nDan,m,true,6,x\n");
    SCOPED_JSON *job = job_for("4 examples of 4 values from 3 columns, 2 classes");
    const struct json *left_out = json_at(job, "spec.coxswain.data.skipColumns");
    cr_expect_eq(json_integer(json_first(json_at(job, "spec.coxswain.model.inputShape")), 0), 4);
    cr_expect_eq(json_count(left_out), 1u);
    cr_expect_str_eq(json_string(json_first(left_out), ""), "name");
    json_append_string(skipped, "sex"); /* `name` is in the list since the first look */
    SCOPED_JSON *fewer = job_for("4 examples of 2 values, 2 classes");
    cr_expect_eq(json_count(json_at(fewer, "spec.coxswain.data.skipColumns")), 2u);
}

/* Columns that number the rows are left out, unless they are the only ones. */
Test(data_shape, numbers_of_rows)
{
    put_text("t.csv", "name,PassengerId,a,kind\nAnn,892,5,x\nBob,893,6,y\nCid,894,7,x\n");
    SCOPED_JSON *job = job_for("3 examples of 1 value, 2 classes");
    const struct json *first = json_first(json_at(job, "spec.coxswain.data.skipColumns"));
    cr_expect_str_eq(json_string(first, ""), "name");
    cr_expect_str_eq(json_string(json_next(first), ""), "PassengerId");
    json_free(skipped);
    skipped = json_new_array();
    put_text("t.csv", ",a,kind\n0,5,x\n1,6,y\n2,7,x\n");
    SCOPED_JSON *nameless = job_for("3 examples of 1 value, 2 classes");
    cr_expect_str_eq(json_string(json_first(json_at(nameless, "spec.coxswain.data.skipColumns")), ""), "1");
    json_free(skipped);
    skipped = json_new_array();
    put_text("t.csv", "Id,kind\n1,x\n2,y\n3,x\n");
    SCOPED_JSON *alone = job_for("3 examples of 1 value, 2 classes");
    cr_expect_null(json_at(alone, "spec.coxswain.data.skipColumns"));
}

/* The words are those of the table to learn from; one of them may be missing in the other, whose only two words look like identifiers. */
Test(data_shape, a_table_to_test_with_has_other_words)
{
    put_text("t_train.csv", "city,age,kind\nParis,1,x\nRome,2,y\nOslo,3,x\nRome,1,y\n");
    put_text("t_test.csv", "city,age,kind\nParis,1,x\nRome,2,y\nBern,2,y\n");
    SCOPED_JSON *job = job_for("4 examples of 4 values from 2 columns, 2 classes");
    cr_expect_null(json_at(job, "spec.coxswain.data.skipColumns"));
    put_text("t_test.csv", "city,age,kind\nParis,1,x\nRome,,y\n");
    refused("t_test.csv: values are missing in age (1 of 2, the first in line 3)");
}

Test(data_shape, a_column_of_labels_that_is_not_the_last)
{
    put_text("t.csv", "kind,a,b\nx,1,2\ny,3,4\nx,5,6\nz,7,9\n");
    column = "kind";
    SCOPED_JSON *job = job_for("4 examples of 2 values, 3 classes");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.data.labelColumn", ""), "kind");
    column = "1";
    described("4 examples of 2 values, 3 classes");
    column = "4";
    refused("--label: there is no column 4 among the 3 of the table");
}

/* The label that is found is described as `wanted`, and the job names it as data.labelColumn (NULL: not at all). */
static void labelled(const char *table, const char *wanted, const char *named)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    SCOPED_BUFFER text = BUFFER_INIT(1 << 10);
    struct data_shape shape;
    struct error error = ERROR_INIT;
    put_text("t.csv", table);
    cr_assert_eq(data_folder_look(folder, NULL, &found, &error), 0, "%s", error.message);
    cr_assert_eq(data_shape_read(folder, &found, &(struct data_columns){column, skipped, drop_rows}, &shape, &error), 0,
                 "%s", error.message);
    data_shape_describe_label(&shape, &text);
    cr_expect_str_eq(buffer_text(&text), wanted);
    SCOPED_JSON *job = first_job_make(&(struct first_job){.name = "mine",
                                                          .format = found.format,
                                                          .files = &found,
                                                          .label = column,
                                                          .skipped = skipped,
                                                          .shape = &shape,
                                                          .drop_rows = drop_rows});
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.data.labelColumn", ""), named ? named : "", "%s", table);
}

Test(data_shape, the_label_is_told)
{
    const char *by_name = "label: Class, because of its name, though it is not the last column; --label COLUMN takes "
                          "another";
    labelled("a,b,proline\n1,3,2.5\n2,5,2.5\n", "label: proline, the last column; --label COLUMN takes another", NULL);
    labelled("1,3,2.5\n2,5,2.5\n", "label: column 3, the last column; --label COLUMN takes another", NULL);
    labelled("Class,alcohol,proline\n1,3,2.5\n2,5,2.5\n", by_name, "Class");
    labelled("class,Survived,who\n1,0,2.5\n2,1,2.5\n",
             "label: Survived, because of its name, though it is not the last column; --label COLUMN takes another",
             "Survived");
    labelled("class,a,Target\n1,3,2\n2,5,1\n", "label: Target, the last column; --label COLUMN takes another", NULL);
    labelled("classes,a,b\n1,3,2\n2,5,1\n", "label: b, the last column; --label COLUMN takes another", NULL);
    column = "b";
    labelled("class,a,b\n1,3,2\n2,5,1\n", "label: b, as --label says", "b");
    column = NULL;
    json_append_string(skipped, "class");
    labelled("class,a,b\n1,3,2\n2,5,1\n", "label: b, the last column; --label COLUMN takes another", NULL);
    json_append_string(skipped, "b");
    labelled("class,c,a,b\n1,3,2,1\n2,5,1,1\n",
             "label: a, the last column that is not left out; --label COLUMN takes another", NULL);
}

/* The label that a table to learn from has because of its name is also that of the table to test with. */
Test(data_shape, a_table_to_test_with_has_the_same_label)
{
    put_text("t_train.csv", "class,a,b\nx,1,2\ny,3,4.5\nx,5,6\n");
    put_text("t_test.csv", "class,a,b\nx,1,2\ny,3,\n");
    refused("t_test.csv: values are missing in b");
}

/* The table to test with, found beside `path`, has no labels. */
static void unlabelled(const char *path, const char *test, const char *label, bool lacks)
{
    SCOPED(data_files_release) struct data_files_found found = {.format = NULL};
    struct data_shape shape;
    struct error error = ERROR_INIT;
    put_text("test.csv", test);
    cr_assert_eq(data_folder_look(path, NULL, &found, &error), 0, "%s", error.message);
    cr_assert_eq(data_shape_read(folder, &found, &(struct data_columns){label, skipped, false}, &shape, &error), 0,
                 "%s", error.message);
    cr_expect_str_eq(found.unlabelled ? found.unlabelled : "", lacks ? "test.csv" : "", "%s", test);
    cr_expect_eq(found.test_files == NULL, lacks, "%s", test);
    cr_expect_eq(shape.tested, lacks ? 0 : 1, "%s", test);
}

/* As Kaggle gives them: test.csv lacks the column to predict. It may have values that are missing, since it is not read. */
Test(data_shape, a_table_to_test_with_that_has_no_labels)
{
    SCOPED_FREE char *file = memory_format("%s/train.csv", folder);
    const char *const paths[] = {folder, file};
    for (size_t i = 0; i < 2; i++) {
        put_text("train.csv", "Survived,a,b\n0,1,2\n1,2,2\n0,4,6\n");
        unlabelled(paths[i], "a,b\n1,\n", NULL, true);
        unlabelled(paths[i], "a,b\n1,2\n", "Survived", true);
        unlabelled(paths[i], "a,b\n1,2\n", "1", true);
        unlabelled(paths[i], "Survived,a,b\n0,1,2\n", NULL, false);
        put_text("train.csv", "a,b,price\n1,2,7.5\n2,2,8\n4,6,9\n");
        unlabelled(paths[i], "a,b\n1,2\n", NULL, true);
        put_text("train.csv", "1,2,0\n2,2,1\n4,6,0\n");
        unlabelled(paths[i], "1,2\n", NULL, true);
        unlabelled(paths[i], "1,2,0\n", NULL, false);
    }
    put_text("train.csv", "a,b,kind\n1,2,x\n2,2,y\n4,6,x\n");
    put_text("test.csv", "a,b\n1,2\n");
    SCOPED_JSON *job = job_for("3 examples of 2 values, 2 classes");
    cr_expect_eq(number(job, "data.validation.sample"), 1);
}

Test(data_shape, dates_are_told)
{
    put_text("t.csv", "day,a,kind\n2026-11-27,1,x\n27.11.2026 10:30,2,y\n2026-11-27,3,x\n");
    described("3 examples of 3 values from 2 columns (dates, as in column 1, become one value for each different date: "
              "make numbers of them, or leave them out by --skip), 2 classes");
    put_text("t.csv", "day,a,kind\n2026-11-27,1,x\nnever,2,y\n2026-11-27,3,x\n");
    described("3 examples of 3 values from 2 columns, 2 classes");
}

Test(data_shape, names_that_are_integers)
{
    put_text("t.csv", "0,1,target\n5,6,a\n7,8,b\n9,1,a\n");
    described("3 examples of 2 values, 2 classes");
}

Test(data_shape, shapes_that_no_model_takes)
{
    static const double values[600];
    struct npy npy = {.kind = 'f', .item_bytes = 8, .rank = 2, .shape = {150, 3}};
    put_table("X_train.npy", "y_train.npy");
    put_table("X_test.npy", "y_test.npy");
    put_array("X_test.npy", npy, values, 150 * 3 * 8);
    refused("X_train.npy has examples of 4 values, but X_test.npy of 3");
    npy.shape[1] = 0;
    put_array("X_train.npy", npy, values, 0);
    refused("X_train.npy: dimension 2 is 0");
    npy.rank = 6;
    npy.shape[2] = npy.shape[3] = npy.shape[4] = npy.shape[5] = (int64_t)1 << 30;
    npy.shape[0] = 150;
    npy.shape[1] = 0;
    put_array("X_train.npy", npy, values, 0);
    refused("X_train.npy: ");
}

/* ---------------------------------------------------------------- images */

static void put_picture(const char *class, int number, bool colour, unsigned width, unsigned height)
{
    static const unsigned char pixels[64 * 3 * 256];
    SCOPED_FREE char *path = memory_format("%s/%s", folder, class);
    SCOPED_FREE char *name = memory_format("%s/%d.png", class, number);
    static struct file_in_memory file;
    (void)mkdir(path, 0700);
    write_png(&file, &(struct png_kind){colour ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, 0, NULL, 0, NULL}, width,
              height, pixels, (size_t)width * (colour ? 3 : 1));
    put(name, file.bytes, file.length);
}

Test(data_shape, images_of_one_size_keep_it)
{
    for (int i = 0; i < 10; i++)
        put_picture(i % 2 ? "cats" : "dogs", i, false, 40, 28);
    SCOPED_JSON *job = job_for("10 examples of 28x40x1 pixels, 2 classes");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.model.preset", ""), "lenet");
    cr_expect_eq(json_integer(json_element(json_at(job, "spec.coxswain.model.inputShape"), 1), 0), 40);
    cr_expect_eq(json_integer_at(job, "spec.coxswain.model.classes", 0), 2);
    cr_expect_eq(json_integer_at(job, "spec.coxswain.data.validation.sample", 0), 2);
    cr_expect_null(json_at(job, "spec.coxswain.data.train"));
    cr_expect_null(json_at(job, "spec.coxswain.data.standardize"));
}

Test(data_shape, images_of_several_sizes_become_squares)
{
    for (int i = 0; i < 10; i++)
        put_picture(i % 2 ? "cats" : "dogs", i, i == 3, 60, 20 + (unsigned)i);
    json_free(job_for("10 examples of 25x25x3 pixels after resizing, 2 classes"));
}

Test(data_shape, large_images_become_small_squares)
{
    for (int i = 0; i < 4; i++)
        put_picture(i % 2 ? "cats" : "dogs", i, true, 200, 64);
    json_free(job_for("4 examples of 64x64x3 pixels after resizing, 2 classes"));
}

Test(data_shape, an_image_that_is_damaged_is_named)
{
    put_picture("cats", 1, true, 20, 20);
    put_picture("dogs", 1, true, 20, 20);
    put("dogs/2.jpg", "\xff\xd8", 2);
    refused("dogs/2.jpg: the JPEG file is damaged or cut off");
}

/* Its head is whole. */
Test(data_shape, an_image_that_is_cut_off_is_named)
{
    put_picture("cats", 1, true, 20, 20);
    put_picture("dogs", 1, true, 20, 20);
    SCOPED_FREE char *path = memory_format("%s/cats/1.png", folder);
    cr_assert_eq(truncate(path, 60), 0);
    refused("cats/1.png: the PNG file is damaged or cut off (the file ends early)");
}
