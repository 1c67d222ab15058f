/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trained_on.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/job/fields.h"

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

static int check(const struct dataset_digests *then, const char *table, bool standardize, struct error *error)
{
    struct dataset *now = opened(table, standardize, SPLIT_VALIDATION);
    int result = trained_on_check(then, now, error);
    dataset_free(now);
    return result;
}

static struct dataset_digests told(const char *table, bool standardize)
{
    SCOPED_JSON *model = json_new_object();
    struct dataset *training = opened(table, standardize, SPLIT_TRAIN);
    trained_on_describe(model, training);
    dataset_free(training);
    return trained_on_read(model);
}

Test(trained_on, rows_that_were_added_change_what_is_measured, .init = make_place, .fini = remove_place)
{
    struct error error = ERROR_INIT;
    const struct dataset_digests then = told("1,a\n2,b\n3,a\n", true), plain = told("1,a\n2,b\n3,a\n", false);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,a\n", true, NULL), 0);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,a\n7,b\n", true, &error), -1);
    cr_expect(error.kind == ERROR_INVALID && strstr(error.message, "data has changed since these weights were trained"),
              "%s", error.message);
    cr_expect_eq(check(&plain, "1,a\n2,b\n3,a\n7,b\n", false, NULL), 0, "nothing is measured");
}

Test(trained_on, a_new_label_shifts_the_classes, .init = make_place, .fini = remove_place)
{
    struct error error = ERROR_INIT;
    const struct dataset_digests then = told("1,a\n2,c\n3,a\n", false);
    cr_expect_eq(check(&then, "1.5,c\n2,a\n3,a\n", false, NULL), 0);
    cr_expect_eq(check(&then, "1,a\n2,b\n3,c\n", false, &error), -1);
    cr_expect(strstr(error.message, "the classes have other numbers"), "%s", error.message);
}

Test(trained_on, earlier_releases_told_nothing, .init = make_place, .fini = remove_place)
{
    SCOPED_JSON *model = json_new_object();
    trained_on_describe(model, NULL);
    const struct dataset_digests then = trained_on_read(model);
    cr_expect_eq(check(&then, "1,a\n2,b\n", true, NULL), 0);
    cr_expect_eq(trained_on_check(&then, NULL, NULL), 0);
}
