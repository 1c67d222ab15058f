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
