/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_record.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/directory.h"
#include "common/memory.h"

static char work[] = "/tmp/coxswain-record-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(work));
}

static void teardown(void)
{
    directory_remove(work);
}

TestSuite(run_record, .init = setup, .fini = teardown);

static void put(const char *name, const char *text)
{
    SCOPED_FREE char *path = memory_format("%s/%s", work, name);
    SCOPED_BUFFER file = BUFFER_INIT(4096);
    buffer_append_string(&file, text, NULL);
    cr_assert_eq(buffer_write_file(&file, path, NULL), 0);
}

Test(run_record, is_read_as_it_was_written)
{
    SCOPED(run_record_release) struct run_record record, read;
    struct error error = ERROR_INIT;
    run_record_init(&record);
    snprintf(record.name, sizeof record.name, "digits");
    snprintf(record.name_space, sizeof record.name_space, "team");
    record.state = RUN_SUCCEEDED;
    record.step = 720;
    record.total_steps = 720;
    record.score.accuracy = 0.983;
    record.score.best_step = 300;
    record.started_ms = 1700000000000;
    record.updated_ms = 1700000060007;
    record.volumes = json_new_object();
    json_set_string(record.volumes, "digits", "/data");
    record.command = memory_copy_string("cox run /digits.yaml --volume digits=/data");
    cr_assert_eq(run_record_write(work, &record, &error), 0, "%s", error.message);
    cr_assert_eq(run_record_read(work, &read, &error), 0, "%s", error.message);
    cr_assert_str_eq(read.name, "digits");
    cr_assert_str_eq(read.name_space, "team");
    cr_assert_eq(read.state, RUN_SUCCEEDED);
    cr_assert_eq(read.step, 720);
    cr_assert(isnan(read.loss) && isnan(read.best) && !read.is_sweep);
    cr_assert_float_eq(read.score.accuracy, 0.983, 1e-12);
    cr_assert_eq(read.score.best_step, 300);
    cr_assert_eq(read.updated_ms - read.started_ms, 60007);
    cr_assert_str_eq(json_string_at(read.volumes, "digits", ""), "/data");
    cr_assert_str_eq(read.command, "cox run /digits.yaml --volume digits=/data");
}

static void expect_refused(enum error_kind kind)
{
    SCOPED(run_record_release) struct run_record record;
    struct error error = ERROR_INIT;
    cr_assert_eq(run_record_read(work, &record, &error), -1);
    cr_assert_eq(error.kind, kind, "%s", error.message);
    cr_assert_not_null(strstr(error.message, "run.json"));
}

Test(run_record, a_missing_or_damaged_one_is_told)
{
    expect_refused(ERROR_NOT_FOUND);
    put("run.json", "{\"version\":1,\"na");
    expect_refused(ERROR_INVALID);
    put("run.json", "[]");
    expect_refused(ERROR_INVALID);
    put("run.json", "{\"version\":2,\"name\":\"digits\"}");
    expect_refused(ERROR_INVALID);
    put("run.json", "{\"version\":1}");
    expect_refused(ERROR_INVALID);
}

Test(run_record, odd_members_are_as_if_they_were_not_there)
{
    SCOPED(run_record_release) struct run_record record;
    put("run.json",
        "{\"version\":1,\"name\":\"x\",\"state\":7,\"step\":\"3\",\"volumes\":[],\"startTime\":\"yesterday\"}");
    cr_assert_eq(run_record_read(work, &record, NULL), 0);
    cr_assert(record.state == RUN_UNKNOWN && record.step == -1 && !record.volumes && record.started_ms == 0);
}

static void expect_score(const struct run_record *record, const char *expected)
{
    SCOPED_BUFFER out = BUFFER_INIT(256);
    run_record_score(record, &out);
    cr_expect_str_eq(buffer_text(&out), expected);
}

Test(run_record, the_score_is_the_best_that_there_is)
{
    struct run_record record;
    run_record_init(&record);
    expect_score(&record, "");
    record.score.loss = 0.0625;
    expect_score(&record, "loss 0.0625");
    record.score.rmse = 2.31;
    expect_score(&record, "RMSE 2.31");
    record.score.accuracy = 0.983;
    expect_score(&record, "98.3 %");
    record.score.best_step = 300;
    expect_score(&record, "98.3 % (best, step 300)");
    record.best = 0.25;
    snprintf(record.metric, sizeof record.metric, "validationLoss");
    expect_score(&record, "loss 0.25");
    snprintf(record.metric, sizeof record.metric, "validationAccuracy");
    expect_score(&record, "25.0 %");
    snprintf(record.metric, sizeof record.metric, "validationRMSE");
    expect_score(&record, "RMSE 0.25");
    snprintf(record.metric, sizeof record.metric, "reward");
    expect_score(&record, "0.25 reward");
}
