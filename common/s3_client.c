/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "common/percent.h"
#include "common/s3_identity.h"
#include "common/s3_signature.h"

#define PATIENCE_MS 120000
#define WAIT_LEAST_MS 100
#define WAIT_MOST_MS 5000
#define REFUSED_WAIT_MS 3000 /* before credentials that were refused are read once more */
#define CONNECT_MS 10000
#define SLOW_SECONDS 30  /* a connection that has been slower than the limit for so long is ended */
#define SLOW_BYTES 1024L /* the limit for a range, per second; for other requests it is one byte */
#define PROGRESS_BYTES ((int64_t)256 * 1024)
#define CREDENTIAL_MAX 16384
#define HANDLES_MAX 64       /* idle connections that are kept */
#define EMPTY_PAGES_MAX 1000 /* one after the other, before a listing counts as endless */

#define S3_REGION_MAX 64

struct s3_client {
    char *url; /* of the bucket */
    char *endpoint, *host, *bucket, *region, *credentials;
    struct s3_identity *identity; /* of the pod's service account; NULL: it has none, or there are credentials */
    bool is_google;               /* Google's headers and signature */
    int64_t patience_ms;
    pthread_mutex_t lock;
    CURL *idle[HANDLES_MAX];
    unsigned idle_count;
    bool has_succeeded; /* a request has; its credentials were valid */
};

/* A request, and the answer to its last attempt. */
struct exchange {
    struct s3_client *client;
    const char *method, *key, *query; /* the query is sorted and escaped, as the signature requires */
    const char *listed;               /* of a listing: the beginning of the keys; else NULL */
    struct curl_slist *headers;
    const void *body;
    size_t body_length;
    char crc[9];                  /* of the object that is written; "": none */
    bool if_absent;               /* the request has to fail if there is such an object */
    bool needs_new_connection;    /* over a kept one libcurl itself may send the request a second time */
    const struct s3_range *range; /* NULL: the body of the answer goes to `answer` */
    int64_t received;             /* bytes of the range, in all attempts */
    int64_t received_before;      /* bytes of the range, before this attempt */
    uint32_t range_crc;           /* of the received bytes */
    bool sink_failed;             /* the body was refused, or could not be stored: no further attempt */
    struct error sink_error;
    CURL *handle;
    long status;
    struct buffer answer;
    struct s3_failure failure;  /* the error document */
    char region[S3_REGION_MAX]; /* of the bucket, as a server says that is in another one; "": unknown */
    struct s3_head head;
    int64_t retry_after_ms;
    int64_t first, total; /* from Content-Range: the offset of the body, and the size of the object; -1: unknown */
    bool is_anonymous;    /* there are no credentials */
    bool was_repeated;    /* the server may have carried out an earlier attempt */
};

/* ---------------------------------------------------------------- life */

static void start_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_options(const struct s3_options *options, struct error *error)
{
    const char *endpoint = options->endpoint ? options->endpoint : "";
    const char *host = strncmp(endpoint, "https://", 8) == 0  ? endpoint + 8
                       : strncmp(endpoint, "http://", 7) == 0 ? endpoint + 7
                                                              : "";
    size_t length = strcspn(host, "/?#@");
    if (length == 0 || (host[length] != '\0' && strcmp(host + length, "/") != 0))
        return error_set(
            error, ERROR_INVALID,
            "endpoint \"%s\" is not the address of object storage; write https://host or http://host:port, "
            "without a path",
            endpoint);
    if (!options->bucket || *options->bucket == '\0' || strchr(options->bucket, '/'))
        return error_set(error, ERROR_INVALID, "bucket \"%s\" is not a valid name of a bucket",
                         options->bucket ? options->bucket : "");
    return 0;
}

/* The value of the header Host: without the port if that is the scheme's default. */
static char *host_header(const char *endpoint)
{
    bool is_tls = strncmp(endpoint, "https", 5) == 0;
    char *host = memory_copy_string(strstr(endpoint, "://") + 3);
    const char *port = is_tls ? ":443" : ":80";
    size_t length = strlen(host), tail = strlen(port);
    if (length > tail && strcmp(host + length - tail, port) == 0)
        host[length - tail] = '\0';
    return host;
}

/* Google Cloud Storage has regional and private hosts, too (storage.REGION.rep, storage-NAME.p). */
static bool is_google_host(const char *host)
{
    static const char domain[] = ".googleapis.com";
    size_t length = strcspn(host, ":"), tail = strlen(domain);
    return length > tail && strncasecmp(host + length - tail, domain, tail) == 0;
}

