/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_list.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"

static char home[] = "/tmp/coxswain-runs-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
}

static void teardown(void)
{
    directory_remove(home);
}

TestSuite(run_list, .init = setup, .fini = teardown);

static void put_run(const char *directory, const char *name, int64_t step)
{
    SCOPED_FREE char *path = memory_format("%s/coxswain/%s", home, directory);
    SCOPED_FREE char *database = memory_format("%s/" STATE_DATABASE, path);
    SCOPED_BUFFER nothing = BUFFER_INIT(16);
    SCOPED(run_record_release) struct run_record record;
    struct error error = ERROR_INIT;
    run_record_init(&record);
    snprintf(record.name, sizeof record.name, "%s", name);
    record.state = RUN_RUNNING;
    record.step = step;
    record.volumes = json_new_object();
    json_set_string(record.volumes, "data", "/data");
    cr_assert_eq(directory_make(path, &error), 0, "%s", error.message);
    cr_assert_eq(buffer_write_file(&nothing, database, NULL), 0);
    cr_assert_eq(run_record_write(path, &record, &error), 0, "%s", error.message);
}

static const struct run_entry *find(const struct run_list *list, const char *label)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].label, label) == 0)
            return &list->entries[i];
    return NULL;
}

Test(run_list, a_name_that_several_runs_have_is_replaced_by_their_directories)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    put_run("a", "digits", 1);
    put_run("b", "other", 1);
    put_run("demo/c", "digits", 1);
    put_run("d", "digits-2", 1);
    cr_assert_eq(run_list_read(NULL, &list, NULL), 0);
    cr_assert_eq(list.count, 4);
    cr_expect(find(&list, "a") && find(&list, "demo/c") && find(&list, "other") && find(&list, "digits-2"));
    cr_expect_null(find(&list, "digits"));
}

Test(run_list, read_again_it_reads_only_records_that_have_changed)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    put_run("a", "a", 1);
    put_run("b", "b", 1);
    put_run("c", "c", 1);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_assert_eq(list.count, 3);
    cr_expect_not(find(&list, "a")->is_same);
    SCOPED_FREE char *gone = memory_format("%s/coxswain/c", home);
    directory_remove(gone);
    put_run("b", "b", 2);
    put_run("d", "d", 1);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_assert_eq(list.count, 3);
    cr_expect(find(&list, "a")->is_same);
    cr_expect_eq(find(&list, "a")->record.step, 1);
    cr_expect_eq(find(&list, "a")->record.state, RUN_INTERRUPTED); /* nobody uses the directory */
    cr_expect_str_eq(json_string_at(find(&list, "a")->record.volumes, "data", ""), "/data");
    cr_expect_not(find(&list, "b")->is_same);
    cr_expect_eq(find(&list, "b")->record.step, 2);
    cr_expect(find(&list, "d") && !find(&list, "c"));
}

Test(run_list, read_again_it_tells_whether_a_run_goes_on_by_now)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    put_run("a", "a", 1);
    SCOPED_FREE char *path = memory_format("%s/coxswain/a", home);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_expect_eq(find(&list, "a")->record.state, RUN_INTERRUPTED);
    int lock = -1;
    struct error error = ERROR_INIT;
    cr_assert_eq(state_directory_lock(path, STATE_TO_RUN, &lock, &error), 0, "%s", error.message);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_expect(find(&list, "a")->is_same && find(&list, "a")->in_use);
    cr_expect_eq(find(&list, "a")->record.state, RUN_RUNNING);
    close(lock);
}

Test(run_list, a_record_that_becomes_damaged_is_told)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    put_run("a", "a", 1);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    SCOPED_FREE char *file = memory_format("%s/coxswain/a/" STATE_RUN, home);
    SCOPED_BUFFER text = BUFFER_INIT(64);
    buffer_append_string(&text, "{", NULL);
    cr_assert_eq(buffer_write_file(&text, file, NULL), 0);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_assert_eq(list.count, 1);
    cr_assert_not_null(list.entries[0].trouble);
    cr_expect(strstr(list.entries[0].trouble, "is damaged") != NULL, "%s", list.entries[0].trouble);
}

Test(run_list, a_suspended_run_stays_suspended_and_goes_on_only_while_its_command_does)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    SCOPED(run_record_release) struct run_record record;
    put_run("a", "a", 1);
    SCOPED_FREE char *path = memory_format("%s/coxswain/a", home);
    cr_assert_eq(run_record_read(path, &record, NULL), 0);
    record.state = RUN_SUSPENDED;
    cr_assert_eq(run_record_write(path, &record, NULL), 0);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_expect_eq(find(&list, "a")->record.state, RUN_SUSPENDED);
    cr_expect_not(find(&list, "a")->goes_on);
    int lock = -1;
    struct error error = ERROR_INIT;
    cr_assert_eq(state_directory_lock(path, STATE_TO_RUN, &lock, &error), 0, "%s", error.message);
    cr_assert_eq(run_list_read_again(&list, NULL), 0);
    cr_expect_eq(find(&list, "a")->record.state, RUN_SUSPENDED);
    cr_expect(find(&list, "a")->goes_on);
    close(lock);
}
