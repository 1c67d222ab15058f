/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/sealed_document.h"

#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"

#define DIGEST_FORMAT ",\"digest\":\"%08x\"}"
#define DIGEST_BYTES 21 /* of the text that DIGEST_FORMAT gives */

int sealed_document_print(const struct json *document, struct buffer *out, struct error *error)
{
    size_t start = out->length;
    if (json_print(document, out, error) < 0)
        return -1;
    out->length--; /* the closing brace comes after the digest */
    char digest[DIGEST_BYTES + 1];
    snprintf(digest, sizeof digest, DIGEST_FORMAT, crc32c(0, out->data + start, out->length - start));
    return buffer_append_string(out, digest, error);
}

static int check_digest(const char *text, size_t length, struct error *error)
{
    if (length <= DIGEST_BYTES)
        return error_set(error, ERROR_CORRUPT, "its text is cut off after %zu bytes", length);
    char expected[DIGEST_BYTES + 1];
    size_t covered = length - DIGEST_BYTES;
    snprintf(expected, sizeof expected, DIGEST_FORMAT, crc32c(0, text, covered));
    if (memcmp(text + covered, expected, DIGEST_BYTES) != 0)
        return error_set(error, ERROR_CORRUPT, "its digest does not match its contents");
    return 0;
}

int sealed_document_parse(const char *text, size_t length, size_t ceiling, struct json **ret_document,
                          struct error *error)
{
    if (check_digest(text, length, error) < 0)
        return -1;
    return json_parse(text, length, ceiling, ret_document, error);
}