/* Returns the file of that name without the white space around its text, else the environment variable; NULL if there is neither. */
static int credential_read(const struct s3_client *client, const char *name, char **ret_text, struct error *error)
{
    SCOPED_BUFFER text;
    buffer_init(&text, CREDENTIAL_MAX);
    struct error why = ERROR_INIT;
    *ret_text = NULL;
    if (client->credentials) {
        SCOPED_FREE char *path = memory_format("%s/%s", client->credentials, name);
        if (buffer_read_file(&text, path, &why) == 0) {
            const char *begin = buffer_text(&text) + strspn(buffer_text(&text), " \t\r\n");
            *ret_text = memory_copy_bytes(begin, strcspn(begin, " \t\r\n"));
            return 0;
        }
        if (why.kind != ERROR_NOT_FOUND) {
            if (error)
                *error = why;
            return -1;
        }
    }
    *ret_text = memory_copy_string(getenv(name));
    return 0;
}

/* Returns the identity of the pod's service account; NULL if it has none for this host, or there is a key. */
static struct s3_identity *find_identity(const struct s3_client *client)
{
    SCOPED_FREE char *key = NULL;
    SCOPED_FREE char *ca_file = client->credentials ? memory_format("%s/ca.crt", client->credentials) : NULL;
    bool has_key = credential_read(client, "AWS_ACCESS_KEY_ID", &key, NULL) < 0 || (key && *key);
    return !has_key && s3_identity_is_for(client->host) ? s3_identity_new(client->region, ca_file) : NULL;
}

int s3_client_new(const struct s3_options *options, struct s3_client **ret_client, struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (check_options(options, error) < 0)
        return -1;
    pthread_once(&once, start_library);
    struct s3_client *client = memory_allocate(1, sizeof *client);
    size_t length = strlen(options->endpoint);
    client->endpoint = memory_copy_bytes(options->endpoint, length - (options->endpoint[length - 1] == '/'));
    client->bucket = memory_copy_string(options->bucket);
    client->url = memory_format("%s/%s", client->endpoint, client->bucket);
    client->host = host_header(client->endpoint);
    client->is_google = is_google_host(client->host);
    const char *region = client->is_google ? "auto" : "us-east-1";
    client->region = memory_copy_string(options->region && *options->region ? options->region : region);
    client->credentials = memory_copy_string(options->credentials);
    client->identity = find_identity(client);
    client->patience_ms = options->patience_ms > 0 ? options->patience_ms : PATIENCE_MS;
    pthread_mutex_init(&client->lock, NULL);
    *ret_client = client;
    return 0;
}

const char *s3_client_url(const struct s3_client *client)
{
    return client->url;
}

void s3_client_free(struct s3_client *client)
{
    while (client->idle_count > 0)
        curl_easy_cleanup(client->idle[--client->idle_count]);
    pthread_mutex_destroy(&client->lock);
    s3_identity_free(client->identity);
    free(client->url);
    free(client->endpoint);
    free(client->bucket);
    free(client->host);
    free(client->region);
    free(client->credentials);
    free(client);
}

static CURL *handle_take(struct s3_client *client)
{
    pthread_mutex_lock(&client->lock);
    CURL *handle = client->idle_count > 0 ? client->idle[--client->idle_count] : NULL;
    pthread_mutex_unlock(&client->lock);
    if (handle)
        curl_easy_reset(handle); /* keeps the connection */
    return handle ? handle : curl_easy_init();
}

static void handle_give_back(struct s3_client *client, CURL *handle)
{
    pthread_mutex_lock(&client->lock);
    bool kept = client->idle_count < HANDLES_MAX;
    if (kept)
        client->idle[client->idle_count++] = handle;
    pthread_mutex_unlock(&client->lock);
    if (!kept)
        curl_easy_cleanup(handle);
}

/* ---------------------------------------------------------------- credentials */

static int read_credentials(struct s3_client *client, char **ret_key, char **ret_secret, char **ret_token,
                            struct error *error)
{
    if (client->identity)
        return s3_identity_credentials(client->identity, ret_key, ret_secret, ret_token, error);
    if (credential_read(client, "AWS_ACCESS_KEY_ID", ret_key, error) < 0 ||
        credential_read(client, "AWS_SECRET_ACCESS_KEY", ret_secret, error) < 0)
        return -1;
    return credential_read(client, "AWS_SESSION_TOKEN", ret_token, error);
}

/* Adds the headers of the signature. Without any credentials the request stays unsigned. */
static int sign(struct exchange *exchange, const char *path, struct curl_slist **headers, struct error *error)
{
    SCOPED_FREE char *key = NULL, *secret = NULL, *token = NULL;
    struct s3_client *client = exchange->client;
    if (read_credentials(client, &key, &secret, &token, error) < 0)
        return -1;
    exchange->is_anonymous = !client->credentials && (!key || !*key) && (!secret || !*secret);
    if (exchange->is_anonymous && exchange->if_absent && client->is_google)
        *headers = curl_slist_append(*headers, "x-goog-if-generation-match: 0");
    if (exchange->is_anonymous)
        return 0;
    if (!key || !*key || !secret || !*secret)
        return error_set(
            error, ERROR_FORBIDDEN,
            "there are no credentials for object storage: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY %s%s",
            client->credentials ? "in the Secret, as files in " : "in the environment",
            client->credentials ? client->credentials : "");
    struct s3_signing signing = {.method = exchange->method,
                                 .host = client->host,
                                 .path = path,
                                 .query = exchange->query,
                                 .is_google = client->is_google,
                                 .if_absent = exchange->if_absent,
                                 .crc = *exchange->crc ? exchange->crc : NULL,
                                 .body = exchange->body,
                                 .length = exchange->body_length,
                                 .key = key,
                                 .secret = secret,
                                 .token = token && *token ? token : NULL,
                                 .region = client->region,
                                 .now_ms = clock_now_ms()};
    char *lines[S3_SIGNED_HEADERS];
    unsigned count = s3_sign(&signing, lines);
    for (unsigned i = 0; i < count; i++) {
        *headers = curl_slist_append(*headers, lines[i]);
        free(lines[i]);
    }
    return 0;
}

