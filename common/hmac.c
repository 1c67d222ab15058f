/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

void hmac_sha256(const void *key, size_t key_length, const void *message, size_t length,
                 unsigned char ret_code[HMAC_BYTES])
{
    unsigned size = HMAC_BYTES;
    /* Fails only without memory or in a build of OpenSSL without SHA-256. */
    if (!HMAC(EVP_sha256(), key, (int)key_length, message, length, ret_code, &size))
        abort();
}

bool hmac_equal(const unsigned char left[HMAC_BYTES], const unsigned char right[HMAC_BYTES])
{
    return CRYPTO_memcmp(left, right, HMAC_BYTES) == 0;
}
