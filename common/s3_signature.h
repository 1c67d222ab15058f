/* SPDX-License-Identifier: Apache-2.0
 *
 * Signs requests to S3 with AWS signature version 4, and those to Google Cloud Storage with Google's, which is the same with other names.
 * Google Cloud Storage accepts both, but of the headers of the two families only those of one in a request, and its condition for writes
 * exists in its own family alone. libcurl can sign for AWS, too, but 7.88, which Debian 12 has, signs some requests with some headers
 * wrongly. Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_S3_SIGNATURE_H
#define COXSWAIN_COMMON_S3_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct s3_signing {
    const char *method;
    const char *host;  /* value of the header Host */
    const char *path;  /* percent-encoded, from the first slash on */
    const char *query; /* percent-encoded, sorted by name, each name with "="; "": none */
    bool is_google;    /* Google's signature and headers */
    bool
        if_absent; /* for Google: the header x-goog-if-generation-match: 0, so that the request fails if there is such an object */
    const char *crc; /* value of S3_META_CRC; NULL: the request has no such header */
    const void *body;
    size_t length;
    const char *key, *secret;
    const char *token; /* of temporary credentials; NULL: none. Google has none for keys */
    const char *region;
    int64_t now_ms; /* since 1970 */
};

/* The object's metadata, with the prefix of the family. */
#define S3_META_CRC "meta-coxswain-crc32c"
#define S3_AMAZON_PREFIX "x-amz-"
#define S3_GOOGLE_PREFIX "x-goog-"
/* Most headers that s3_sign returns. */
#define S3_SIGNED_HEADERS 6

/* Writes the signature's headers and those that the fields ask for, as lines "name: value"; release each with free(). Returns their
 * number. */
unsigned s3_sign(const struct s3_signing *signing, char *ret_lines[S3_SIGNED_HEADERS]);

#endif
