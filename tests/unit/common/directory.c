/* SPDX-License-Identifier: Apache-2.0 */
#include "common/directory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char work[] = "/tmp/coxswain-directory-XXXXXX";

static void path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", work, name);
}

Test(directory, parents_are_made_and_all_goes_again)
{
    char deep[128], file[128];
    cr_assert_not_null(mkdtemp(work));
    path_of("a/b/c", deep);
    path_of("a/b/file", file);
    cr_assert_eq(directory_make(deep, NULL), 0);
    cr_assert_eq(directory_make(deep, NULL), 0, "what is there is fine");
    fclose(fopen(file, "w"));
    directory_remove(work);
    cr_assert_eq(access(work, F_OK), -1);
}

Test(directory, a_link_is_removed_and_not_what_it_points_to)
{
    char outside[] = "/tmp/coxswain-outside-XXXXXX", link[128];
    cr_assert_not_null(mkdtemp(work));
    cr_assert_not_null(mkdtemp(outside));
    path_of("link", link);
    cr_assert_eq(symlink(outside, link), 0);
    directory_remove(work);
    cr_assert_eq(access(outside, F_OK), 0);
    directory_remove(outside);
}

Test(directory, a_file_in_the_way_is_named)
{
    char file[128], below[128];
    struct error error = ERROR_INIT;
    cr_assert_not_null(mkdtemp(work));
    path_of("file", file);
    path_of("file/below", below);
    fclose(fopen(file, "w"));
    cr_assert_eq(directory_make(below, &error), -1);
    cr_assert_eq(error.kind, ERROR_SYSTEM, "%s", error.message);
    cr_assert_eq(directory_make(file, &error), -1, "a file is no directory");
    cr_assert_eq(error.kind, ERROR_ALREADY_EXISTS, "%s", error.message);
    cr_assert_eq(directory_make("", &error), -1, "an empty path is none");
    cr_assert_eq(error.kind, ERROR_INVALID, "%s", error.message);
    directory_remove(work);
}

Test(directory, the_size_is_that_of_all_files_in_it_and_of_no_link)
{
    char deep[128], file[128], link[128];
    cr_assert_not_null(mkdtemp(work));
    path_of("a/b", deep);
    path_of("a/b/file", file);
    path_of("a/link", link);
    cr_assert_eq(directory_make(deep, NULL), 0);
    int64_t before = directory_bytes(work);
    FILE *opened = fopen(file, "w");
    for (int i = 0; i < 100000; i++)
        fputc('x', opened);
    fclose(opened);
    cr_assert_geq(directory_bytes(work) - before, 100000);
    cr_assert_eq(symlink("/usr", link), 0);
    cr_assert_lt(directory_bytes(work) - before, 1000000);
    directory_remove(work);
    cr_assert_eq(directory_bytes(work), 0);
}
