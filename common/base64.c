/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

#define GROUP 4 /* characters that stand for three bytes */
#define PADDING_MAX 2

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t length)
{
    char *text = memory_allocate((length + 2) / 3 * GROUP + 1, 1);
    EVP_EncodeBlock((unsigned char *)text, bytes, (int)length);
    return text;
}

/* OpenSSL forgives spaces and takes '=' anywhere; so the shape is judged here. */
static int check_shape(const char *text, size_t length, size_t *ret_padding, struct error *error)
{
    size_t letters = strspn(text, alphabet);
    size_t padding = strspn(text + letters, "=");
    if (length % GROUP != 0 || padding > PADDING_MAX || letters + padding != length)
        return error_set(error, ERROR_INVALID, "the value is not base64 text");
    *ret_padding = padding;
    return 0;
}

static char *without_line_ends(const char *text, size_t *ret_length)
{
    char *packed = memory_allocate(strlen(text) + 1, 1);
    size_t length = 0;
    for (; *text; text++)
        if (*text != '\n' && *text != '\r')
            packed[length++] = *text;
    *ret_length = length;
    return packed;
}

int base64_decode(const char *text, char **ret_bytes, size_t *ret_length, struct error *error)
{
    size_t length, padding;
    if (strlen(text) > BASE64_TEXT_MAX)
        return error_set(error, ERROR_TOO_LARGE, "more than %d bytes of base64", BASE64_TEXT_MAX);
    SCOPED_FREE char *packed = without_line_ends(text, &length);
    if (check_shape(packed, length, &padding, error) < 0)
        return -1;
    char *bytes = memory_allocate(length / GROUP * 3 + 1, 1);
    int decoded = EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)packed, (int)length);
    *ret_length = (size_t)decoded - padding;
    bytes[*ret_length] = '\0';
    *ret_bytes = bytes;
    return 0;
}
