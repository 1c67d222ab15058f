/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/fetch.h"

#include <criterion/criterion.h>

Test(fetch, keys_outside_the_folder_are_refused)
{
    static const char *const unsafe[] = {"", "/", "/a", "a//b", "..", "a/..", "../a", "a/../b", ".", "a/./b", "a/"};
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        cr_assert_not(fetch_path_is_safe(unsafe[i]), "%s", unsafe[i]);
    static const char *const safe[] = {"a", "a/b", "..a", "a..", "...", ".a/b c"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        cr_assert(fetch_path_is_safe(safe[i]), "%s", safe[i]);
}
