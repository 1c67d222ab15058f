/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/algorithm_record.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CONVOLUTION "{\"convolution\":[1,2,3,4,5,6,7,8,9,10,11,12],\"algorithm\":\"" DIGITS DIGITS "\"}"
#define PRODUCT "{\"product\":[1,2,3,4,5,6,7,8,9,10,11,12],\"algorithm\":\"" DIGITS DIGITS "\"}"

static int parse(const char *text, struct algorithm_record *ret_record, struct error *error)
{
    struct json *root;
    cr_assert_eq(json_parse(text, strlen(text), ALGORITHM_RECORD_BYTES_MAX, &root, error), 0);
    SCOPED_JSON *document = root;
    return algorithm_record_from_json(document, ret_record, error);
}

static void fill(struct algorithm_record *record, unsigned count)
{
    *record = (struct algorithm_record){.device = "NVIDIA H200", .library = "cuBLASLt 130100"};
    for (unsigned i = 0; i < count; i++) {
        struct algorithm_choice choice = {.kind = i % 2, .shape = {i, 768}, .algorithm = {UINT64_MAX - i, 1}};
        cr_assert(algorithm_record_add(record, &choice));
    }
}

Test(algorithm_record, is_read_as_it_was_printed)
{
    struct algorithm_record record, again;
    struct error error = ERROR_INIT;
    fill(&record, 3);
    SCOPED_JSON *document = algorithm_record_to_json(&record);
    cr_assert_eq(algorithm_record_from_json(document, &again, &error), 0, "%s", error.message);
    cr_expect(algorithm_record_equal(&record, &again));
    const struct algorithm_choice *found =
        algorithm_record_find(&again, ALGORITHM_PRODUCT, (const int64_t[ALGORITHM_NUMBERS]){2, 768});
    cr_assert_not_null(found);
    cr_expect_eq(found->algorithm[0], UINT64_MAX - 2);
    cr_expect_null(algorithm_record_find(&again, ALGORITHM_PRODUCT, (const int64_t[ALGORITHM_NUMBERS]){4, 768}));
    cr_expect_null(algorithm_record_find(&again, ALGORITHM_PRODUCT, (const int64_t[ALGORITHM_NUMBERS]){1, 768}));
    cr_expect_eq(algorithm_record_find(&again, ALGORITHM_CONVOLUTION, (const int64_t[ALGORITHM_NUMBERS]){1, 768}),
                 &again.choices[1]);
    again.choices[1].algorithm[7] = 1;
    cr_expect_not(algorithm_record_equal(&record, &again));
    algorithm_record_release(&record);
    algorithm_record_release(&again);
}

Test(algorithm_record, keeps_what_kind_a_shape_is_of)
{
    struct algorithm_record record;
    struct error error = ERROR_INIT;
    cr_assert_eq(
        parse("{\"device\":\"a\",\"library\":\"b\",\"choices\":[" PRODUCT "," CONVOLUTION "]}", &record, &error), 0,
        "%s", error.message);
    cr_assert_eq(record.count, 2, "equal numbers of two kinds are two shapes");
    cr_expect_eq(record.choices[0].kind, ALGORITHM_PRODUCT);
    cr_expect_eq(record.choices[1].kind, ALGORITHM_CONVOLUTION);
    cr_expect_eq(memcmp(record.choices[0].shape, record.choices[1].shape, sizeof record.choices[0].shape), 0);
    record.choices[1].kind = ALGORITHM_PRODUCT;
    struct algorithm_record other;
    algorithm_record_copy(&record, &other);
    other.choices[1].kind = ALGORITHM_CONVOLUTION;
    cr_expect_not(algorithm_record_equal(&record, &other));
    algorithm_record_release(&record);
    algorithm_record_release(&other);
}

/* Where crews are told it. */
Test(algorithm_record, is_never_too_long_when_it_is_full)
{
    struct algorithm_record record;
    fill(&record, ALGORITHM_CHOICES_MAX);
    for (unsigned i = 0; i < record.count; i++)
        for (unsigned n = 1; n < ALGORITHM_NUMBERS; n++)
            record.choices[i].shape[n] = INT64_C(1) << 40;
    cr_expect_not(algorithm_record_add(&record, &record.choices[0]));
    SCOPED_JSON *document = algorithm_record_to_json(&record);
    SCOPED_BUFFER text;
    buffer_init(&text, ALGORITHM_RECORD_BYTES_MAX);
    cr_expect_eq(json_print(document, &text, NULL), 0);
    algorithm_record_release(&record);
}

Test(algorithm_record, says_what_is_malformed)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{}", "device is missing"},
        {"{\"device\":\"a\",\"library\":\"\",\"choices\":[]}", "library is missing"},
        {"{\"device\":\"a\",\"library\":\"b\"}", "choices is not a list"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[7]}", "either a product or a convolution"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"attention\":[1]}]}", "either a product or"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"product\":[1],\"convolution\":[1]}]}",
         "either a product or"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"product\":[1]}]}", "not a list of 12"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"product\":[1,2,3,4,5,6,7,8,9,10,11,-1]}]}", "number 12"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"product\":[1,2,3,4,5,6,7,8,9,10,11,12],\"algorithm\":"
         "\"0\"}]}",
         "128 hexadecimal digits"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[" PRODUCT "," PRODUCT "]}", "a product has two algorithms"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[" CONVOLUTION "," CONVOLUTION "]}",
         "a convolution has two algorithms"},
        {"{\"device\":\"a\",\"library\":\"b\",\"choices\":[{\"convolution\":[1]}]}",
         "a convolution is not a list of 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct algorithm_record record = {.count = 77};
        struct error error = ERROR_INIT;
        cr_expect_eq(parse(cases[i].text, &record, &error), -1, "%s", cases[i].text);
        cr_expect(strstr(error.message, cases[i].words) != NULL, "\"%s\" lacks \"%s\"", error.message, cases[i].words);
        cr_expect_eq(record.count, 77, "nothing is given");
    }
}

Test(algorithm_record, holds_so_many_and_no_more)
{
    SCOPED_BUFFER text;
    struct error error = ERROR_INIT;
    struct algorithm_record record;
    buffer_init(&text, ALGORITHM_RECORD_BYTES_MAX);
    buffer_format(&text, "{\"device\":\"a\",\"library\":\"b\",\"choices\":[0");
    for (unsigned i = 0; i < ALGORITHM_CHOICES_MAX; i++)
        buffer_format(&text, ",0");
    buffer_format(&text, "]}");
    cr_expect_eq(parse(buffer_text(&text), &record, &error), -1);
    cr_expect(strstr(error.message, "up to 512") != NULL, "%s", error.message);
}
