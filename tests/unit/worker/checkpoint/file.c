/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/file.h"

#include <criterion/criterion.h>
#include <errno.h>
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
