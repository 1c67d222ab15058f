/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/augmentation.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "worker/data/dataset.h"

static const struct augmentation whole = {.horizontal_flip = true, .padding = 4, .image = {32, 32, 3}};

Test(augmentation, is_a_function_of_seed_epoch_and_example)
{
    int differing[3] = {0};
    for (int64_t i = 0; i < 300; i++) {
        struct augmentation_draw one = augmentation_draw(&whole, 7, 2, i), same = augmentation_draw(&whole, 7, 2, i);
        struct augmentation_draw others[] = {augmentation_draw(&whole, 8, 2, i), augmentation_draw(&whole, 7, 3, i),
                                             augmentation_draw(&whole, 7, 2, i + 1)};
        cr_assert(one.down == same.down && one.right == same.right && one.mirrored == same.mirrored);
        for (int o = 0; o < 3; o++)
            differing[o] += one.down != others[o].down || one.right != others[o].right;
    }
    for (int o = 0; o < 3; o++)
        cr_expect_gt(differing[o], 250);
}

#define DRAWS 18000
Test(augmentation, takes_every_place_and_both_directions_equally_often)
{
    int64_t down[9] = {0}, right[9] = {0}, mirrored = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        struct augmentation_draw draw = augmentation_draw(&whole, 1, 0, i);
        cr_assert(draw.down >= -4 && draw.down <= 4 && draw.right >= -4 && draw.right <= 4);
        down[draw.down + 4]++, right[draw.right + 4]++, mirrored += draw.mirrored;
    }
    for (int i = 0; i < 9; i++) {
        cr_expect(llabs(down[i] - DRAWS / 9) < 250, "%lld at %d down", (long long)down[i], i - 4);
        cr_expect(llabs(right[i] - DRAWS / 9) < 250, "%lld at %d right", (long long)right[i], i - 4);
    }
    cr_expect(llabs(mirrored - DRAWS / 2) < 400, "%lld", (long long)mirrored);
}

static void check_applied(struct augmentation_draw draw, const float *expected)
{
    const struct augmentation small = {.horizontal_flip = true, .padding = 2, .image = {2, 3, 2}};
    const float pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    float result[12];
    memset(result, 0xff, sizeof result);
    augmentation_apply(&small, &draw, pixels, result);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(result[i], expected[i], "%d: %f, not %f", i, (double)result[i], (double)expected[i]);
}

Test(augmentation, moves_and_mirrors_whole_pixels)
{
    check_applied((struct augmentation_draw){0, 0, false}, (const float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    check_applied((struct augmentation_draw){0, 0, true}, (const float[]){5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8});
    check_applied((struct augmentation_draw){1, 0, false}, (const float[]){0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
    check_applied((struct augmentation_draw){-1, 2, false}, (const float[]){0, 0, 0, 0, 7, 8, 0, 0, 0, 0, 0, 0});
    check_applied((struct augmentation_draw){0, -1, true}, (const float[]){0, 0, 5, 6, 3, 4, 0, 0, 11, 12, 9, 10});
    check_applied((struct augmentation_draw){-2, 0, true}, (const float[12]){0});
}

static void check_refused(const struct augmentation_spec *spec, const int64_t image[3], const char *words)
{
    struct augmentation augmentation;
    struct error error = ERROR_INIT;
    cr_expect_eq(augmentation_check(spec, image, &augmentation, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(augmentation, refuses_what_is_no_image_or_would_leave_none)
{
    const int64_t image[] = {28, 20, 1}, none[3] = {0};
    struct augmentation augmentation;
    check_refused(&(struct augmentation_spec){.horizontal_flip = true}, none, "is for images");
    check_refused(&(struct augmentation_spec){.crop_padding = 2}, none, "is for images");
    check_refused(&(struct augmentation_spec){.crop_padding = 20}, image, "28x20");
    cr_assert_eq(
        augmentation_check(&(struct augmentation_spec){.crop_padding = FIELD_UNSET}, none, &augmentation, NULL), 0);
    cr_assert_eq(augmentation.padding, 0, "a job that says nothing of it may be of texts");
    cr_assert_eq(augmentation_check(&(struct augmentation_spec){.crop_padding = 19}, image, &augmentation, NULL), 0);
    cr_assert_eq(augmentation_check(&(struct augmentation_spec){0}, none, &augmentation, NULL), 0);
    cr_assert_not(augmentation_is_active(&augmentation));
}

/* ---------------------------------------------------------------- behind a data set's door */

static const struct example_format format = {.input_type = ELEMENT_FLOAT32,
                                             .input_elements = 48,
                                             .target_type = ELEMENT_INT32,
                                             .target_elements = 1,
                                             .classes = 10,
                                             .image = {4, 4, 3}};

static struct dataset *open_split(bool augmented, enum dataset_split split)
{
    struct dataset *dataset;
    struct error error = ERROR_INIT;
    const struct data_spec spec = {.format = DATA_FORMAT_SYNTHETIC,
                                   .examples = 100,
                                   .train = {.first = FIELD_UNSET, .last = FIELD_UNSET},
                                   .validation = {.first = FIELD_UNSET, .last = 20},
                                   .augmentation = {augmented, augmented ? 2 : 0}};
    cr_assert_eq(dataset_open(&spec, NULL, split, &format, &dataset, &error), 0, "%s", error.message);
    return dataset;
}

/* How many of the first 20 examples are in `epoch` as they are in the file. */
static int unchanged(const struct dataset *dataset, struct dataset_epoch epoch)
{
    int count = 0;
    for (int64_t i = 0; i < 20; i++) {
        float plain[48], seen[48], again[48];
        int32_t class, seen_class;
        cr_assert_eq(dataset_read(dataset, &i, 1, plain, &class, NULL), 0);
        cr_assert_eq(dataset_read_in_epoch(dataset, epoch, &i, 1, seen, &seen_class, NULL), 0);
        cr_assert_eq(dataset_read_in_epoch(dataset, epoch, &i, 1, again, &seen_class, NULL), 0);
        cr_assert_eq(class, seen_class);
        cr_assert_eq(memcmp(seen, again, sizeof seen), 0);
        count += memcmp(plain, seen, sizeof plain) == 0;
    }
    return count;
}

Test(augmentation, is_of_what_is_learnt_from_alone)
{
    struct dataset *training = open_split(true, SPLIT_TRAIN), *held_out = open_split(true, SPLIT_VALIDATION);
    struct dataset *plain = open_split(false, SPLIT_TRAIN);
    cr_expect_lt(unchanged(training, (struct dataset_epoch){3, 0}), 8);
    cr_expect_eq(unchanged(held_out, (struct dataset_epoch){3, 0}), 20);
    cr_expect_eq(unchanged(plain, (struct dataset_epoch){3, 0}), 20);
    cr_expect(strstr(dataset_description(training), "cropped out of 2 zeros around, half mirrored"));
    dataset_free(training);
    dataset_free(held_out);
    dataset_free(plain);
}

Test(augmentation, examples_read_together_are_those_read_alone)
{
    struct dataset *training = open_split(true, SPLIT_TRAIN);
    const int64_t indices[] = {5, 70, 5, 0};
    float together[4][48], alone[48];
    int32_t classes[4], class;
    const struct dataset_epoch epoch = {3, 9};
    cr_assert_eq(dataset_read_in_epoch(training, epoch, indices, 4, together, classes, NULL), 0);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(dataset_read_in_epoch(training, epoch, &indices[i], 1, alone, &class, NULL), 0);
        cr_assert_eq(memcmp(together[i], alone, sizeof alone), 0);
    }
    dataset_free(training);
}
