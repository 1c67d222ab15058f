/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that a real server cannot be made to give. tests/s3 runs a real one.
 */
#include "common/s3_client.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "tests/unit/s3_server.h"
#include "tests/unit/test_certificate.h"

static struct scripted_server server;
static struct s3_client *client;
static struct error error;
static char text[64];

static void start(scripted_handler *handler)
{
    signal(SIGPIPE, SIG_IGN);
    error = (struct error)ERROR_INIT;
    client = s3_server_start(&server, handler);
}

static void end(void)
{
    s3_client_free(client);
    scripted_server_stop(&server);
}

static int get(const char *key, int64_t length)
{
    struct s3_range range = {.key = key, .etag = "\"e\"", .offset = 2, .length = length, .memory = text};
    return s3_get(client, &range, NULL, &error);
}

TestSuite(s3_client, .timeout = 60);

#define ERROR_TEXT(code) "<Error><Code>" code "</Code></Error>"

static void busy_twice(struct scripted_request *request)
{
    if (request->number < 2)
        scripted_reply(request, request->number ? 400 : 503, ERROR_TEXT("SlowDown"));
    else
        scripted_reply_with(request, 206, "ETag: \"e\"\r\nContent-Range: bytes 2-6/9\r\n", "hello");
}

Test(s3_client, a_busy_server_gets_the_request_again)
{
    start(busy_twice);
    cr_assert_eq(get("a b", 5), 0, "%s", error.message);
    cr_assert_eq(memcmp(text, "hello", 5), 0);
    cr_assert_eq(server.requests, 3);
    cr_assert_str_eq(server.log[0], "GET /runs/a%20b");
    end();
}

static void cut_once(struct scripted_request *request)
{
    if (request->number == 0) {
        scripted_send(request, "HTTP/1.1 206 X\r\nContent-Length: 5\r\n\r\nhe");
        request->close = true;
    } else {
        cr_assert_not_null(strstr(request->head, "Range: bytes=4-6\r\n"));
        cr_assert_not_null(strstr(request->head, "If-Match: \"e\"\r\n"));
        scripted_reply_with(request, 206, "", "llo");
    }
}

Test(s3_client, a_lost_connection_continues_where_it_was)
{
    start(cut_once);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    cr_assert_eq(memcmp(text, "hello", 5), 0);
    end();
}

static void drip(struct scripted_request *request)
{
    scripted_send(request, "HTTP/1.1 206 X\r\nContent-Length: 60\r\n\r\nx");
    request->close = true;
}

Test(s3_client, a_byte_at_a_time_is_no_progress)
{
    start(drip);
    cr_assert_lt(get("a", 60), 0);
    cr_assert_eq(error.kind, ERROR_UNAVAILABLE, "%s", error.message);
    cr_assert(strstr(error.message, "given up after"), "%s", error.message);
    end();
}

SCRIPTED_REPLY(more_than_asked, 206, "hello, world")
SCRIPTED_REPLY(replaced, 412, ERROR_TEXT("PreconditionFailed"))
SCRIPTED_REPLY(whole_object, 200, "hello")

Test(s3_client, wrong_ranges_are_found)
{
    start(more_than_asked);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT);
    end();
    start(whole_object);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT);
    end();
    start(replaced);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_CONFLICT);
    cr_assert_eq(server.requests, 1);
    end();
}

static void other_range(struct scripted_request *request)
{
    scripted_reply_with(request, 206, "ETag: e\r\nContent-Range: bytes 0-4/9\r\n", "hello");
}

static void other_version(struct scripted_request *request)
{
    scripted_reply_with(request, 206, "ETag: \"f\"\r\nContent-Range: bytes 2-6/9\r\n", "hello");
}

static void same_version(struct scripted_request *request)
{
    scripted_reply_with(request, 206, "ETag: W/\"e\"\r\nContent-Range: bytes 2-6/*\r\n", "hello");
}

