/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_answer.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"

static struct s3_list list;
static struct error error;

static int parse(const char *xml)
{
    error = (struct error)ERROR_INIT;
    return s3_list_parse(xml, strlen(xml), 3, &list, &error);
}

#define OBJECT(key) "<Contents><Key>" key "</Key><ETag>&quot;e&quot;</ETag><Size>7</Size></Contents>"
#define RAW_PAGE(more, objects) "<ListBucketResult><IsTruncated>" more "</IsTruncated>" objects "</ListBucketResult>"
#define PAGE(more, objects) RAW_PAGE(more, objects "<EncodingType>url</EncodingType>")

Test(s3_answer, pages_are_appended)
{
    cr_assert_eq(
        parse(PAGE("true", "<NextContinuationToken>t</NextContinuationToken>" OBJECT("a%2Fb+c%2B") OBJECT("d"))), 0);
    cr_assert_str_eq(list.next_page, "t");
    cr_assert_eq(parse(PAGE("false", OBJECT("e"))), 0);
    cr_assert_null(list.next_page);
    cr_assert_eq(list.count, 3);
    cr_assert_str_eq(list.objects[0].key, "a/b c+");
    cr_assert_str_eq(list.objects[0].etag, "\"e\"");
    cr_assert_eq(list.objects[2].size, 7);
    cr_assert_lt(parse(PAGE("false", OBJECT("f"))), 0);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
    s3_list_release(&list);
}

Test(s3_answer, keys_of_a_server_that_does_not_encode_them_are_taken_as_they_stand)
{
    cr_assert_eq(parse(RAW_PAGE("false", OBJECT("a+b%2Fc") OBJECT("100%"))), 0, "%s", error.message);
    cr_assert_str_eq(list.objects[0].key, "a+b%2Fc");
    cr_assert_str_eq(list.objects[1].key, "100%");
    s3_list_release(&list);
}

Test(s3_answer, a_last_page_may_have_a_token)
{
    cr_assert_eq(parse(PAGE("false", OBJECT("a") "<NextContinuationToken></NextContinuationToken>")), 0, "%s",
                 error.message);
    cr_assert_null(list.next_page);
    cr_assert_eq(list.count, 1);
    s3_list_release(&list);
}

Test(s3_answer, answers_that_are_not_pages_are_refused)
{
    SCOPED_FREE char *key = memory_allocate(3 * S3_KEY_MAX + 10, 1);
    memset(key, 'k', S3_KEY_MAX + 1);
    SCOPED_FREE char *long_key =
        memory_format("<ListBucketResult><Contents><Key>%s</Key><Size>1</Size></Contents></ListBucketResult>", key);
    const char *wrong[] = {"",
                           "<html></html>",
                           "<ListBucketResult>",
                           PAGE("true", OBJECT("a")),
                           PAGE("true", OBJECT("a") "<NextContinuationToken/>"),
                           "<a234567890123456789012345678901234567890123456789012345678901234567890/>",
                           PAGE("false", OBJECT("a%00b")),
                           PAGE("false", OBJECT("a%2")),
                           PAGE("false", OBJECT("")),
                           PAGE("false", "<Contents><Key>a</Key><Size>-1</Size></Contents>"),
                           PAGE("false", "<Contents><Key>a</Key></Contents>"),
                           "<ListBucketResult><a><b><c><d/></c></b></a></ListBucketResult>",
                           "<!DOCTYPE x [<!ENTITY e \"1\">]><ListBucketResult>&e;</ListBucketResult>",
                           long_key};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_lt(parse(wrong[i]), 0, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", wrong[i]);
        s3_list_release(&list);
    }
}

Test(s3_answer, failures_and_upload_ids)
{
    struct s3_failure failure;
    const char *text = "<Error><Code>SlowDown</Code><Message>a\nb</Message></Error>";
    s3_failure_parse(text, strlen(text), &failure);
    cr_assert_str_eq(failure.code, "SlowDown");
    cr_assert_str_eq(failure.message, "a b");
    text =
        " \r\n\n<?xml version=\"1.0\"?> <Error><Code>InternalError</Code></Error>"; /* after a long work of the server */
    s3_failure_parse(text, strlen(text), &failure);
    cr_assert_str_eq(failure.code, "InternalError");
    s3_failure_parse("nonsense", 8, &failure);
    cr_assert_str_eq(failure.code, "");
    char *id = NULL;
    text = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
    cr_assert_eq(s3_upload_id_parse(text, strlen(text), &id, &error), 0);
    cr_assert_str_eq(id, "u");
    free(id);
    cr_assert_lt(s3_upload_id_parse("<a/>", 4, &id, &error), 0);
}
