/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/predict.h"

#include <criterion/criterion.h>

#include "worker/inference/picture.h"

Test(predict, ranks_classes_by_their_probability)
{
    const float logits[] = {0, 2, -1, 2, 1};
    struct prediction ranked[3];
    cr_assert_eq(predict_rank(logits, 5, OUTPUT_LOGITS, ranked, 3), 3);
    cr_assert_eq(ranked[0].class, 1);
    cr_assert_eq(ranked[1].class, 3);
    cr_assert_eq(ranked[2].class, 4);
    cr_assert_float_eq(ranked[0].probability, 0.3923, 1e-3);
    cr_assert_float_eq(ranked[2].probability, 0.1443, 1e-3);
}

Test(predict, ranks_fewer_classes_than_there_is_room_for)
{
    const float logits[] = {1, 1};
    struct prediction ranked[3];
    cr_assert_eq(predict_rank(logits, 2, OUTPUT_LOGITS, ranked, 3), 2);
    cr_assert_eq(ranked[0].class, 0);
    cr_assert_float_eq(ranked[1].probability, 0.5, 1e-9);
}

Test(predict, leaves_probabilities_as_they_are)
{
    const float probabilities[] = {0.25f, 0.75f};
    struct prediction ranked[3];
    cr_assert_eq(predict_rank(probabilities, 2, OUTPUT_PROBABILITIES, ranked, 3), 2);
    cr_assert_eq(ranked[0].class, 1);
    cr_assert_float_eq(ranked[0].probability, 0.75, 1e-9);
}

Test(picture, has_a_shade_for_each_value)
{
    const float pixels[] = {0, 0.5f, 1, 1, 0, 0};
    SCOPED_BUFFER text = BUFFER_INIT(1000);
    picture_print(pixels, (const int64_t[]){2, 3, 1}, &text);
    cr_assert_str_eq(buffer_text(&text), "  ++@@\n@@\n", "%s", buffer_text(&text));
}

Test(picture, with_one_value_is_blank)
{
    const float pixels[] = {7, 7};
    SCOPED_BUFFER text = BUFFER_INIT(1000);
    picture_print(pixels, (const int64_t[]){1, 2, 1}, &text);
    cr_assert_str_eq(buffer_text(&text), "\n");
}

Test(picture, averages_colours_and_reduces_what_is_wide)
{
    float pixels[2 * 2 * PICTURE_SIDE * 2];
    SCOPED_BUFFER text = BUFFER_INIT(1000);
    for (int i = 0; i < 2 * 2 * PICTURE_SIDE * 2; i++)
        pixels[i] = (float)(i % 2);
    pixels[0] = pixels[1] = 0;
    picture_print(pixels, (const int64_t[]){2, 2 * PICTURE_SIDE, 2}, &text);
    cr_assert_eq(text.length, 2 * PICTURE_SIDE + 1);
    cr_assert_eq(text.data[0], '-', "%s", text.data);
    cr_assert_eq(text.data[2], '+', "%s", text.data);
}
