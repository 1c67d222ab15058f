/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/step_line.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/json.h"

static const struct step_report example = {.step = 120,
                                           .total_steps = 1080,
                                           .data_epoch = 3,
                                           .loss = 0.0832,
                                           .gradient_norm = 0.91,
                                           .learning_rate = 9.8e-4,
                                           .milliseconds = 12.34,
                                           .examples_per_second = 20812,
                                           .seconds_remaining = 80,
                                           .unit = "examples"};

Test(step_line, text)
{
    char text[STEP_LINE_MAX];
    step_line_format(&example, LOG_TEXT, text);
    cr_assert_str_eq(text,
                     "step  120/1080  loss 0.0832   |g| 0.91     lr 9.80e-04  12.3 ms  20812 examples/s  80s left");
}

Test(step_line, utilisation_is_told_where_it_is_known)
{
    char text[STEP_LINE_MAX];
    struct step_report report = example;
    report.utilisation = 0.4123;
    step_line_format(&report, LOG_TEXT, text);
    cr_assert_str_eq(text,
                     "step  120/1080  loss 0.0832   |g| 0.91     lr 9.80e-04  12.3 ms  20812 examples/s  MFU 41.2 %  "
                     "80s left");
    step_line_format(&report, LOG_JSON, text);
    struct json *line;
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &line, NULL), 0);
    cr_expect_eq(json_number_at(line, "mfu", 0), 0.4123);
    json_free(line);
}

Test(step_line, tells_the_scale_of_the_loss_and_what_is_skipped)
{
    char text[STEP_LINE_MAX];
    struct step_report report = example;
    report.loss_scale = 32768;
    report.skipped = true;
    report.gradient_norm = NAN;
    step_line_format(&report, LOG_TEXT, text);
    cr_assert_not_null(strstr(text, "  scale 32768 (skipped)  lr"), "%s", text);
    report.loss = NAN;
    step_line_format(&report, LOG_JSON, text);
    struct json *line;
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &line, NULL), 0, "%s", text);
    cr_assert_eq(json_integer_at(line, "lossScale", 0), 32768);
    cr_assert(json_boolean_at(line, "skipped", false));
    json_free(line);
}

Test(step_line, unknown_figures_are_left_out)
{
    char text[STEP_LINE_MAX];
    struct step_report report = example;
    report.gradient_norm = NAN;
    report.seconds_remaining = -1;
    step_line_format(&report, LOG_TEXT, text);
    cr_assert_null(strstr(text, "|g|"));
    cr_assert_null(strstr(text, "left"));
    cr_assert_null(strstr(text, "MFU"));
    step_line_format(&report, LOG_JSON, text);
    struct json *line;
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &line, NULL), 0);
    cr_assert_null(json_member(line, "gradientNorm"));
    cr_assert_null(json_member(line, "mfu"));
    cr_assert_eq(json_integer_at(line, "step", -1), 120);
    json_free(line);
}

Test(step_line, the_largest_numbers_fit)
{
    char text[STEP_LINE_MAX];
    struct step_report report = example;
    report.step = report.total_steps = report.data_epoch = report.seconds_remaining = 1LL << 52;
    report.loss = report.gradient_norm = report.learning_rate = -1.2345678901234567e-300;
    report.milliseconds = report.examples_per_second = report.utilisation = 1.2345678901234567e+300;
    step_line_format(&report, LOG_JSON, text);
    struct json *line;
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &line, NULL), 0, "%s", text);
    json_free(line);
}
