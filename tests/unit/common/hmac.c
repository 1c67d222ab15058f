/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hmac.h"

#include <criterion/criterion.h>
#include <string.h>

/* RFC 4231, test case 2. */
Test(hmac, gives_the_codes_of_the_standard)
{
    static const unsigned char wanted[HMAC_BYTES] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                                     0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                                     0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    const char *message = "what do ya want for nothing?";
    unsigned char code[HMAC_BYTES];
    hmac_sha256("Jefe", 4, message, strlen(message), code);
    cr_assert(hmac_equal(code, wanted));
    code[31] ^= 1;
    cr_assert_not(hmac_equal(code, wanted));
}