/* ---------------------------------------------------------------- one attempt */

/* Encodes as the signature requires; in a path "/" stays. */
static char *escape(const char *text, bool is_path)
{
    SCOPED_BUFFER result;
    buffer_init(&result, 3 * strlen(text));
    percent_encode(&result, text, is_path ? "/" : "", NULL);
    return buffer_take(&result);
}

/* Compares ETags without their quotes and the W/ of a weak one: some servers put these in listings and not in headers, or the reverse. */
static bool same_etag(const char *left, const char *right)
{
    left += strncmp(left, "W/", 2) == 0 ? 2 : 0;
    right += strncmp(right, "W/", 2) == 0 ? 2 : 0;
    left += strspn(left, "\"");
    right += strspn(right, "\"");
    size_t length = strcspn(left, "\"");
    return length == strcspn(right, "\"") && strncmp(left, right, length) == 0;
}

/* Checks that the next `length` bytes belong to the range: some servers and caches ignore If-Match, or send other bytes than requested. */
static int check_range(struct exchange *exchange, long status, size_t length)
{
    const struct s3_range *range = exchange->range;
    const char *etag = exchange->head.etag;
    int64_t first = status != 206         ? 0
                    : exchange->first < 0 ? range->offset + exchange->received_before
                                          : exchange->first;
    if (range->etag && *range->etag && *etag && !same_etag(etag, range->etag))
        return error_set(&exchange->sink_error, ERROR_CONFLICT, "the object has been replaced while it was read");
    /* A server that does not support ranges sends the whole object, which can only be used if the range begins at 0. */
    if (first != range->offset + exchange->received_before || (int64_t)length > range->length - exchange->received)
        return error_set(
            &exchange->sink_error, ERROR_CORRUPT,
            "the server did not send the range of bytes that was requested; it may not support Range requests");
    return 0;
}

/* Stores bytes of the range behind those that were received before. */
static int store_bytes(struct exchange *exchange, const char *bytes, size_t length)
{
    const struct s3_range *range = exchange->range;
    if (range->memory) {
        memcpy((char *)range->memory + exchange->received, bytes, length);
        return 0;
    }
    for (size_t done = 0; done < length;) {
        ssize_t written = pwrite(range->file, bytes + done, length - done,
                                 (off_t)(range->file_offset + exchange->received + (int64_t)done));
        if (written <= 0)
            return error_set_errno(&exchange->sink_error, "write the local copy of %s", exchange->key);
        done += (size_t)written;
    }
    return 0;
}

static size_t receive_body(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t length = size * count;
    long status = 0;
    curl_easy_getinfo(exchange->handle, CURLINFO_RESPONSE_CODE, &status);
    const struct s3_range *range = exchange->range;
    if (!range || status / 100 != 2) {
        if (buffer_append(&exchange->answer, bytes, length, &exchange->sink_error) == 0)
            return length;
        exchange->sink_failed = status / 100 == 2; /* the beginning of an error document is enough */
        return 0;
    }
    if (check_range(exchange, status, length) < 0 || store_bytes(exchange, bytes, length) < 0) {
        exchange->sink_failed = true;
        return 0;
    }
    if (range->crc && exchange->head.has_crc)
        exchange->range_crc = crc32c(exchange->range_crc, bytes, length);
    exchange->received += (int64_t)length;
    return length;
}

/* The value in a header line; NULL if the header has another name. */
static const char *header_value(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    return line + length + 1 + strspn(line + length + 1, " \t");
}

static size_t receive_header(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    SCOPED_FREE char *line = memory_copy_bytes(bytes, size * count);
    line[strcspn(line, "\r\n")] = '\0';
    const char *value;
    struct s3_head *head = &exchange->head;
    if ((value = header_value(line, "ETag")) && strlen(value) < S3_ETAG_MAX)
        memcpy(head->etag, value, strlen(value) + 1);
    if ((value = header_value(line, "x-amz-bucket-region")) && strlen(value) < S3_REGION_MAX)
        memcpy(exchange->region, value, strlen(value) + 1);
    const char *crc = header_value(line, S3_AMAZON_PREFIX S3_META_CRC);
    value = crc ? crc : header_value(line, S3_GOOGLE_PREFIX S3_META_CRC);
    if (value && strlen(value) == 8) {
        char *end;
        head->crc = (uint32_t)strtoul(value, &end, 16);
        head->has_crc = *end == '\0';
    }
    if ((value = header_value(line, "Content-Range")) && strncasecmp(value, "bytes ", 6) == 0) {
        exchange->first = strtoll(value + 6, NULL, 10);
        value = strchr(value, '/');
        exchange->total = value && value[1] != '*' ? strtoll(value + 1, NULL, 10) : -1;
    }
    return size * count;
}