Test(s3_client, ranges_and_versions_that_were_not_asked_for_are_refused)
{
    start(other_range);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
    start(other_version);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_CONFLICT, "%s", error.message);
    end();
    start(same_version);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    end();
}

static void answer_too_much(struct scripted_request *request)
{
    SCOPED_FREE char *bytes = memory_allocate(S3_ANSWER_MAX + 2, 1);
    memset(bytes, 'a', S3_ANSWER_MAX + 1);
    scripted_reply(request, 200, bytes);
}

Test(s3_client, an_answer_that_is_too_long_is_not_cut_off)
{
    start(answer_too_much);
    SCOPED_BUFFER buffer;
    buffer_init(&buffer, 2 * S3_ANSWER_MAX);
    cr_assert_lt(s3_get_whole(client, "a", &buffer, &error), 0);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE, "%s", error.message);
    end();
}

#define PAGE(more, objects) "<ListBucketResult><IsTruncated>" more "</IsTruncated>" objects "</ListBucketResult>"
SCRIPTED_REPLY(no_end, 200, PAGE("true", "<NextContinuationToken>t</NextContinuationToken>"))
SCRIPTED_REPLY(no_prefix, 200, PAGE("false", "<Contents><Key>a</Key><Size>1</Size></Contents>"))

Test(s3_client, listings_without_end_or_prefix_are_refused)
{
    struct s3_list list;
    start(no_end);
    cr_assert_lt(s3_list(client, "", 10, &list, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
    start(no_prefix);
    cr_assert_lt(s3_list(client, "a/long/prefix", 10, &list, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
}

static void wait_very_long(struct scripted_request *request)
{
    if (request->number == 0)
        scripted_reply_with(request, 503, "Retry-After: 9223372036854775807\r\n", "");
    else
        scripted_send(request, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n");
}

Test(s3_client, an_object_without_a_size_is_refused)
{
    struct s3_head head;
    start(wait_very_long);
    cr_assert_lt(s3_head(client, "a", &head, &error), 0);
    cr_assert_eq(error.kind, ERROR_UNAVAILABLE, "five seconds are longer than the patience: %s", error.message);
    cr_assert_lt(s3_head(client, "a", &head, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
}

/* The first attempt is carried out, but its answer is lost. */
static char stored[64];
static void lose_first_answer(struct scripted_request *request)
{
    if (strncmp(request->line, "PUT", 3) == 0 && request->number == 0) {
        snprintf(stored, sizeof stored, "%.60s", request->body);
        request->close = true;
    } else if (strncmp(request->line, "PUT", 3) == 0) {
        scripted_reply(request, 412, ERROR_TEXT("PreconditionFailed"));
    } else {
        scripted_reply(request, 200, stored);
    }
}

static void another_was_first(struct scripted_request *request)
{
    if (strncmp(request->line, "PUT", 3) == 0 && request->number == 0)
        request->close = true;
    else if (strncmp(request->line, "PUT", 3) == 0)
        scripted_reply(request, 412, ERROR_TEXT("PreconditionFailed"));
    else
        scripted_reply(request, 200, "theirs");
}

Test(s3_client, a_conditional_put_whose_answer_is_lost_counts_if_it_was_ours)
{
    start(lose_first_answer);
    cr_assert_eq(s3_put(client, "m", "ours!!", 6, S3_PUT_IF_ABSENT, &error), 0, "%s", error.message);
    end();
    start(another_was_first);
    cr_assert_lt(s3_put(client, "m", "ours!!", 6, S3_PUT_IF_ABSENT, &error), 0);
    cr_assert_eq(error.kind, ERROR_ALREADY_EXISTS);
    end();
}

static void give_other_bytes(struct scripted_request *request)
{
    char header[64];
    snprintf(header, sizeof header, "x-amz-meta-coxswain-crc32c: %08x\r\n", crc32c(0, "right", 5));
    scripted_reply_with(request, 200, header, request->number == 0 ? "right" : "wrong");
}

Test(s3_client, wrong_bytes_are_found)
{
    start(give_other_bytes);
    SCOPED_BUFFER buffer;
    buffer_init(&buffer, 100);
    cr_assert_eq(s3_get_whole(client, "a", &buffer, &error), 0, "%s", error.message);
    cr_assert_lt(s3_get_whole(client, "a", &buffer, &error), 0);
    cr_assert_eq(error.kind, ERROR_CORRUPT);
    end();
}

static void count_signatures(struct scripted_request *request)
{
    cr_assert_null(strstr(request->head, "Authorization:"));
    if (request->number == 0)
        scripted_reply_with(request, 206, "", "hello");
    else
        scripted_reply(request, 403, ERROR_TEXT("AccessDenied"));
}

Test(s3_client, without_credentials_requests_are_not_signed)
{
    start(count_signatures);
    unsetenv("AWS_ACCESS_KEY_ID");
    cr_assert_lt(get("a", 5), 0, "half of the credentials are none");
    cr_assert_eq(server.requests, 0);
    unsetenv("AWS_SECRET_ACCESS_KEY");
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    s3_client_free(client);
    client = s3_server_connect(&server);
    cr_assert_lt(get("a", 5), 0);
    cr_assert(strstr(error.message, "wants credentials") && strstr(error.message, "secretRef"), "%s", error.message);
    end();
}

static struct scripted_server elsewhere;
static void redirect(struct scripted_request *request)
{
    SCOPED_FREE char *header = memory_format("Location: http://127.0.0.1:%d/runs/a\r\n", elsewhere.port);
    scripted_reply_with(request, 307, header, "");
}

Test(s3_client, no_other_host_gets_the_signature)
{
    scripted_server_start(&elsewhere, count_signatures, NULL);
    start(redirect);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_not_null(strstr(error.message, "HTTP 307"), "%s", error.message);
    cr_assert_eq(server.requests, 1);
    cr_assert_eq(elsewhere.requests, 0);
    end();
    scripted_server_stop(&elsewhere);
}

static const char *refusal;
static void refuse(struct scripted_request *request)
{
    scripted_reply(request, 403, refusal);
}

Test(s3_client, refusals_are_one_sentence_and_come_at_once)
{
    static const struct {
        const char *answer, *words;
    } cases[] = {{ERROR_TEXT("InvalidAccessKeyId"), "correct AWS_ACCESS_KEY_ID"},
                 {ERROR_TEXT("SignatureDoesNotMatch"), "correct AWS_SECRET_ACCESS_KEY"},
                 {ERROR_TEXT("RequestTimeTooSkewed"), "clock"},
                 {ERROR_TEXT("NoSuchBucket"), "create it or correct its name"},
                 {ERROR_TEXT("AccessDenied"), "grant them"},
                 {ERROR_TEXT("InvalidBucketName"), "no name that a bucket can have"},
                 {ERROR_TEXT("AuthorizationHeaderMalformed"), "correct region"},
                 {"", "refuses these credentials"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refusal = cases[i].answer;
        start(refuse);
        cr_assert_lt(get("a", 5), 0);
        cr_assert_not_null(strstr(error.message, cases[i].words), "%s", error.message);
        cr_assert_null(strchr(error.message, '\n'));
        cr_assert_eq(server.requests, 1);
        end();
    }
}

static void refuse_as_malformed(struct scripted_request *request)
{
    scripted_reply(request, 400, ERROR_TEXT("InvalidRequest"));
}

Test(s3_client, a_malformed_request_is_not_repeated)
{
    start(refuse_as_malformed);
    cr_assert_lt(get("a", 5), 0);
    cr_assert_eq(error.kind, ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "see whether endpoint, region and bucket are right"), "%s", error.message);
    cr_assert_eq(server.requests, 1);
    end();
}

static void redirect_region(struct scripted_request *request)
{
    scripted_reply_with(request, 301, "x-amz-bucket-region: eu-west-1\r\n", "");
}

Test(s3_client, a_bucket_in_another_region_is_named_with_it)
{
    struct s3_list list;
    start(redirect_region);
    cr_assert_lt(s3_list(client, "a/b", 10, &list, &error), 0);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_not_null(strstr(error.message, "/runs?prefix=a/b: the bucket is in another region; correct region and "
                                             "endpoint: its region is eu-west-1"),
                       "%s", error.message);
    cr_assert_eq(server.requests, 1);
    end();
}

static char credentials_folder[] = "/tmp/coxswain-s3-client-XXXXXX";

static void write_credential(const char *name, const char *value)
{
    SCOPED_FREE char *path = memory_format("%s/%s", credentials_folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(value, file) >= 0 && fclose(file) == 0);
}

/* The key is new already, and its secret is replaced a moment later. */
static void refuse_once(struct scripted_request *request)
{
    if (request->number == 0) {
        write_credential("AWS_SECRET_ACCESS_KEY", "right");
        scripted_reply(request, 403, ERROR_TEXT("SignatureDoesNotMatch"));
    } else {
        scripted_reply_with(request, 206, "", "hello");
    }
}

static void expect_with_files(scripted_handler *handler, int result, int requests)
{
    struct s3_client *own;
    char bytes[5];
    start(handler);
    SCOPED_FREE char *endpoint = memory_format("http://127.0.0.1:%d", server.port);
    struct s3_options options = {.endpoint = endpoint, .bucket = "runs", .credentials = credentials_folder};
    struct s3_range range = {.key = "a", .length = 5, .memory = bytes};
    cr_assert_eq(s3_client_new(&options, &own, &error), 0, "%s", error.message);
    cr_assert_eq(s3_get(own, &range, NULL, &error), result, "%s", error.message);
    cr_assert_eq(server.requests, requests);
    s3_client_free(own);
    end();
}

Test(s3_client, refused_credentials_in_files_are_read_once_more)
{
    cr_assert_not_null(mkdtemp(credentials_folder));
    write_credential("AWS_ACCESS_KEY_ID", "new");
    write_credential("AWS_SECRET_ACCESS_KEY", "of-before");
    expect_with_files(refuse_once, 0, 2);
    refusal = ERROR_TEXT("AccessDenied");
    int64_t begin_ms = clock_monotonic_ms();
    expect_with_files(refuse, -1, 2);
    cr_assert_lt(clock_monotonic_ms() - begin_ms, 6000);
    cr_assert_null(strstr(error.message, "given up"), "%s", error.message);
}

static void rotate(struct scripted_request *request)
{
    bool is_new = strstr(request->head, "Credential=new/") != NULL;
    if (request->number == 0 || is_new) {
        scripted_reply_with(request, 206, "", "hello");
    } else {
        setenv("AWS_ACCESS_KEY_ID", "new", 1);
        scripted_reply(request, 403, ERROR_TEXT("ExpiredToken"));
    }
}

Test(s3_client, credentials_that_are_rotated_take_effect)
{
    start(rotate);
    cr_assert_eq(get("a", 5), 0);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    cr_assert_eq(server.requests, 3);
    end();
}

/* AWS answers so to a HEAD with a session token that has expired: such an answer has no body, and so no code. */
static void rotate_after_400(struct scripted_request *request)
{
    bool is_good = request->number == 0 || strstr(request->head, "Credential=new/");
    if (!is_good)
        setenv("AWS_ACCESS_KEY_ID", "new", 1);
    scripted_send(request, is_good ? "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n"
                                   : "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n");
}

Test(s3_client, credentials_that_expire_before_a_head_are_read_again)
{
    struct s3_head head;
    start(rotate_after_400);
    cr_assert_eq(s3_head(client, "a", &head, &error), 0, "%s", error.message);
    cr_assert_eq(s3_head(client, "a", &head, &error), 0, "%s", error.message);
    cr_assert_eq(server.requests, 3);
    end();
}

/* The greeting of another protocol; libcurl reports the rest of an earlier answer in the same way. */
static void speak_another_protocol(struct scripted_request *request)
{
    if (request->number == 0) {
        scripted_send(request, "220 mail.example.com\r\n");
        request->close = true;
    } else {
        scripted_reply_with(request, 206, "", "hello");
    }
}

Test(s3_client, an_answer_that_is_not_http_is_asked_for_again)
{
    start(speak_another_protocol);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    cr_assert_eq(server.requests, 2);
    end();
}

static char ca_path[] = "/tmp/s3-ca-XXXXXX/ca.crt";
static struct test_certificate authorities[2], owns[2];

static void write_ca(const char *pem)
{
    FILE *file = fopen(ca_path, "w");
    cr_assert(file && fputs(pem, file) >= 0 && fclose(file) == 0);
}

static void *write_new_ca(void *context)
{
    (void)context;
    usleep(300000);
    write_ca(authorities[1].certificate_pem);
    return NULL;
}

static void greet_and_close(struct scripted_request *request)
{
    scripted_reply_with(request, 206, "", "hello");
    request->close = true;
}

/* The server's certificate is replaced first, and the kubelet updates the Secret's files a little later. */
Test(s3_client, an_authority_that_is_rotated_takes_effect)
{
    pthread_t writer;
    start(greet_and_close);
    s3_client_free(client);
    scripted_server_stop(&server);
    for (int i = 0; i < 2; i++) {
        authorities[i] = test_certificate_make(i ? "new" : "old", NULL, NULL);
        owns[i] = test_certificate_make("s3", "IP:127.0.0.1", &authorities[i]);
    }
    *strrchr(ca_path, '/') = '\0';
    cr_assert(mkdtemp(ca_path));
    SCOPED_FREE char *folder = memory_copy_string(ca_path);
    ca_path[strlen(ca_path)] = '/';
    write_ca(authorities[0].certificate_pem);
    scripted_server_start(&server, greet_and_close, test_tls_server(&owns[0], NULL));
    SCOPED_FREE char *endpoint = memory_format("https://127.0.0.1:%d", server.port);
    struct s3_options options = {.endpoint = endpoint, .bucket = "runs", .credentials = folder, .patience_ms = 5000};
    cr_assert_eq(s3_client_new(&options, &client, &error), 0, "%s", error.message);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    SSL_CTX_free(server.tls);
    server.tls = test_tls_server(&owns[1], NULL);
    pthread_create(&writer, NULL, write_new_ca, NULL);
    cr_assert_eq(get("a", 5), 0, "%s", error.message);
    pthread_join(writer, NULL);
    unlink(ca_path);
    rmdir(folder);
    end();
    for (int i = 0; i < 2; i++) {
        test_certificate_release(&authorities[i]);
        test_certificate_release(&owns[i]);
    }
}

static void error_in_success(struct scripted_request *request)
{
    scripted_reply(request, 200, request->number ? "<CompleteMultipartUploadResult/>" : ERROR_TEXT("InternalError"));
}

Test(s3_client, an_error_with_status_200_is_an_error)
{
    char etags[1][S3_ETAG_MAX] = {"\"e\""};
    start(error_in_success);
    cr_assert_eq(s3_parts_end(client, "a", "id", etags, 1, 0, 5, &error), 0, "%s", error.message);
    cr_assert_eq(server.requests, 2);
    end();
}

Test(s3_client, wrong_options_are_refused)
{
    static const char *const endpoints[] = {"",           "s3.example.com", "ftp://x", "http://",
                                            "http://a/b", "http://u@a",     NULL};
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        struct s3_options options = {.endpoint = endpoints[i], .bucket = "b"};
        cr_assert_lt(s3_client_new(&options, &client, &error), 0);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}
