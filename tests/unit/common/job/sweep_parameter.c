/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_parameter.h"

#include "manifest.h"

static void expect_found(const struct sweep_parameter *parameter, const struct json *spec, const char *text)
{
    SCOPED_FREE char *found = sweep_parameter_find(parameter, spec);
    cr_assert(found, "%s", sweep_parameter_name(parameter));
    cr_expect_str_eq(found, text);
}

Test(sweep_parameter, a_value_is_found_where_it_was_put)
{
    static const struct sweep_parameter parameters[] = {
        {.path = "a.b"}, {.path = "list.1.c"}, {.path = "workers.replicas"}, {.env = "LR"}, {.arg = "--lr"}};
    SCOPED_JSON *spec = manifest_value("{list: [{}, {c: 1}], chief: {}}");
    SCOPED_JSON *value = json_new_number(0.5);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        SCOPED_FREE char *before = sweep_parameter_find(&parameters[i], spec);
        cr_expect_eq(before != NULL, i == 1);
        cr_assert_eq(sweep_parameter_put(&parameters[i], value, spec, NULL), 0);
        expect_found(&parameters[i], spec, "0.5");
    }
    expect_printed(json_member(spec, "list"), "[{},{\"c\":0.5}]");
    expect_printed(json_member(spec, "chief"),
                   "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\","
                   "\"env\":[{\"name\":\"LR\",\"value\":\"0.5\"}],\"args\":[\"--lr=0.5\"]}]}}}");
}

Test(sweep_parameter, an_element_of_a_list_that_is_not_there_has_no_place)
{
    static const char *const paths[] = {"model.layers.9.units", "model.layers.0"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        SCOPED_JSON *spec = manifest_value("{model: {preset: mlp}}");
        SCOPED_JSON *value = json_new_number(1);
        struct error error = ERROR_INIT;
        cr_assert_eq(sweep_parameter_put(&(struct sweep_parameter){.path = paths[i]}, value, spec, &error), -1);
        cr_expect_not_null(strstr(error.message, "leads nowhere: the template has no model.layers; add this list"),
                           "%s", error.message);
    }
}

Test(sweep_parameter, an_argument_comes_last)
{
    const struct sweep_parameter rate = {.arg = "--lr"}, other = {.arg = "--l"};
    SCOPED_JSON *spec =
        manifest_value("{workers: {template: {spec: {containers: [{name: sidecar}, {name: trainer, args: "
                       "[train.py, --lr=7, --lrs=8]}]}}}}");
    SCOPED_JSON *value = manifest_value("word");
    expect_found(&rate, spec, "7");
    cr_assert_eq(sweep_parameter_put(&rate, value, spec, NULL), 0);
    expect_found(&rate, spec, "word");
    cr_expect_null(sweep_parameter_find(&other, spec));
    expect_printed(
        json_at(spec, "workers.template.spec.containers"),
        "[{\"name\":\"sidecar\"},{\"name\":\"trainer\",\"args\":[\"train.py\",\"--lr=7\",\"--lrs=8\",\"--lr=word\"]"
        "}]");
}

Test(sweep_parameter, nothing_is_found_where_nothing_is)
{
    static const char *const paths[] = {"b", "a.b", "a.1", "a.0.c", "a.x"};
    SCOPED_JSON *spec = manifest_value("{a: [1]}");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        cr_expect_null(sweep_parameter_find(&(struct sweep_parameter){.path = paths[i]}, spec), "%s", paths[i]);
    cr_expect_null(sweep_parameter_find(&(struct sweep_parameter){.env = "LR"}, spec));
    cr_expect_null(sweep_parameter_find(&(struct sweep_parameter){.arg = "--lr"}, spec));
}

Test(sweep_parameter, a_text_is_a_value_again)
{
    SCOPED_JSON *values = manifest_value("[1, '1', 0.25, '0.5', true, word]");
    const struct sweep_parameter choice = {.path = "a", .values = values}, range = {.path = "a", .has_uniform = true};
    static const char *const rows[][2] = {{"1", "1"}, {"0.5", "\"0.5\""}, {"true", "true"}, {"word", "\"word\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *value = sweep_parameter_value(&choice, rows[i][0]);
        expect_printed(value, rows[i][1]);
    }
    SCOPED_JSON *number = sweep_parameter_value(&range, "1e-05");
    cr_expect_eq(json_number(number, 0), 1e-5);
    cr_expect_null(sweep_parameter_value(&choice, "2"));
    cr_expect_null(sweep_parameter_value(&range, "word"));
    cr_expect_null(sweep_parameter_value(&range, ""));
}
