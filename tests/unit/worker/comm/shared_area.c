/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_area.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

Test(shared_area, both_see_what_one_writes)
{
    struct shared_area one, other;
    char path[SHARED_AREA_PATH_MAX];
    cr_assert(shared_area_create(7, 10000, path, &one, NULL) == 0);
    cr_assert(shared_area_open(path, 7, 10000, &other, NULL) == 0);
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
    char path[SHARED_AREA_PATH_MAX];
    cr_assert(shared_area_create(7, 10000, path, &area, NULL) == 0);
    expect_refused(path, 8, 10000, ERROR_UNSUPPORTED);
    expect_refused(path, 7, 10001, ERROR_UNSUPPORTED);
    expect_refused("/etc/passwd", 7, 10000, ERROR_FORBIDDEN);
    expect_refused("/proc/1/fd/../../../etc/passwd", 7, 10000, ERROR_FORBIDDEN);
    FILE *plain = tmpfile(); /* not sealed: it could be cut short */
    cr_assert(plain != NULL && ftruncate(fileno(plain), 4096 + 10000) == 0);
    uint64_t nonce = 7;
    cr_assert(pwrite(fileno(plain), &nonce, sizeof nonce, 0) == sizeof nonce);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fileno(plain));
    expect_refused(path, 7, 10000, ERROR_UNSUPPORTED);
    fclose(plain);
    shared_area_release(&area);
}
