/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/state_directory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"

static char state[] = "/tmp/coxswain-state-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(state));
}

static void teardown(void)
{
    directory_remove(state);
}

TestSuite(state_directory, .init = setup, .fini = teardown);

static void put(const char *name)
{
    SCOPED_FREE char *path = memory_format("%s/%s", state, name);
    SCOPED_FREE char *parent = memory_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    cr_assert_eq(directory_make(parent, NULL), 0);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
}

static bool is_there(const char *name)
{
    SCOPED_FREE char *path = memory_format("%s/%s", state, name);
    return access(path, F_OK) == 0;
}

static void put_run(void)
{
    static const char *const names[] = {"objects.db",
                                        "objects.db-wal",
                                        "kubeconfig",
                                        "port",
                                        "made-from",
                                        "best.yaml",
                                        "trials.csv",
                                        "pki/ca.crt",
                                        "pods/uid/logs/a.log",
                                        "coxswain-operator.log",
                                        "lock",
                                        "volumes/default/runs/digits/step-1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i]);
}

Test(state_directory, volumes_and_what_others_put_there_outlive_what_is_forgotten)
{
    static const char *const gone[] = {"objects.db", "objects.db-wal", "kubeconfig",           "port", "made-from",
                                       "pki",        "pods",           "coxswain-operator.log"};
    struct error error = ERROR_INIT;
    put_run();
    put("thesis.tex");
    cr_assert_eq(state_directory_forget(state, false, &error), 0, "%s", error.message);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        cr_expect_not(is_there(gone[i]), "%s", gone[i]);
    cr_expect(is_there("volumes/default/runs/digits/step-1") && is_there("thesis.tex") && is_there("lock"));
}

Test(state_directory, volumes_go_when_they_are_to)
{
    put_run();
    cr_assert_eq(state_directory_forget(state, true, NULL), 0);
    cr_expect_not(is_there("volumes"));
    cr_assert_eq(state_directory_forget(state, true, NULL), 0, "once more is fine");
}

Test(state_directory, a_foreign_directory_is_left_alone)
{
    struct error error = ERROR_INIT;
    put("pods/mine");
    put("volumes/mine");
    put("thesis.tex");
    cr_assert_eq(state_directory_forget(state, true, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect_not_null(strstr(error.message, "but no objects.db; nothing was removed"), "%s", error.message);
    cr_expect(is_there("pods/mine") && is_there("volumes/mine") && is_there("thesis.tex"));
}

Test(state_directory, a_directory_with_only_our_names_is_left_alone)
{
    struct error error = ERROR_INIT;
    put("volumes/mine");
    cr_assert_eq(state_directory_forget(state, true, &error), -1);
    cr_expect_not_null(strstr(error.message, "it contains volumes but no objects.db"), "%s", error.message);
    cr_expect(is_there("volumes/mine"));
}

Test(state_directory, one_whose_control_plane_did_not_get_to_its_database_is_known)
{
    put("coxswain-standalone.log");
    put("volumes/default/runs/digits/step-1");
    cr_assert_eq(state_directory_check(state, NULL), 0);
}

Test(state_directory, none_is_no_fault)
{
    SCOPED_FREE char *missing = memory_format("%s/missing", state);
    cr_assert_eq(state_directory_check(missing, NULL), 0);
    cr_assert_eq(state_directory_check(state, NULL), 0);
}

static int lock_elsewhere(enum state_use use)
{
    pid_t child = fork();
    if (child == 0) {
        int lock;
        struct error error = ERROR_INIT;
        SCOPED_FREE char *holder = memory_format("that of process %ld, `", (long)getppid());
        int result = state_directory_lock(state, use, &lock, &error);
        bool told = error.kind == ERROR_UNAVAILABLE && strstr(error.message, state) && strstr(error.message, holder);
        _exit(result == 0 ? 0 : told ? 1 : 2);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

Test(state_directory, one_process_has_it_at_a_time)
{
    int lock;
    cr_assert_eq(state_directory_lock(state, STATE_TO_RUN, &lock, NULL), 0);
    for (enum state_use use = STATE_TO_CLEAR; use <= STATE_TO_RUN; use++)
        cr_expect_eq(lock_elsewhere(use), 1, "use %d", use);
    close(lock);
    cr_expect_eq(lock_elsewhere(STATE_TO_RUN), 0);
}

/* coxswain-standalone locks the directory while the command that has started it still holds its own lock. */
Test(state_directory, what_one_starts_may_run_and_nothing_else)
{
    int lock;
    cr_assert_eq(state_directory_lock(state, STATE_TO_START, &lock, NULL), 0);
    cr_expect_eq(lock_elsewhere(STATE_TO_RUN), 0);
    cr_expect_eq(lock_elsewhere(STATE_TO_READ), 0);
    cr_expect_eq(lock_elsewhere(STATE_TO_START), 1);
    cr_expect_eq(lock_elsewhere(STATE_TO_CLEAR), 1);
    close(lock);
    cr_assert_eq(state_directory_lock(state, STATE_TO_READ, &lock, NULL), 0);
    cr_expect_eq(lock_elsewhere(STATE_TO_START), 1);
    close(lock);
}

/* cox ui lists all runs while it starts a control plane for one of them. */
Test(state_directory, stays_locked_while_the_process_that_has_it_looks_at_it)
{
    int lock, other;
    cr_assert_eq(state_directory_lock(state, STATE_TO_START, &lock, NULL), 0);
    cr_expect_eq(state_directory_holder(state), STATE_STARTING);
    cr_expect_eq(lock_elsewhere(STATE_TO_START), 1, "after the holder was asked");
    cr_expect_eq(state_directory_lock(state, STATE_TO_CLEAR, &other, NULL), -1);
    cr_expect_eq(lock_elsewhere(STATE_TO_START), 1, "after a lock that was refused");
    close(lock);
    cr_expect_eq(lock_elsewhere(STATE_TO_START), 0);
}

Test(state_directory, a_control_plane_ends_after_those_that_share_it)
{
    int serving, first, second, end;
    cr_assert_eq(state_directory_lock(state, STATE_TO_READ, &serving, NULL), 0);
    cr_assert_eq(state_directory_lock(state, STATE_TO_SHARE, &first, NULL), 0);
    cr_assert_eq(state_directory_lock(state, STATE_TO_SHARE, &second, NULL), 0);
    cr_expect(state_directory_is_shared(state));
    cr_expect_eq(state_directory_holder(state), STATE_READING);
    close(first);
    cr_expect_eq(state_directory_lock(state, STATE_TO_END, &end, NULL), -1, "the second one is left");
    close(second);
    cr_expect_not(state_directory_is_shared(state));
    cr_assert_eq(state_directory_lock(state, STATE_TO_END, &end, NULL), 0);
    cr_expect_eq(state_directory_lock(state, STATE_TO_SHARE, &first, NULL), -1, "it ends");
    cr_expect_not(state_directory_is_shared(state));
    close(serving);
    close(end);
}

Test(state_directory, is_deleted_with_its_volumes)
{
    bool gone = false;
    put_run();
    put("volumes/default/runs/x");
    put("run.json");
    cr_assert(state_directory_is_one(state));
    cr_assert_eq(state_directory_delete(state, &gone, NULL), 0);
    cr_assert(gone && access(state, F_OK) < 0);
}

Test(state_directory, what_is_the_users_own_stays_when_it_is_deleted)
{
    bool gone = true;
    put_run();
    put("notes");
    cr_assert_eq(state_directory_delete(state, &gone, NULL), 0);
    cr_assert(!gone && is_there("notes") && !is_there("objects.db"));
}

Test(state_directory, another_directory_is_not_deleted)
{
    bool gone = false;
    struct error error = ERROR_INIT;
    put("photo.jpg");
    cr_assert_eq(state_directory_delete(state, &gone, &error), -1);
    cr_assert(error.kind == ERROR_INVALID && is_there("photo.jpg"), "%s", error.message);
}

Test(state_directory, whether_it_is_in_use_can_be_asked_without_taking_it)
{
    static const enum state_holder seen[] = {
        [STATE_TO_CLEAR] = STATE_STARTING,
        [STATE_TO_START] = STATE_STARTING,
        [STATE_TO_READ] = STATE_READING,
        [STATE_TO_RUN] = STATE_RUNNING,
    };
    int lock = -1;
    bool gone = false;
    put_run();
    cr_assert_eq(state_directory_holder(state), STATE_FREE);
    for (enum state_use use = STATE_TO_CLEAR; use <= STATE_TO_RUN; use++) {
        cr_assert_eq(state_directory_lock(state, use, &lock, NULL), 0);
        pid_t other = fork();
        if (other == 0)
            _exit(state_directory_holder(state) == seen[use] && state_directory_delete(state, &gone, NULL) < 0 ? 0 : 1);
        int status = -1;
        cr_assert_eq(waitpid(other, &status, 0), other);
        cr_expect_eq(status, 0, "use %d", use);
        cr_assert(is_there("objects.db"));
        close(lock);
        cr_assert_eq(state_directory_holder(state), STATE_FREE);
    }
}
