/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trained_on.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char place[64];

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/coxswain-trained-on-XXXXXX");
    cr_assert(mkdtemp(place));
}

static void remove_place(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/table.csv", place);
    (void)unlink(path);
    (void)rmdir(place);
}

/* Opens the table as it is now; the last row is held out. */
static struct dataset *opened(const char *table, bool standardize, enum dataset_split split)
{
    static const struct example_format format = {.input_type = ELEMENT_FLOAT32,
                                                 .input_elements = 1,
                                                 .target_type = ELEMENT_INT32,
                                                 .target_elements = 1,
                                                 .classes = 9};
    char path[96];
    snprintf(path, sizeof path, "%s/table.csv", place);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(table, file) >= 0 && fclose(file) == 0);
    const struct data_spec spec = {.format = DATA_FORMAT_CSV,
                                   .standardize = standardize,
                                   .train = {.files = path, .first = FIELD_UNSET, .last = FIELD_UNSET},
                                   .validation = {.first = FIELD_UNSET, .last = 1}};
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(dataset_open(&spec, NULL, split, &format, &dataset, &error), 0, "%s", error.message);
    return dataset;
}

static int check(const struct trained_on *then, const char *table, bool standardize, struct error *error)
{
    struct dataset *now = opened(table, standardize, SPLIT_VALIDATION);
    int result = trained_on_check(then, now, error);
    dataset_free(now);
    return result;
}

static struct trained_on told(const char *table, bool standardize)
{
    SCOPED_JSON *model = json_new_object();
    struct trained_on read = {.facts.columns = NULL};
    struct dataset *training = opened(table, standardize, SPLIT_TRAIN);
    trained_on_describe(model, training);
    dataset_free(training);
    trained_on_read(&read, model);
    return read;
}

Test(trained_on, rows_that_were_added_change_what_is_measured, .init = make_place, .fini = remove_place)
{
    struct error error = ERROR_INIT;
    SCOPED(trained_on_release) struct trained_on then = told("1,a\n2,b\n3,a\n", true);
    SCOPED(trained_on_release) struct trained_on plain = told("1,a\n2,b\n3,a\n", false);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,a\n", true, NULL), 0);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,a\n7,b\n", true, &error), -1);
    cr_expect(error.kind == ERROR_INVALID && strstr(error.message, "data has changed since these weights were trained"),
              "%s", error.message);
    cr_expect_eq(check(&plain, "1,a\n2,b\n3,a\n7,b\n", false, NULL), 0, "nothing is measured");
}

Test(trained_on, a_new_label_shifts_the_classes, .init = make_place, .fini = remove_place)
{
    struct error error = ERROR_INIT;
    SCOPED(trained_on_release) struct trained_on then = told("1,a\n2,c\n3,a\n", false);
    cr_expect_eq(check(&then, "1.5,c\n2,a\n3,a\n", false, NULL), 0);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,c\n", false, &error), -1);
    cr_expect(strstr(error.message, "the classes have other numbers"), "%s", error.message);
}

Test(trained_on, earlier_releases_told_nothing, .init = make_place, .fini = remove_place)
{
    SCOPED_JSON *model = json_new_object();
    trained_on_describe(model, NULL);
    SCOPED(trained_on_release) struct trained_on then = {.facts.columns = NULL};
    trained_on_read(&then, model);
    cr_expect_eq(check(&then, "1,a\n2,b\n", true, NULL), 0);
    cr_expect_eq(trained_on_check(&then, NULL, NULL), 0);
}

/* Files to test with are read with the numbers of then, though the training table has gone, and is taken for no other. */
Test(trained_on, what_the_training_files_told_is_kept, .init = make_place, .fini = remove_place)
{
    static const struct example_format format = {.input_type = ELEMENT_FLOAT32,
                                                 .input_elements = 1,
                                                 .target_type = ELEMENT_INT32,
                                                 .target_elements = 1,
                                                 .classes = 9};
    char path[96];
    const int64_t first = 0;
    float input;
    int32_t target;
    struct dataset *dataset = NULL;
    struct error error = ERROR_INIT;
    SCOPED(trained_on_release) struct trained_on then = told("x,kind\n0.1,b\n0.5,a\n0.6,c\n9,a\n", true);
    remove_place();
    make_place();
    snprintf(path, sizeof path, "%s/table.csv", place);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("x,kind\n0.7,c\n", file) >= 0 && fclose(file) == 0);
    const struct data_spec spec = {.format = DATA_FORMAT_CSV,
                                   .standardize = true,
                                   .train = {.files = "/nowhere.csv", .first = FIELD_UNSET, .last = FIELD_UNSET},
                                   .validation = {.files = path, .first = FIELD_UNSET, .last = FIELD_UNSET}};
    cr_assert_eq(dataset_open_held_out(&spec, NULL, &format, &then.facts, &dataset, &error), 0, "%s", error.message);
    cr_expect_eq(trained_on_check(&then, dataset, &error), 0, "%s", error.message);
    cr_expect_str_eq(json_string(json_element(dataset_facts(dataset)->classes, 2), ""), "c");
    cr_expect_str_eq(json_string(json_element(dataset_facts(dataset)->columns, 0), ""), "x");
    cr_expect_str_eq(dataset_facts(dataset)->label, "kind");
    cr_expect_str_eq(then.facts.label, "kind");
    cr_assert_eq(dataset_read(dataset, &first, 1, &input, &target, &error), 0, "%s", error.message);
    cr_expect(input > 1.3 && input < 1.4 && target == 2, "%g %d", (double)input, target);
    dataset_free(dataset);
}

/* Bit for bit; what does not fit together is not taken. */
Test(trained_on, moments_are_read_as_they_were_written, .init = make_place, .fini = remove_place)
{
    SCOPED_JSON *model = json_new_object();
    SCOPED(trained_on_release) struct trained_on damaged = {.facts.columns = NULL};
    SCOPED(trained_on_release) struct trained_on then = {.facts.columns = NULL};
    struct dataset *training = opened("0.1,a\n0.2,b\n0.7,a\n1,b\n", true, SPLIT_TRAIN);
    trained_on_describe(model, training);
    trained_on_read(&then, model);
    const struct standardization *was = &dataset_facts(training)->standardization, *is = &then.facts.standardization;
    cr_assert_eq(is->inputs, 1);
    cr_expect(is->moments[0].mean == was->moments[0].mean && is->moments[0].deviation == was->moments[0].deviation);
    cr_expect_eq(is->digest, was->digest);
    json_set_string(model, "inputDeviations", "[0]");
    json_set_string(model, "inputScale", "255");
    json_set_string(model, "classNames", "[\"a\",7]");
    trained_on_read(&damaged, model);
    cr_expect(damaged.facts.standardization.inputs == 0 && damaged.facts.classes == NULL);
    cr_expect(then.facts.input_scale == 0 && damaged.facts.input_scale == 255);
    dataset_free(training);
}

/* JSON cannot hold such a label, so the training files stay needed for it. */
Test(trained_on, labels_that_are_not_utf8_are_not_kept, .init = make_place, .fini = remove_place)
{
    SCOPED(trained_on_release) struct trained_on latin = told("1,the\n2,caf\xe9\n3,the\n4,the\n", false);
    SCOPED(trained_on_release) struct trained_on utf8 = told("1,the\n2,caf\xc3\xa9\n3,the\n4,the\n", false);
    cr_expect_null(latin.facts.classes);
    cr_expect_eq(json_count(utf8.facts.classes), 2);
}
