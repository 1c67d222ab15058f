/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/worker/checkpoint/directory.h"

/* As NFS does where the answer to the first request was lost. */
static int link_and_ask_again(const char *from, const char *to)
{
    cr_assert_eq(link(from, to), 0);
    return link(from, to);
}

Test(file, a_link_whose_answer_was_lost_is_made_all_the_same)
{
    char *path = file_path_join(test_directory(), "incarnation-5.json");
    struct error error = ERROR_INIT;
    struct buffer text;
    file_calls.link = link_and_ask_again;
    cr_expect_eq(file_write_exclusive(path, "ours", 4, &error), 0, "%s", error.message);
    file_calls.link = link;
    cr_expect_eq(file_write_exclusive(path, "theirs", 6, &error), -1);
    cr_expect(error.kind == ERROR_ALREADY_EXISTS, "%s", error.message);
    buffer_init(&text, 100);
    cr_expect_eq(buffer_read_file(&text, path, NULL), 0);
    cr_expect_str_eq(buffer_text(&text), "ours");
    buffer_release(&text);
    free(path);
}

static void write_dated(const char *directory, const char *name, time_t seconds)
{
    char *path = file_path_join(directory, name);
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    cr_assert_eq(file_replace(path, "x", 1, NULL), 0);
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static bool is_left(const char *directory, const char *name)
{
    char *path = file_path_join(directory, name);
    bool left = access(path, F_OK) == 0;
    free(path);
    return left;
}

Test(file, of_a_directory_the_newest_files_are_kept)
{
    const char *directory = test_directory(); /* a fresh one */
    char *folder = file_path_join(directory, "folder");
    write_dated(directory, "third", 300);
    write_dated(directory, "oldest", 100);
    write_dated(directory, "newest", 400);
    write_dated(directory, "second", 200);
    cr_assert_eq(mkdir(folder, 0755), 0);
    file_keep_newest(directory, 4);
    cr_expect(is_left(directory, "oldest"));
    file_keep_newest(directory, 2);
    cr_expect(is_left(directory, "newest") && is_left(directory, "third"));
    cr_expect(!is_left(directory, "second") && !is_left(directory, "oldest"));
    cr_expect(is_left(directory, "folder"), "a folder is no file");
    file_keep_newest("/nonexistent", 2);
    cr_assert_eq(rmdir(folder), 0);
    free(folder);
}