static void set_method(const struct exchange *exchange, CURL *handle)
{
    if (strcmp(exchange->method, "HEAD") == 0)
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    /* With CURLOPT_POST libcurl sends a body from memory; CURLOPT_CUSTOMREQUEST makes it a PUT. */
    if (exchange->body) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_length);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, exchange->body);
    }
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, exchange->method);
}

static void set_range(const struct exchange *exchange, CURL *handle)
{
    const struct s3_range *range = exchange->range;
    SCOPED_FREE char *text =
        memory_format("%" PRId64 "-%" PRId64, range->offset + exchange->received, range->offset + range->length - 1);
    curl_easy_setopt(handle, CURLOPT_RANGE, text);
}

static void set_limits(CURL *handle, bool is_range)
{
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION,
                     (long)CURL_HTTP_VERSION_1_1); /* so that each request has a connection of its own */
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, is_range ? SLOW_BYTES : 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 262144L);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, 262144L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "coxswain");
}

/* Sends the request once. Returns libcurl's result; fails before anything is sent if the credentials cannot be read, or one of the two keys
 * is missing. */
static int attempt(struct exchange *exchange, CURLcode *ret_result, struct error *error)
{
    struct s3_client *client = exchange->client;
    CURL *handle = handle_take(client);
    if (!handle)
        return error_set(error, ERROR_NO_SPACE, "not enough memory for a connection to the object storage");
    buffer_clear(&exchange->answer);
    exchange->handle = handle;
    exchange->status = 0;
    exchange->head = (struct s3_head){.size = -1};
    exchange->first = exchange->total = -1;
    exchange->retry_after_ms = 0;
    exchange->region[0] = '\0';
    exchange->received_before = exchange->received;
    exchange->sink_error = (struct error)ERROR_INIT;
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    for (const struct curl_slist *item = exchange->headers; item; item = item->next)
        headers = curl_slist_append(headers, item->data);
    SCOPED_FREE char *host = memory_format("Host: %s", client->host), *key = escape(exchange->key, true);
    SCOPED_FREE char *path = memory_format("/%s%s%s", client->bucket, *key ? "/" : "", key);
    SCOPED_FREE char *url =
        memory_format("%s%s%s%s", client->endpoint, path, *exchange->query ? "?" : "", exchange->query);
    SCOPED_FREE char *ca_file = memory_format("%s/ca.crt", client->credentials ? client->credentials : "");
    headers = curl_slist_append(headers, host);
    int result = sign(exchange, path, &headers, error);
    if (result == 0) {
        if (client->credentials && access(ca_file, R_OK) == 0)
            curl_easy_setopt(handle, CURLOPT_CAINFO, ca_file);
        set_limits(handle, exchange->range != NULL);
        set_method(exchange, handle);
        if (exchange->range)
            set_range(exchange, handle);
        curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, (long)exchange->needs_new_connection);
        curl_easy_setopt(handle, CURLOPT_URL, url);
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receive_body);
        curl_easy_setopt(handle, CURLOPT_WRITEDATA, exchange);
        curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, receive_header);
        curl_easy_setopt(handle, CURLOPT_HEADERDATA, exchange);
        *ret_result = curl_easy_perform(handle);
        curl_off_t length = -1, seconds = 0;
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &exchange->status);
        curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
        exchange->retry_after_ms = seconds <= 0 ? 0 : seconds > WAIT_MOST_MS / 1000 ? WAIT_MOST_MS : seconds * 1000;
        curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        exchange->head.size = exchange->total >= 0 ? exchange->total : length;
    }
    curl_slist_free_all(headers);
    exchange->handle = NULL;
    handle_give_back(client, handle);
    return result;
}

/* ---------------------------------------------------------------- errors that servers report */

