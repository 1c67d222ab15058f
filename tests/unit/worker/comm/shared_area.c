/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_area.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/worker/comm/killed_maker.h"

Test(shared_area, both_see_what_one_writes)
{
    struct shared_area one, other;
    char path[SHARED_FILE_PATH_MAX];
    cr_assert(shared_area_create(0x7e57a, 10000, &one, NULL) == 0);
    cr_assert(shared_area_publish(&one, path, NULL) == 0);
    cr_assert(shared_area_publish(&one, path, NULL) == 0, "again");
    cr_assert(shared_area_open(path, 0x7e57a, 10000, &other, NULL) == 0);
    shared_file_withdraw(path);
    cr_expect(access(path, F_OK) < 0);
    memcpy(one.bytes + 9000, "gradients", 10);
    cr_expect(memcmp(other.bytes + 9000, "gradients", 10) == 0);
    shared_area_release(&one);
    cr_expect(memcmp(other.bytes + 9000, "gradients", 10) == 0, "a mapping outlives its creator");
    shared_area_release(&other);
}

static void expect_refused(const char *path, uint64_t nonce, size_t length, enum error_kind kind)
{
    struct shared_area area;
    struct error error = ERROR_INIT;
    cr_expect(shared_area_open(path, nonce, length, &area, &error) < 0 && error.kind == kind, "%s", path);
}

Test(shared_area, other_files_are_refused)
{
    struct shared_area area;
    char path[SHARED_FILE_PATH_MAX];
    cr_assert(shared_area_create(0x7e57b, 10000, &area, NULL) == 0);
    cr_assert(shared_area_publish(&area, path, NULL) == 0);
    expect_refused(path, 8, 10000, ERROR_UNSUPPORTED);
    expect_refused(path, 0x7e57b, 10001, ERROR_UNSUPPORTED);
    shared_file_withdraw(path);
    expect_refused(path, 0x7e57b, 10000, ERROR_UNSUPPORTED);
    expect_refused("/etc/passwd", 7, 10000, ERROR_FORBIDDEN);
    expect_refused("/dev/shm/coxswain-area-/../../etc/passwd", 7, 10000, ERROR_FORBIDDEN);
    shared_area_release(&area);
}

static void make_another(void)
{
    struct shared_area area;
    cr_assert(shared_area_create(0x7e57d, 100, &area, NULL) == 0);
    shared_area_release(&area);
}

static bool publish_one(char path[SHARED_FILE_PATH_MAX])
{
    struct shared_area area;
    return shared_area_create(0x7e57c, 10000, &area, NULL) == 0 && shared_area_publish(&area, path, NULL) == 0;
}

Test(shared_area, what_a_killed_process_leaves_is_swept_away)
{
    killed_maker_expect_swept(publish_one, make_another);
}
