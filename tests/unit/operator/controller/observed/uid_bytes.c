/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/uid_bytes.h"

#include <criterion/criterion.h>

Test(uid_bytes, a_uuid_comes_back)
{
    static const char *const uids[] = {"0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11", "00000000-0000-0000-0000-000000000000",
                                       "ffffffff-ffff-ffff-ffff-ffffffffffff"};
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        unsigned char bytes[UID_BYTES];
        char text[UID_TEXT_MAX];
        cr_assert(uid_bytes_parse(uids[i], bytes));
        uid_bytes_print(bytes, text);
        cr_expect_str_eq(text, uids[i]);
    }
}

Test(uid_bytes, what_would_not_come_back_is_no_uuid)
{
    static const char *const others[] = {"",
                                         "0",
                                         "uid-1",
                                         "0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c1",
                                         "0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c111",
                                         "0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11 ",
                                         "0B8F7F5E-54D1-4A55-A0A5-7D3C6C0D3C11",
                                         "0b8f7f5e54d14a55a0a57d3c6c0d3c11",
                                         "0b8f7f5e-54d1-4a55-a0a57-d3c6c0d3c11",
                                         "0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3cg1",
                                         "0b8f7f5e-54d1-4a55-a0a5-",
                                         "\xc3\xa9"
                                         "8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11"};
    unsigned char bytes[UID_BYTES];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_not(uid_bytes_parse(others[i], bytes), "%s", others[i]);
}
