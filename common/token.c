/* SPDX-License-Identifier: Apache-2.0 */
#include "common/token.h"

#include <string.h>
#include <sys/random.h>

#include "common/hexadecimal.h"
#include "common/hmac.h"

int token_draw(char ret_token[TOKEN_LENGTH + 1], struct error *error)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set_errno(error, "draw a random token");
    hexadecimal_write(bytes, sizeof bytes, ret_token);
    return 0;
}

/* Compares codes of both: those have one length. */
bool token_matches(const char *token, const char *text, size_t length)
{
    unsigned char wanted[HMAC_BYTES], given[HMAC_BYTES];
    size_t token_length = strlen(token);
    hmac_sha256(token, token_length, token, token_length, wanted);
    hmac_sha256(token, token_length, text, length, given);
    return hmac_equal(wanted, given);
}
