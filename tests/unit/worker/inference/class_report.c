/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/class_report.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "worker/inference/picture.h"

Test(class_report, counts_each_example_once_and_keeps_the_worst_in_order)
{
    struct class_report report;
    class_report_init(&report, 3);
    const float scores[][3] = {{5, 0, 0}, {0, 5, 0}, {0, 9, 0}, {1, 0, 0}};
    const int64_t classes[] = {0, 0, 2, 0};
    for (int64_t i = 0; i < 4; i++)
        class_report_add(&report, i, classes[i], scores[i], OUTPUT_LOGITS);
    class_report_add(&report, 4, 3, scores[0], OUTPUT_LOGITS);
    class_report_add(&report, 5, -1, scores[0], OUTPUT_LOGITS);
    const int64_t matrix[] = {2, 1, 0, 0, 0, 0, 0, 1, 0};
    for (int i = 0; i < 9; i++)
        cr_expect_eq(report.confusion[i], matrix[i], "cell %d", i);
    const int64_t order[] = {2, 1, 3, 0};
    cr_assert_eq(report.worst_count, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(report.worst[i].number, order[i], "place %d", i);
    cr_expect_eq(report.worst[0].given, 1);
    cr_expect_float_eq(report.worst[0].loss, log(2 + exp(9)), 1e-6);
    cr_expect_float_eq(report.worst[3].probability, exp(5) / (2 + exp(5)), 1e-6);
    class_report_release(&report);
}

Test(class_report, takes_probabilities_and_infinite_losses)
{
    struct class_report report;
    class_report_init(&report, 2);
    class_report_add(&report, 0, 0, (const float[]){0.25f, 0.75f}, OUTPUT_PROBABILITIES);
    class_report_add(&report, 1, 0, (const float[]){0, 1}, OUTPUT_PROBABILITIES);
    class_report_add(&report, 2, 0, (const float[]){NAN, NAN}, OUTPUT_LOGITS);
    cr_expect_eq(report.worst[0].number, 1);
    cr_expect(isinf(report.worst[0].loss) && isinf(report.worst[1].loss));
    cr_expect_float_eq(report.worst[2].loss, log(4), 1e-6);
    SCOPED_JSON *document = json_new_object();
    class_report_set(&report, document);
    SCOPED_BUFFER text = BUFFER_INIT(10000);
    cr_assert_eq(json_print(document, &text, NULL), 0);
    cr_expect(strstr(buffer_text(&text), "\"loss\":null"), "%s", buffer_text(&text));
    class_report_release(&report);
}

Test(class_report, many_classes_have_no_matrix_and_of_many_examples_the_worst_are_kept)
{
    enum { CLASSES = CLASS_REPORT_CLASSES_MAX + 1, EXAMPLES = 3 * CLASS_REPORT_WORST_MAX };
    struct class_report report;
    float scores[CLASSES] = {0};
    class_report_init(&report, CLASSES);
    cr_expect_null(report.confusion);
    for (int i = 0; i < EXAMPLES; i++) {
        scores[0] = (float)-i;
        class_report_add(&report, i, 0, scores, OUTPUT_LOGITS);
    }
    cr_assert_eq(report.worst_count, CLASS_REPORT_WORST_MAX);
    cr_expect_eq(report.worst[0].number, EXAMPLES - 1);
    cr_expect_eq(report.worst[CLASS_REPORT_WORST_MAX - 1].number, EXAMPLES - CLASS_REPORT_WORST_MAX);
    class_report_release(&report);
}

Test(picture, as_bytes_is_reduced_and_keeps_three_colours)
{
    const float grey[] = {0, 2, 4, 4};
    SCOPED_JSON *picture = picture_json(grey, (const int64_t[]){2, 2, 1});
    cr_expect_str_eq(json_string_at(picture, "pixels", ""), "AID//w=="); /* 0, 128, 255, 255 */
    static float large[2 * PICTURE_JSON_SIDE * 3 * 3];
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        large[i] = i % 3 == 1;
    SCOPED_JSON *reduced = picture_json(large, (const int64_t[]){3, 2 * PICTURE_JSON_SIDE, 3});
    cr_expect_eq(json_integer_at(reduced, "width", 0), PICTURE_JSON_SIDE);
    cr_expect_eq(json_integer_at(reduced, "height", 0), 2);
    cr_expect_eq(json_integer_at(reduced, "channels", 0), 3);
    cr_expect(strncmp(json_string_at(reduced, "pixels", ""), "AP8AAP8A", 8) == 0);
}
