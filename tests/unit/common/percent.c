/* SPDX-License-Identifier: Apache-2.0 */
#include "common/percent.h"

#include <criterion/criterion.h>

Test(percent, keeps_unreserved_bytes_and_those_that_are_named)
{
    SCOPED_BUFFER text = BUFFER_INIT(32);
    cr_assert_eq(percent_encode(&text, "aZ09-._~/+ \xc3\xbc%", "/", NULL), 0);
    cr_assert_str_eq(buffer_text(&text), "aZ09-._~/%2B%20%C3%BC%25");
}

Test(percent, fails_where_the_buffer_ends)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(4);
    cr_assert_lt(percent_encode(&text, "a//", "", &error), 0);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
}