struct meaning {
    const char *code;
    enum error_kind kind;
    const char *sentence;
};
static const struct meaning meanings[] = {
    {"InvalidAccessKeyId", ERROR_FORBIDDEN, "the server does not know this access key; correct AWS_ACCESS_KEY_ID"},
    {"SignatureDoesNotMatch", ERROR_FORBIDDEN, "the secret key is wrong; correct AWS_SECRET_ACCESS_KEY"},
    {"ExpiredToken", ERROR_FORBIDDEN, "the session token has expired; renew the credentials"},
    {"TokenRefreshRequired", ERROR_FORBIDDEN, "the session token has expired; renew the credentials"},
    {"InvalidToken", ERROR_FORBIDDEN, "the session token is wrong; correct AWS_SESSION_TOKEN"},
    {"InvalidTokenId", ERROR_FORBIDDEN, "the session token is wrong; correct AWS_SESSION_TOKEN"},
    {"RequestTimeTooSkewed", ERROR_FORBIDDEN, "this machine's clock differs too much from the server's; correct it"},
    {"AccessDenied", ERROR_FORBIDDEN,
     "these credentials may not do it; grant them reading, writing, listing and deleting in the bucket"},
    {"NoSuchBucket", ERROR_NOT_FOUND, "there is no such bucket; create it or correct its name"},
    {"NoSuchKey", ERROR_NOT_FOUND, "there is no such object"},
    {"PreconditionFailed", ERROR_ALREADY_EXISTS, "there is an object of that name already"},
    {"InvalidBucketName", ERROR_INVALID, "this is no name that a bucket can have; correct it"},
    {"AuthorizationHeaderMalformed", ERROR_INVALID, "the bucket is in another region; correct region"},
};

/* Temporary errors. Some come with the status 400 or, at the end of an upload in parts, 200. */
static const char *const temporary[] = {"InternalError",      "SlowDown",
                                        "SlowDownRead",       "SlowDownWrite",
                                        "ServiceUnavailable", "RequestTimeout",
                                        "OperationAborted",   "ConditionalRequestConflict",
                                        "IncompleteBody",     "XAmzContentSHA256Mismatch",
                                        "BadDigest",          NULL};

static bool is_temporary(const struct exchange *exchange, const struct s3_failure *failure)
{
    for (const char *const *code = temporary; *code; code++)
        if (strcmp(failure->code, *code) == 0)
            return true;
    long status = exchange->status;
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static const struct meaning *find_meaning(const struct exchange *exchange, const struct s3_failure *failure)
{
    static const struct meaning forbidden = {"", ERROR_FORBIDDEN, "the server refuses these credentials"},
                                expired = {"", ERROR_FORBIDDEN,
                                           "the server refuses the request; the credentials may have expired"},
                                absent = {"", ERROR_NOT_FOUND, "there is no such object or bucket"},
                                exists = {"", ERROR_ALREADY_EXISTS, "there is an object of that name already"},
                                moved = {"", ERROR_INVALID,
                                         "the bucket is in another region; correct region and endpoint"},
                                other = {"", ERROR_UNSUPPORTED,
                                         "the server refuses the request; see whether endpoint, region and bucket are "
                                         "right"};
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(failure->code, meanings[i].code) == 0)
            return &meanings[i];
    long status = exchange->status;
    if (status == 400 && strcmp(exchange->method, "HEAD") == 0) /* AWS, which cannot send the code ExpiredToken here */
        return &expired;
    if (status / 100 == 3)
        return &moved;
    return status == 401 || status == 403 ? &forbidden : status == 404 ? &absent : status == 412 ? &exists : &other;
}

static int describe(const struct exchange *exchange, enum error_kind kind, const char *sentence, const char *detail,
                    struct error *error)
{
    const struct s3_client *client = exchange->client;
    if (exchange->is_anonymous && kind == ERROR_FORBIDDEN && exchange->status > 0)
        sentence =
            "the server wants credentials; give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in a job by s3.secretRef";
    bool is_listing = exchange->listed && *exchange->listed;
    int result = error_set(error, kind, "%s %s/%s%s%s%s%s: %s%s%s", exchange->method, client->endpoint, client->bucket,
                           *exchange->key ? "/" : "", exchange->key, is_listing ? "?prefix=" : "",
                           is_listing ? exchange->listed : "", sentence, *detail ? ": " : "", detail);
    if (error)
        error->http_status = (int)exchange->status;
    return result;
}

/* What the server adds to the meaning of its answer; free with free(). */
static char *meaning_detail(const struct exchange *exchange, const struct meaning *meaning)
{
    const struct s3_failure *failure = &exchange->failure;
    if (*exchange->region && meaning->kind == ERROR_INVALID)
        return memory_format("its region is %s", exchange->region);
    if (*meaning->code)
        return memory_copy_string(meaning->kind == ERROR_INVALID ? failure->message : "");
    const char *before_code = *failure->code ? " " : "", *before_message = *failure->message ? " " : "";
    return memory_format("HTTP %ld%s%s%s%s", exchange->status, before_code, failure->code, before_message,
                         failure->message);
}

enum verdict {
    VERDICT_DONE,
    VERDICT_AGAIN,
    VERDICT_AGAIN_IF_VALID_BEFORE, /* if an earlier request of the client succeeded with its credentials and certificates */
    VERDICT_FINAL,
};

