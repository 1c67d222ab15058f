/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/tfrecord.h"

#include <criterion/criterion.h>

#include "tfrecord_write.h"

static const uint8_t pixels[] = {1, 2, 3, 4};

Test(tfrecord, reads_records_and_their_features)
{
    uint8_t example[256], file[600];
    size_t length = put_example(example, pixels, 4, 7), end = put_record(file, example, length);
    end += put_record(file + end, "", 0);
    struct tfrecord record, empty;
    cr_assert_eq(tfrecord_at(file, end, 0, &record, NULL), 0);
    cr_assert_eq(tfrecord_check(&record, NULL), 0);
    cr_assert_eq(tfrecord_at(file, end, record.next, &empty, NULL), 0);
    cr_assert(empty.length == 0 && empty.next == end);
    struct tf_feature feature;
    const uint8_t *bytes;
    size_t count;
    int64_t label;
    cr_assert_eq(tf_example_find(&record, "image", &feature, NULL), 0);
    cr_assert_eq(tf_feature_bytes(&feature, &bytes, &count, NULL), 0);
    cr_assert(count == 4 && memcmp(bytes, pixels, 4) == 0);
    cr_assert_eq(tf_feature_integers(&feature, &label, 1, NULL), -1);
    cr_assert_eq(tf_example_find(&record, "label", &feature, NULL), 0);
    cr_assert_eq(tf_feature_integers(&feature, &label, 1, NULL), 0);
    cr_assert_eq(label, 7);
    struct error error = ERROR_INIT;
    cr_assert_eq(tf_example_find(&record, "picture", &feature, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
    cr_assert_eq(tf_example_find(&empty, "label", &feature, NULL), -1);
}

Test(tfrecord, lists_may_be_packed_or_not)
{
    const uint8_t packed[] = {0x0a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    const uint8_t single[] = {0x0d, 0, 0, 0x80, 0x3f, 0x0d, 0, 0, 0, 0x40};
    const uint8_t integers[] = {0x08, 5, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    float values[3];
    int64_t numbers[2];
    const struct tf_feature a = {TF_FLOATS, packed, sizeof packed}, b = {TF_FLOATS, single, sizeof single};
    const struct tf_feature c = {TF_INTEGERS, integers, sizeof integers};
    cr_assert(tf_feature_floats(&a, values, 2, NULL) == 0 && values[0] == 1.0f && values[1] == 2.0f);
    cr_assert(tf_feature_floats(&b, values, 2, NULL) == 0 && values[0] == 1.0f && values[1] == 2.0f);
    cr_assert(tf_feature_integers(&c, numbers, 2, NULL) == 0 && numbers[0] == 5 && numbers[1] == -1);
    struct error error = ERROR_INIT;
    cr_assert_eq(tf_feature_floats(&a, values, 1, &error), -1);
    cr_assert_str_eq(error.message, "it has more floats than the 1 that the model takes");
    cr_assert_eq(tf_feature_floats(&a, values, 3, &error), -1);
    cr_assert_str_eq(error.message, "it has 2 floats; the model takes 3");
    cr_assert_eq(tf_feature_integers(&c, numbers, 1, &error), -1);
    cr_assert_str_eq(error.message, "it has more integers than the 1 that the model takes");
}

Test(tfrecord, damage_is_told_from_data)
{
    uint8_t example[256], file[600];
    size_t length = put_example(example, pixels, 4, 7), end = put_record(file, example, length);
    struct tfrecord record;
    struct error error = ERROR_INIT;
    for (size_t cut = 1; cut < end; cut++)
        cr_assert_eq(tfrecord_at(file, cut, 0, &record, &error), -1);
    file[20] ^= 1;
    cr_assert_eq(tfrecord_at(file, end, 0, &record, NULL), 0);
    cr_assert_eq(tfrecord_check(&record, &error), -1);
    file[0] ^= 1;
    cr_assert_eq(tfrecord_at(file, end, 0, &record, &error), -1);
    cr_assert_eq(error.kind, ERROR_CORRUPT);
    static const struct {
        uint64_t bytes;
        const char *message;
    } lengths[] = {
        {1000, "the record at byte 0 should have 1000 bytes, but the file ends before"},
        {TFRECORD_MAX, "the record at byte 0 should have 1073741824 bytes, but the file ends before"},
        {TFRECORD_MAX + 1, "the record at byte 0 says that it has 1073741825 bytes; at most 1073741824 are taken"},
        {UINT64_MAX, "the record at byte 0 says that it has 18446744073709551615 bytes; at most 1073741824 are taken"},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(file, &lengths[i].bytes, 8);
        put_crc(file + 8, file, 8);
        cr_assert_eq(tfrecord_at(file, end, 0, &record, &error), -1);
        cr_expect_str_eq(error.message, lengths[i].message);
    }
    /* An Example that is cut off anywhere is damaged or lacks the label. */
    struct tf_feature feature;
    for (size_t cut = 0; cut < length; cut++)
        cr_assert_eq(tf_example_find(&(struct tfrecord){example, cut, 0}, "label", &feature, NULL), -1);
}
