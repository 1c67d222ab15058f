/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/paths.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/scope.h"

Test(paths, words_for_a_shell)
{
    static const struct {
        const char *word, *quoted;
    } cases[] = {{"--volume", "--volume"},     {"a=/b/c-d_e.yaml", "a=/b/c-d_e.yaml"},     {"", "''"},
                 {"two words", "'two words'"}, {"it's; rm -rf /", "'it'\\''s; rm -rf /'"}, {"$HOME", "'$HOME'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_FREE char *quoted = path_for_shell(cases[i].word);
        cr_assert_str_eq(quoted, cases[i].quoted);
    }
}

Test(paths, from_any_directory)
{
    cr_assert_eq(chdir("/tmp"), 0);
    SCOPED_FREE char *here = path_absolute("./digits.yaml"), *above = path_absolute("../x");
    SCOPED_FREE char *absolute = path_absolute("/data");
    cr_expect_str_eq(here, "/tmp/digits.yaml");
    cr_expect_str_eq(above, "/tmp/../x");
    cr_expect_str_eq(absolute, "/data");
}

Test(paths, for_people)
{
    setenv("HOME", "/home/ada", 1);
    SCOPED_FREE char *inside = path_for_people("/home/ada/x");
    SCOPED_FREE char *outside = path_for_people("/home/adam/x");
    cr_assert_str_eq(inside, "~/x");
    cr_assert_str_eq(outside, "/home/adam/x");
}