static enum verdict judge_answer(struct exchange *exchange, struct error *error)
{
    const struct s3_failure *failure = &exchange->failure;
    s3_failure_parse(buffer_text(&exchange->answer), exchange->answer.length, &exchange->failure);
    bool short_range = exchange->range && exchange->received < exchange->range->length;
    if (exchange->status / 100 == 2 && failure->code[0] == '\0' && !short_range)
        return VERDICT_DONE;
    if (exchange->status / 100 == 2 && short_range) {
        describe(exchange, ERROR_CORRUPT, "the object ends earlier than expected", "", error);
        return VERDICT_AGAIN;
    }
    if (is_temporary(exchange, failure)) {
        SCOPED_FREE char *detail = memory_format("HTTP %ld %s", exchange->status, failure->code);
        describe(exchange, ERROR_UNAVAILABLE, "the server is overloaded or failing", detail, error);
        return VERDICT_AGAIN;
    }
    if (exchange->range && exchange->status == 412) {
        describe(exchange, ERROR_CONFLICT, "the object has been replaced while it was read", "", error);
        return VERDICT_FINAL;
    }
    if (exchange->range && exchange->status == 416) {
        describe(exchange, ERROR_CORRUPT, "the object is shorter than expected", "", error);
        return VERDICT_FINAL;
    }
    const struct meaning *meaning = find_meaning(exchange, failure);
    SCOPED_FREE char *detail = meaning_detail(exchange, meaning);
    describe(exchange, meaning->kind, meaning->sentence, detail, error);
    return meaning->kind == ERROR_FORBIDDEN ? VERDICT_AGAIN_IF_VALID_BEFORE : VERDICT_FINAL;
}

static enum verdict judge_failure(struct exchange *exchange, CURLcode result, struct error *error)
{
    const char *why = curl_easy_strerror(result);
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        describe(exchange, ERROR_UNAVAILABLE,
                 "the endpoint cannot be reached; correct it, or see whether the server runs", why, error);
        return VERDICT_AGAIN;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        describe(exchange, ERROR_FORBIDDEN,
                 "the server's certificate is not trusted; put its CA certificate as ca.crt beside the credentials",
                 why, error);
        return VERDICT_AGAIN_IF_VALID_BEFORE;
    case CURLE_UNSUPPORTED_PROTOCOL: /* for libcurl, HTTP/0.9: an answer that does not begin with HTTP/1 */
        describe(exchange, ERROR_UNAVAILABLE, "the answer is not HTTP; see what listens at the endpoint", why, error);
        return VERDICT_AGAIN;
    case CURLE_URL_MALFORMAT:
        describe(exchange, ERROR_INVALID, "the endpoint is not an address", why, error);
        return VERDICT_FINAL;
    default:
        describe(exchange, ERROR_UNAVAILABLE, "the connection was lost", why, error);
        return VERDICT_AGAIN;
    }
}

static enum verdict try_once(struct exchange *exchange, struct error *error)
{
    CURLcode result = CURLE_OK;
    if (attempt(exchange, &result, error) < 0)
        return error->kind == ERROR_UNAVAILABLE ? VERDICT_AGAIN : VERDICT_AGAIN_IF_VALID_BEFORE;
    if (exchange->sink_failed) {
        if (error)
            *error = exchange->sink_error;
        error_wrap(error, "GET %s", exchange->key);
        return VERDICT_FINAL;
    }
    if (result == CURLE_OK || (result == CURLE_WRITE_ERROR && exchange->sink_error.kind))
        return judge_answer(exchange, error);
    return judge_failure(exchange, result, error);
}

/* Notes whether a request has succeeded now. Returns whether any has. */
static bool note_success(struct s3_client *client, bool now)
{
    pthread_mutex_lock(&client->lock);
    client->has_succeeded = client->has_succeeded || now;
    bool result = client->has_succeeded;
    pthread_mutex_unlock(&client->lock);
    return result;
}

static void wait_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Before a request has succeeded. Files are replaced one after the other, so the key and its secret may have been of two Secrets. */
static bool may_have_changed(const struct exchange *exchange, unsigned refusals)
{
    const struct s3_client *client = exchange->client;
    return refusals == 1 && (client->credentials || client->identity);
}

/* Sends the request until it succeeds, fails for good, or has made no progress for patience_ms. */
static int perform(struct exchange *exchange, struct error *error)
{
    struct s3_client *client = exchange->client;
    struct error last = ERROR_INIT;
    int64_t pause = WAIT_LEAST_MS, received = exchange->received, since = clock_monotonic_ms();
    buffer_init(&exchange->answer, S3_ANSWER_MAX);
    unsigned refusals = 0;
    for (unsigned attempts = 1;; attempts++) {
        enum verdict verdict = try_once(exchange, &last);
        if (verdict == VERDICT_DONE) {
            note_success(client, true);
            return 0;
        }
        if (exchange->received >= received + PROGRESS_BYTES) {
            received = exchange->received;
            pause = WAIT_LEAST_MS;
            since = clock_monotonic_ms();
        }
        int64_t wait = exchange->retry_after_ms > pause ? exchange->retry_after_ms : pause;
        bool is_refused = verdict == VERDICT_AGAIN_IF_VALID_BEFORE && !note_success(client, false);
        refusals += is_refused;
        wait = is_refused ? REFUSED_WAIT_MS : wait > WAIT_MOST_MS ? WAIT_MOST_MS : wait;
        bool given_up = clock_monotonic_ms() + wait - since > client->patience_ms;
        if (verdict == VERDICT_FINAL || (is_refused && !may_have_changed(exchange, refusals)) || given_up) {
            if (error)
                *error = last;
            if (given_up && verdict != VERDICT_FINAL && !is_refused)
                error_wrap(error, "given up after %u attempts", attempts);
            return -1;
        }
        exchange->was_repeated = true;
        wait_ms(wait + (clock_monotonic_ns() >> 10) % (wait / 4)); /* a different delay for each thread */
        pause *= 2;
    }
}

