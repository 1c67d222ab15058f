/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_print.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json *parse(const char *text)
{
    struct json *value = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &value, NULL), 0);
    return value;
}

static struct run_entry entry_of(const char *name, enum run_state state)
{
    struct run_entry entry = {.directory = (char *)"/state/x", .label = (char *)name};
    run_record_init(&entry.record);
    snprintf(entry.record.name, sizeof entry.record.name, "%s", name);
    entry.record.state = state;
    entry.record.updated_ms = 1000000;
    return entry;
}

static void expect_bytes(int64_t bytes, const char *expected)
{
    SCOPED_BUFFER out = BUFFER_INIT(64);
    run_print_bytes(bytes, &out);
    cr_expect_str_eq(buffer_text(&out), expected);
}

Test(run_print, sizes)
{
    expect_bytes(0, "0 B");
    expect_bytes(999, "999 B");
    expect_bytes(1000, "1.0 KB");
    expect_bytes(999999, "1.0 MB");
    expect_bytes(1234567890, "1.2 GB");
    expect_bytes(5000000000000000, "5000.0 TB");
}

Test(run_print, the_table_has_a_line_for_each_run_with_a_record)
{
    struct run_entry entries[] = {entry_of("one", RUN_RUNNING), entry_of("two", RUN_SUCCEEDED),
                                  entry_of("bad", RUN_UNKNOWN), entry_of("three", RUN_SUSPENDED),
                                  entry_of("four", RUN_SUSPENDED)};
    int64_t bytes[] = {10, 2000, 0, 30, 40};
    entries[0].goes_on = entries[3].goes_on = true;
    entries[0].record.step = 5;
    entries[1].record.step = entries[1].record.total_steps = 9;
    entries[1].record.loss = 0.5;
    entries[2].trouble = (char *)"it is damaged";
    struct run_list list = {entries, 5};
    SCOPED_BUFFER out = BUFFER_INIT(4096);
    run_print_table(&list, bytes, true, 1060000, &out);
    cr_expect_str_eq(buffer_text(&out),
                     "NAME    KIND   STATE       STEP   LOSS     HELD OUT   ENDED     DISK     DIRECTORY\n"
                     "one     Job    Running     5                                    10 B     /state/x\n"
                     "two     Job    Succeeded   9/9    0.5000              60s ago   2.0 KB   /state/x\n"
                     "three   Job    Suspended                                        30 B     /state/x\n"
                     "four    Job    Suspended                              60s ago   40 B     /state/x\n");
}

Test(run_print, each_element_for_programs_has_a_name_and_a_state)
{
    struct run_entry entries[] = {entry_of("one", RUN_RUNNING), entry_of("", RUN_UNKNOWN)};
    int64_t bytes[] = {10, 0};
    entries[1].label = (char *)"default-bad";
    entries[1].trouble = (char *)"it is damaged";
    struct run_list list = {entries, 2};
    SCOPED_JSON *rows = run_list_json(&list, bytes);
    const struct json *one = json_first(rows), *bad = json_next(one);
    cr_expect_str_eq(json_string_at(one, "name", ""), "one");
    cr_expect_str_eq(json_string_at(one, "state", ""), "Running");
    cr_expect_str_eq(json_string_at(bad, "name", ""), "default-bad");
    cr_expect_str_eq(json_string_at(bad, "state", ""), "Unknown");
    cr_expect_str_eq(json_string_at(bad, "trouble", ""), "it is damaged");
}

Test(run_print, two_runs_are_compared_field_by_field)
{
    struct run_entry left = entry_of("left", RUN_SUCCEEDED), right = entry_of("right", RUN_FAILED);
    SCOPED_JSON *one = parse("{\"spec\":{\"rate\":\"0.1\",\"steps\":5,\"list\":[{\"a\":1},2],\"same\":{\"x\":[1]}}}");
    SCOPED_JSON *other = parse(
        "{\"spec\":{\"rate\":0.1,\"steps\":7,\"list\":[{\"a\":1},2,3],\"same\":{\"x\":[1]},\"new\":{\"b\":true}}}");
    SCOPED_BUFFER out = BUFFER_INIT(4096);
    left.record.score.accuracy = 0.5;
    run_print_comparison(&left, one, &right, other, &out);
    cr_expect_str_eq(buffer_text(&out), "               left        right\n"
                                        "spec.steps     5           7\n"
                                        "spec.list[2]   -           3\n"
                                        "spec.new       -           {\"b\":true}\n"
                                        "state          Succeeded   Failed\n"
                                        "step\n"
                                        "loss\n"
                                        "held out       50.0 %\n"
                                        "time\n");
    buffer_clear(&out);
    run_print_comparison(&left, one, &left, one, &out);
    cr_expect(strstr(buffer_text(&out), "the manifests are equal\n"));
}
