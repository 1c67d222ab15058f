/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/finished_examples.h"

#include <criterion/criterion.h>
#include <string.h>

static int64_t counts[CREW_SIZE_MAX];

static void read_text(const char *text)
{
    struct json *model;
    cr_assert_eq(json_parse(text, strlen(text), 4096, &model, NULL), 0);
    memset(counts, -1, sizeof counts);
    finished_examples_read(model, counts);
    json_free(model);
}

static void expect_counts(int64_t first, int64_t second, int64_t third)
{
    const int64_t expected[] = {first, second, third};
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        cr_expect_eq(counts[seat], seat < 3 ? expected[seat] : 0, "seat %u: %lld", seat, (long long)counts[seat]);
}

Test(finished_examples, what_is_described_is_read)
{
    static const int64_t of[CREW_SIZE_MAX] = {120, 0, 96};
    struct json *model = json_new_object();
    finished_examples_describe(model, of);
    cr_expect_eq(json_count(json_member(model, "finished")), 3);
    finished_examples_read(model, counts);
    expect_counts(120, 0, 96);
    json_free(model);
}

Test(finished_examples, where_nobody_has_finished_any_nothing_is_told)
{
    static const int64_t of[CREW_SIZE_MAX];
    struct json *model = json_new_object();
    finished_examples_describe(model, of);
    cr_expect_null(json_member(model, "finished"));
    json_free(model);
}

Test(finished_examples, a_manifest_that_does_not_tell_has_none)
{
    read_text("{}");
    expect_counts(0, 0, 0);
}

Test(finished_examples, what_is_no_list_of_counts_is_not_believed)
{
    static const char *const texts[] = {"{\"finished\":{\"0\":5}}", "{\"finished\":[5,-1]}", "{\"finished\":[5,\"7\"]}",
                                        "{\"finished\":[5,1.5]}", "{\"finished\":[5,1e300]}"};
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i]);
        expect_counts(0, 0, 0);
    }
}

Test(finished_examples, more_than_a_crew_has_seats_are_not_believed)
{
    struct json *model = json_new_object(), *list = json_set_array(model, "finished");
    for (unsigned seat = 0; seat <= CREW_SIZE_MAX; seat++)
        json_append(list, json_new_integer(1));
    finished_examples_read(model, counts);
    expect_counts(0, 0, 0);
    json_free(model);
}