/* ---------------------------------------------------------------- requests */

static void exchange_release(struct exchange *exchange)
{
    curl_slist_free_all(exchange->headers);
    buffer_release(&exchange->answer);
}
#define SCOPED_EXCHANGE SCOPED(exchange_release) struct exchange

static void add_header(struct exchange *exchange, const char *name, const char *value)
{
    SCOPED_FREE char *line = memory_format("%s: %s", name, value);
    exchange->headers = curl_slist_append(exchange->headers, line);
}

static void add_crc(struct exchange *exchange, uint32_t crc)
{
    snprintf(exchange->crc, sizeof exchange->crc, "%08" PRIx32, crc);
}

int s3_head(struct s3_client *client, const char *key, struct s3_head *ret_head, struct error *error)
{
    SCOPED_EXCHANGE exchange = {.client = client, .method = "HEAD", .key = key, .query = ""};
    if (perform(&exchange, error) < 0)
        return -1;
    if (exchange.head.size < 0)
        return error_set(error, ERROR_CORRUPT, "the server does not report the size of %s", key);
    *ret_head = exchange.head;
    return 0;
}

int s3_get(struct s3_client *client, const struct s3_range *range, struct s3_head *ret_head, struct error *error)
{
    SCOPED_EXCHANGE exchange = {.client = client, .method = "GET", .key = range->key, .query = "", .range = range};
    if (range->length <= 0)
        return error_set(error, ERROR_INTERNAL, "bug: an empty range of %s was requested", range->key);
    if (range->etag && *range->etag)
        add_header(&exchange, "If-Match", range->etag);
    if (perform(&exchange, error) < 0)
        return -1;
    if (ret_head)
        *ret_head = exchange.head;
    if (range->crc)
        *range->crc = exchange.range_crc;
    return 0;
}

int s3_get_whole(struct s3_client *client, const char *key, struct buffer *buffer, struct error *error)
{
    SCOPED_EXCHANGE exchange = {.client = client, .method = "GET", .key = key, .query = ""};
    if (perform(&exchange, error) < 0)
        return -1;
    const struct s3_head *head = &exchange.head;
    if (head->has_crc && crc32c(0, buffer_text(&exchange.answer), exchange.answer.length) != head->crc)
        return error_set(error, ERROR_CORRUPT, "%s: the bytes differ from those that were written", key);
    return buffer_append(buffer, buffer_text(&exchange.answer), exchange.answer.length, error);
}

/* Whether the object holds these bytes. */
static bool holds(struct s3_client *client, const char *key, const void *bytes, size_t length)
{
    SCOPED_BUFFER found;
    buffer_init(&found, length + 1);
    return length < S3_ANSWER_MAX && s3_get_whole(client, key, &found, NULL) == 0 && found.length == length &&
           memcmp(buffer_text(&found), bytes, length) == 0;
}

int s3_put(struct s3_client *client, const char *key, const void *bytes, size_t length, enum s3_put_condition condition,
           struct error *error)
{
    SCOPED_EXCHANGE exchange = {
        .client = client, .method = "PUT", .key = key, .query = "", .body = length ? bytes : "", .body_length = length};
    struct error why = ERROR_INIT;
    add_header(&exchange, "Content-Type", "application/octet-stream");
    add_crc(&exchange, crc32c(0, bytes, length));
    exchange.if_absent = exchange.needs_new_connection = condition == S3_PUT_IF_ABSENT;
    if (exchange.if_absent && !client->is_google)
        add_header(&exchange, "If-None-Match", "*");
    if (perform(&exchange, &why) == 0)
        return 0;
    if (condition == S3_PUT_IF_ABSENT && why.kind == ERROR_ALREADY_EXISTS && exchange.was_repeated &&
        holds(client, key, bytes, length))
        return 0;
    if (error)
        *error = why;
    return -1;
}

int s3_delete(struct s3_client *client, const char *key, struct error *error)
{
    SCOPED_EXCHANGE exchange = {.client = client, .method = "DELETE", .key = key, .query = ""};
    struct error why = ERROR_INIT;
    if (perform(&exchange, &why) == 0 ||
        (why.kind == ERROR_NOT_FOUND && strcmp(exchange.failure.code, "NoSuchBucket") != 0))
        return 0;
    if (error)
        *error = why;
    return -1;
}

