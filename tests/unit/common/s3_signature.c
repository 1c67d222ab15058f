/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_signature.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"

/* The examples of AWS's documentation, "Signature Calculations for the Authorization Header". */
Test(s3_signature, agrees_with_the_examples_of_aws)
{
    static const char *const cases[][2] = {
        {"lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
        {"max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s3_signing signing = {.method = "GET",
                                     .host = "examplebucket.s3.amazonaws.com",
                                     .path = "/",
                                     .query = cases[i][0],
                                     .key = "AKIAIOSFODNN7EXAMPLE",
                                     .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                     .region = "us-east-1"};
        char *lines[S3_SIGNED_HEADERS];
        cr_assert(clock_parse("2013-05-24T00:00:00Z", &signing.now_ms));
        unsigned count = s3_sign(&signing, lines);
        cr_assert_eq(count, 3);
        cr_assert_str_eq(lines[1], "x-amz-date: 20130524T000000Z");
        cr_assert_not_null(strstr(lines[2], cases[i][1]), "%s", lines[2]);
        cr_assert_not_null(strstr(lines[2], "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"));
        for (unsigned j = 0; j < count; j++)
            free(lines[j]);
    }
}

/* Computed with Python's hmac from the rules of Google's documentation, "V4 signing process" and "Canonical requests". */
Test(s3_signature, has_the_names_and_the_condition_of_google)
{
    struct s3_signing signing = {.method = "PUT",
                                 .host = "storage.googleapis.com",
                                 .path = "/runs/name",
                                 .query = "",
                                 .is_google = true,
                                 .if_absent = true,
                                 .crc = "00c0ffee",
                                 .body = "first",
                                 .length = 5,
                                 .key = "GOOG1EXAMPLE",
                                 .secret = "the-secret-of-the-test",
                                 .token = "not for Google",
                                 .region = "auto"};
    static const char *const expected[] = {
        "x-goog-content-sha256: a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e",
        "x-goog-date: 20130524T000000Z", "x-goog-if-generation-match: 0", "x-goog-meta-coxswain-crc32c: 00c0ffee",
        "Authorization: GOOG4-HMAC-SHA256 Credential=GOOG1EXAMPLE/20130524/auto/storage/goog4_request,"
        "SignedHeaders=host;x-goog-content-sha256;x-goog-date;x-goog-if-generation-match;x-goog-meta-coxswain-crc32c,"
        "Signature=3f09eb7e34694a958184fdcc7b447d787d6a70e0ebb113de6db1a5d2c0d924b1"};
    char *lines[S3_SIGNED_HEADERS];
    cr_assert(clock_parse("2013-05-24T00:00:00Z", &signing.now_ms));
    cr_assert_eq(s3_sign(&signing, lines), 5);
    for (unsigned i = 0; i < 5; i++) {
        cr_expect_str_eq(lines[i], expected[i]);
        free(lines[i]);
    }
}
