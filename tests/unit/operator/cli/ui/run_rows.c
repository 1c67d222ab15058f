/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/run_rows.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"
#include "operator/cli/run_record.h"

#define ANSWER_MAX (1024 * 1024)
#define PAUSE_US 1100000 /* longer than the rows wait until they read the directories again */

static char home[] = "/tmp/coxswain-rows-XXXXXX";
static struct run_rows *rows;
static bool shown;

static bool is_shown(void *context, const char *directory)
{
    (void)context, (void)directory;
    return shown;
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
    rows = run_rows_new(is_shown, NULL);
}

static void teardown(void)
{
    run_rows_free(rows);
    directory_remove(home);
}

TestSuite(run_rows, .init = setup, .fini = teardown);

static void put_run(const char *directory, const char *name, int64_t step)
{
    SCOPED_FREE char *path = memory_format("%s/coxswain/%s", home, directory);
    SCOPED_FREE char *database = memory_format("%s/" STATE_DATABASE, path);
    SCOPED_BUFFER nothing = BUFFER_INIT(16);
    SCOPED(run_record_release) struct run_record record;
    run_record_init(&record);
    snprintf(record.name, sizeof record.name, "%s", name);
    record.state = RUN_SUCCEEDED;
    record.step = step;
    cr_assert_eq(directory_make(path, NULL), 0);
    cr_assert_eq(buffer_write_file(&nothing, database, NULL), 0);
    cr_assert_eq(run_record_write(path, &record, NULL), 0);
}

/* Returns what a page with this version is sent; free it with json_free. */
static struct json *answer_to(uint64_t version)
{
    SCOPED_BUFFER out = BUFFER_INIT(ANSWER_MAX);
    struct error error = ERROR_INIT;
    struct json *answer = NULL;
    cr_assert_eq(run_rows_write(rows, version, &out, &error), 0, "%s", error.message);
    cr_assert_eq(json_parse(buffer_text(&out), out.length, ANSWER_MAX, &answer, &error), 0, "%s", error.message);
    return answer;
}

static uint64_t version_of(const struct json *answer)
{
    return (uint64_t)json_integer_at(answer, "version", 0);
}

static size_t count_of(const struct json *answer)
{
    size_t count = 0;
    for (const struct json *row = json_first(json_at(answer, "rows")); row; row = json_next(row))
        count++;
    return count;
}

static bool is_whole(const struct json *answer)
{
    return json_boolean_at(answer, "whole", false);
}

Test(run_rows, a_page_gets_all_rows_once_and_then_those_that_change)
{
    put_run("default-a", "a", 1);
    put_run("default-b", "b", 1);
    SCOPED_JSON *first = answer_to(0);
    cr_assert(is_whole(first));
    cr_assert_eq(count_of(first), 2);
    SCOPED_JSON *second = answer_to(version_of(first));
    cr_expect_not(is_whole(second));
    cr_expect_eq(count_of(second), 0);
    put_run("default-b", "b", 2);
    usleep(PAUSE_US);
    SCOPED_JSON *third = answer_to(version_of(second));
    cr_expect_not(is_whole(third));
    cr_assert_eq(count_of(third), 1);
    const struct json *row = json_first(json_at(third, "rows"));
    cr_expect_str_eq(json_string_at(row, "run", ""), "default-b");
    cr_expect_eq(json_integer_at(row, "step", 0), 2);
    cr_expect_gt(json_integer_at(row, "disk", -1), 0);
}

Test(run_rows, when_a_run_is_gone_or_replaced_all_rows_are_sent)
{
    put_run("default-a", "a", 1);
    put_run("default-b", "b", 1);
    SCOPED_JSON *first = answer_to(0);
    SCOPED_FREE char *path = memory_format("%s/coxswain/default-b", home);
    directory_remove(path);
    usleep(PAUSE_US);
    SCOPED_JSON *second = answer_to(version_of(first));
    cr_expect(is_whole(second));
    cr_expect_eq(count_of(second), 1);
    put_run("default-a", "another", 1);
    usleep(PAUSE_US);
    SCOPED_JSON *third = answer_to(version_of(second));
    cr_expect(is_whole(third));
    cr_assert_eq(count_of(third), 1);
    cr_expect_str_eq(json_string_at(json_first(json_at(third, "rows")), "NAME", ""), "another");
    SCOPED_JSON *unknown = answer_to(version_of(third) + 1);
    cr_expect(is_whole(unknown), "a version that is not of this list");
}

Test(run_rows, a_run_is_found_by_its_name)
{
    struct error error = ERROR_INIT;
    put_run("demo/undisturbed", "digits", 1);
    const char *directory = run_rows_directory(rows, "demo/undisturbed", &error);
    cr_assert_not_null(directory, "%s", error.message);
    cr_expect(strstr(directory, "/coxswain/demo/undisturbed") != NULL, "%s", directory);
    cr_expect_null(run_rows_directory(rows, "default-none", &error));
    cr_expect_eq(error.http_status, 404);
}