/* Checks the objects that a page has added to the list. A server that ignores the prefix, or sends pages without end, does not speak S3. */
static int check_page(const struct s3_list *list, size_t before, const char *prefix, unsigned empty_pages,
                      struct error *error)
{
    for (size_t i = before; i < list->count; i++)
        if (strncmp(list->objects[i].key, prefix, strlen(prefix)) != 0)
            return error_set(error, ERROR_CORRUPT,
                             "the server lists the object \"%.200s\" among those that begin with \"%s\"",
                             list->objects[i].key, prefix);
    if (empty_pages > EMPTY_PAGES_MAX)
        return error_set(error, ERROR_CORRUPT, "the server sends one empty page of the listing after another");
    return 0;
}

int s3_list(struct s3_client *client, const char *prefix, size_t most, struct s3_list *ret_list, struct error *error)
{
    struct s3_list list = {0};
    unsigned empty_pages = 0;
    SCOPED_FREE char *escaped = escape(prefix, false);
    do {
        SCOPED_FREE char *token = list.next_page ? escape(list.next_page, false) : NULL;
        SCOPED_FREE char *query =
            memory_format("%s%s%sencoding-type=url&list-type=2&prefix=%s", token ? "continuation-token=" : "",
                          token ? token : "", token ? "&" : "", escaped);
        SCOPED_EXCHANGE exchange = {.client = client, .method = "GET", .key = "", .query = query, .listed = prefix};
        size_t before = list.count;
        int result = perform(&exchange, error);
        if (result == 0)
            result = s3_list_parse(buffer_text(&exchange.answer), exchange.answer.length, most, &list, error);
        empty_pages = list.count == before ? empty_pages + 1 : 0;
        if (result < 0 || check_page(&list, before, prefix, empty_pages, error) < 0) {
            s3_list_release(&list);
            return -1;
        }
    } while (list.next_page);
    *ret_list = list;
    return 0;
}

int s3_parts_begin(struct s3_client *client, const char *key, uint32_t crc, char **ret_id, struct error *error)
{
    SCOPED_EXCHANGE exchange = {.client = client, .method = "POST", .key = key, .query = "uploads=", .body = ""};
    add_header(&exchange, "Content-Type", "application/octet-stream");
    add_crc(&exchange, crc);
    if (perform(&exchange, error) < 0)
        return -1;
    return s3_upload_id_parse(buffer_text(&exchange.answer), exchange.answer.length, ret_id, error);
}

int s3_parts_put(struct s3_client *client, const char *key, const char *id, unsigned number, const void *bytes,
                 size_t length, char ret_etag[S3_ETAG_MAX], struct error *error)
{
    SCOPED_FREE char *escaped = escape(id, false);
    SCOPED_FREE char *query = memory_format("partNumber=%u&uploadId=%s", number, escaped);
    SCOPED_EXCHANGE exchange = {.client = client,
                                .method = "PUT",
                                .key = key,
                                .query = query,
                                .body = length ? bytes : "",
                                .body_length = length};
    add_header(&exchange, "Content-Type", "application/octet-stream");
    if (perform(&exchange, error) < 0)
        return -1;
    if (exchange.head.etag[0] == '\0')
        return error_set(error, ERROR_CORRUPT, "the server gave no ETag for part %u of %s", number, key);
    memcpy(ret_etag, exchange.head.etag, S3_ETAG_MAX);
    return 0;
}

int s3_parts_end(struct s3_client *client, const char *key, const char *id, char (*etags)[S3_ETAG_MAX], unsigned count,
                 uint32_t crc, int64_t size, struct error *error)
{
    SCOPED_BUFFER body;
    buffer_init(&body, (size_t)4 * 1024 * 1024);
    buffer_append_string(&body, "<CompleteMultipartUpload>", NULL);
    for (unsigned i = 0; i < count; i++)
        buffer_format(&body, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1, etags[i]);
    if (buffer_append_string(&body, "</CompleteMultipartUpload>", error) < 0)
        return -1;
    SCOPED_FREE char *escaped = escape(id, false);
    SCOPED_FREE char *query = memory_format("uploadId=%s", escaped);
    SCOPED_EXCHANGE exchange = {.client = client,
                                .method = "POST",
                                .key = key,
                                .query = query,
                                .body = buffer_text(&body),
                                .body_length = body.length};
    struct error why = ERROR_INIT;
    exchange.needs_new_connection = true;
    add_header(&exchange, "Content-Type", "application/xml");
    if (perform(&exchange, &why) == 0)
        return 0;
    struct s3_head head;
    if (exchange.was_repeated && s3_head(client, key, &head, NULL) == 0 && head.size == size && head.has_crc &&
        head.crc == crc)
        return 0;
    if (error)
        *error = why;
    return -1;
}

void s3_parts_abort(struct s3_client *client, const char *key, const char *id)
{
    SCOPED_FREE char *escaped = escape(id, false);
    SCOPED_FREE char *query = memory_format("uploadId=%s", escaped);
    SCOPED_EXCHANGE exchange = {.client = client, .method = "DELETE", .key = key, .query = query};
    perform(&exchange, NULL);
}
