/* SPDX-License-Identifier: Apache-2.0
 *
 * Signs requests to S3 with AWS signature version 4. libcurl can sign, too, but 7.88, which Debian 12 has, signs some
 * requests with some headers wrongly. Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_S3_SIGNATURE_H
#define COXSWAIN_COMMON_S3_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

struct s3_signing {
    const char *method;
    const char *host;  /* value of the header Host */
    const char *path;  /* percent-encoded, from the first slash on */
    const char *query; /* percent-encoded, sorted by name, each name with "="; "": none */
    const char *crc;   /* value of S3_META_CRC; NULL: the request has no such header */
    const void *body;
    size_t length;
    const char *key, *secret;
    const char *token; /* of temporary credentials; NULL: none */
    const char *region;
    int64_t now_ms; /* since 1970 */
};

#define S3_META_CRC "x-amz-meta-coxswain-crc32c"
/* Most headers that s3_sign returns. */
#define S3_SIGNED_HEADERS 5

/* Writes the signature's headers and, if `crc` is given, S3_META_CRC, as lines "name: value"; release each with free(). Returns their
 * number. */
unsigned s3_sign(const struct s3_signing *signing, char *ret_lines[S3_SIGNED_HEADERS]);

#endif
