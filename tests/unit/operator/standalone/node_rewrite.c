/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_rewrite.h"

#include <criterion/criterion.h>

#include "common/scope.h"

static const struct mount_point points[] = {
    {"/s/volumes/digits", "/coxswain/storage/digits", false},
    {"/s/volumes/digits-more", "/coxswain/storage/digits-more", false},
    {"/s/inner", "/coxswain/storage/digits/inner", false},
};

static void check(const char *text, const char *expected)
{
    SCOPED_FREE char *rewritten = paths_rewrite(text, points, sizeof points / sizeof *points);
    cr_assert_str_eq(rewritten, expected);
}

Test(node_rewrite, whole_values_lists_and_arguments)
{
    check("/coxswain/storage/digits", "/s/volumes/digits");
    check("A=/coxswain/storage/digits/x", "A=/s/volumes/digits/x");
    check("digits=/coxswain/storage/digits:more=/coxswain/storage/digits-more",
          "digits=/s/volumes/digits:more=/s/volumes/digits-more");
    check("{\"path\":\"/coxswain/storage/digits\"}", "{\"path\":\"/s/volumes/digits\"}");
}

Test(node_rewrite, the_longest_path_wins)
{
    check("/coxswain/storage/digits/inner/a", "/s/inner/a");
}

Test(node_rewrite, other_paths_stay)
{
    check("/coxswain/storage/digitsx", "/coxswain/storage/digitsx");
    check("/mnt/coxswain/storage/digits", "/mnt/coxswain/storage/digits");
    check("/coxswain/storage", "/coxswain/storage");
    check("", "");
}
