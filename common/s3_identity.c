/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_identity.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/percent.h"
#include "common/s3_answer.h"

#define TOKEN_MAX ((size_t)16 * 1024)
#define ANSWER_MAX ((size_t)64 * 1024)
#define REQUEST_MS 20000L
#define CONNECT_MS 5000L
#define RENEW_MS ((int64_t)5 * 60 * 1000) /* before they expire */
#define PAUSE_MS 10000                    /* between two attempts to renew credentials that are still valid */

struct s3_identity {
    char *region, *ca_file; /* ca_file: NULL, or the file may be missing */
    pthread_mutex_t lock;   /* held while credentials are renewed: other threads wait for the same answer */
    struct s3_credentials credentials;
    int64_t retry_ms;     /* no renewal before this time while the credentials are valid */
    int64_t failed_ns;    /* when the last renewal failed that left no valid credentials, by the monotonic clock */
    struct error failure; /* of it */
};

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool has_web_identity(void)
{
    return variable("AWS_WEB_IDENTITY_TOKEN_FILE") && variable("AWS_ROLE_ARN");
}

/* Whether the credentials are those of AWS: from its own server, or from the agent of EKS. */
static bool is_of_aws(void)
{
    const char *agent = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (has_web_identity())
        return !variable("AWS_ENDPOINT_URL_STS");
    return agent && (strncmp(agent, "http://169.254.170.", 19) == 0 || strncmp(agent, "http://[fd00:ec2:", 17) == 0);
}

bool s3_identity_is_for(const char *host)
{
    static const char *const domains[] = {".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"};
    size_t length = strcspn(host, ":");
    if (!has_web_identity() && !variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
        return false;
    for (size_t i = 0; is_of_aws() && i < sizeof domains / sizeof *domains; i++) {
        size_t tail = strlen(domains[i]);
        if (length > tail && strncmp(host + length - tail, domains[i], tail) == 0)
            return true;
    }
    return !is_of_aws();
}

struct s3_identity *s3_identity_new(const char *region, const char *ca_file)
{
    struct s3_identity *identity = memory_allocate(1, sizeof *identity);
    identity->region = memory_copy_string(region);
    identity->ca_file = memory_copy_string(ca_file);
    pthread_mutex_init(&identity->lock, NULL);
    return identity;
}

void s3_identity_free(struct s3_identity *identity)
{
    if (!identity)
        return;
    s3_credentials_release(&identity->credentials);
    pthread_mutex_destroy(&identity->lock);
    free(identity->region);
    free(identity->ca_file);
    free(identity);
}

/* Reads the token in the file that a variable names, without the white space around it. */
static int read_token(const char *name, char **ret_token, struct error *error)
{
    SCOPED_BUFFER text;
    buffer_init(&text, TOKEN_MAX);
    if (buffer_read_file(&text, variable(name), error) < 0) {
        error_wrap(error, "read the token that %s names", name);
        return -1;
    }
    const char *begin = buffer_text(&text) + strspn(buffer_text(&text), " \t\r\n");
    *ret_token = memory_copy_bytes(begin, strcspn(begin, " \t\r\n"));
    return 0;
}

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    return buffer_append(context, bytes, size * count, NULL) == 0 ? size * count : 0;
}

/* Sends a request, a POST if there is a `form`. Returns the status of the answer, which is appended to `answer`; -1 if none came. */
static long request(const struct s3_identity *identity, const char *url, const char *form, const char *authorization,
                    struct buffer *answer, struct error *error)
{
    CURL *handle = curl_easy_init();
    long status = -1;
    struct curl_slist *headers = NULL;
    if (!handle)
        return error_set(error, ERROR_NO_SPACE, "no memory for a connection");
    if (authorization) {
        SCOPED_FREE char *line = memory_format("Authorization: %s", authorization);
        headers = curl_slist_append(headers, line);
    }
    curl_easy_setopt(handle, CURLOPT_URL, url);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_PROXY, form ? NULL : ""); /* an agent on the node is not behind a proxy */
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, REQUEST_MS);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "coxswain");
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, answer);
    if (form)
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, form);
    if (identity->ca_file && access(identity->ca_file, R_OK) == 0)
        curl_easy_setopt(handle, CURLOPT_CAINFO, identity->ca_file);
    CURLcode result = curl_easy_perform(handle);
    if (result == CURLE_OK)
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE)
        error_set(error, ERROR_FORBIDDEN,
                  "the certificate of %s is not trusted: %s; add its CA certificate to ca.crt in the storage's Secret",
                  url, curl_easy_strerror(result));
    else
        error_set(error, ERROR_UNAVAILABLE, "%s does not answer: %s", url, curl_easy_strerror(result));
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
    return status;
}

/* Refusals count as such, all other errors as temporary. */
static int judge_status(const char *url, long status, const char *code, const char *message, struct error *error)
{
    if (status == 429 || status / 100 == 5)
        return error_set(error, ERROR_UNAVAILABLE, "%s: HTTP %ld %s", url, status, code);
    return error_set(error, ERROR_FORBIDDEN, "%s gives no credentials to this pod's service account: HTTP %ld %s %s",
                     url, status, code, message);
}

/* ---------------------------------------------------------------- AssumeRoleWithWebIdentity */

static void append_field(struct buffer *form, const char *name, const char *value)
{
    buffer_format(form, "&%s=", name);
    percent_encode(form, value, "", NULL);
}

static int assume_role(const struct s3_identity *identity, struct s3_credentials *ret_credentials, struct error *error)
{
    SCOPED_FREE char *token = NULL;
    const char *endpoint = variable("AWS_ENDPOINT_URL_STS"), *session = variable("AWS_ROLE_SESSION_NAME");
    SCOPED_FREE char *url = endpoint ? memory_copy_string(endpoint)
                                     : memory_format("https://sts.%s.amazonaws.com%s/", identity->region,
                                                     strncmp(identity->region, "cn-", 3) == 0 ? ".cn" : "");
    SCOPED_BUFFER form;
    SCOPED_BUFFER answer;
    buffer_init(&form, 8 * TOKEN_MAX);
    buffer_init(&answer, ANSWER_MAX);
    if (read_token("AWS_WEB_IDENTITY_TOKEN_FILE", &token, error) < 0)
        return -1;
    buffer_format(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    append_field(&form, "RoleArn", variable("AWS_ROLE_ARN"));
    append_field(&form, "RoleSessionName", session ? session : "coxswain");
    append_field(&form, "WebIdentityToken", token);
    long status = request(identity, url, buffer_text(&form), NULL, &answer, error);
    if (status < 0)
        return -1;
    if (status != 200) {
        struct s3_failure failure;
        s3_failure_parse(buffer_text(&answer), answer.length, &failure);
        return judge_status(url, status, failure.code, failure.message, error);
    }
    if (s3_credentials_parse(buffer_text(&answer), answer.length, ret_credentials, error) < 0) {
        error_wrap(error, "%s", url);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- an agent on the node */

/* Plain http only to the addresses at which such agents listen. */
static bool is_agent(const char *url)
{
    static const char *const hosts[] = {"169.254.170.23", "169.254.170.2", "[fd00:ec2::23]", "127.0.0.1", "localhost"};
    if (strchr(url, '@')) /* what is before it would not be the host */
        return false;
    if (strncmp(url, "https://", 8) == 0)
        return true;
    for (size_t i = 0; strncmp(url, "http://", 7) == 0 && i < sizeof hosts / sizeof *hosts; i++) {
        size_t length = strlen(hosts[i]);
        if (strncmp(url + 7, hosts[i], length) == 0 && strchr(":/", url[7 + length]))
            return true;
    }
    return false;
}

static int parse_agent_answer(const struct buffer *answer, struct s3_credentials *ret_credentials, struct error *error)
{
    SCOPED_JSON *document = NULL;
    if (json_parse(buffer_text(answer), answer->length, ANSWER_MAX, &document, error) < 0)
        return -1;
    const char *key = json_string_at(document, "AccessKeyId", NULL),
               *secret = json_string_at(document, "SecretAccessKey", NULL),
               *token = json_string_at(document, "Token", NULL),
               *expires = json_string_at(document, "Expiration", NULL);
    int64_t expires_ms;
    if (!key || !secret || !token || !expires || !clock_parse(expires, &expires_ms))
        return error_set(error, ERROR_CORRUPT, "the answer has no AccessKeyId, SecretAccessKey, Token or Expiration");
    *ret_credentials = (struct s3_credentials){.key = memory_copy_string(key),
                                               .secret = memory_copy_string(secret),
                                               .token = memory_copy_string(token),
                                               .expires_ms = expires_ms};
    return 0;
}

static int ask_agent(const struct s3_identity *identity, struct s3_credentials *ret_credentials, struct error *error)
{
    const char *url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    SCOPED_FREE char *token = NULL;
    SCOPED_BUFFER answer;
    buffer_init(&answer, ANSWER_MAX);
    if (!is_agent(url))
        return error_set(
            error, ERROR_INVALID,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI is \"%s\"; it must begin with https, or be the address of an "
            "agent on the node",
            url);
    if (variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") &&
        read_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token, error) < 0)
        return -1;
    long status = request(identity, url, NULL, token, &answer, error);
    if (status < 0)
        return -1;
    if (status != 200)
        return judge_status(url, status, "", "", error);
    if (parse_agent_answer(&answer, ret_credentials, error) < 0) {
        error_wrap(error, "%s", url);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- renewal */

/* With the lock held. A call that was waiting for it while a renewal failed has the same error: otherwise many threads would ask a server that
 * does not answer one after the other. */
static int renew(struct s3_identity *identity, int64_t asked_ns, struct error *error)
{
    struct s3_credentials renewed = {0};
    int64_t now_ms = clock_now_ms();
    if (now_ms < identity->credentials.expires_ms && now_ms < identity->retry_ms)
        return 0;
    if (asked_ns < identity->failed_ns)
        return error_set(error, identity->failure.kind, "%s", identity->failure.message);
    identity->retry_ms = now_ms + PAUSE_MS;
    identity->failure = (struct error)ERROR_INIT;
    if ((has_web_identity() ? assume_role(identity, &renewed, &identity->failure)
                            : ask_agent(identity, &renewed, &identity->failure)) < 0) {
        if (clock_now_ms() < identity->credentials.expires_ms)
            return 0;
        identity->failed_ns = clock_monotonic_ns();
        return error_set(error, identity->failure.kind, "%s", identity->failure.message);
    }
    s3_credentials_release(&identity->credentials);
    identity->credentials = renewed;
    return 0;
}

int s3_identity_credentials(struct s3_identity *identity, char **ret_key, char **ret_secret, char **ret_token,
                            struct error *error)
{
    int64_t asked_ns = clock_monotonic_ns();
    pthread_mutex_lock(&identity->lock);
    bool is_due = clock_now_ms() >= identity->credentials.expires_ms - RENEW_MS;
    int result = is_due ? renew(identity, asked_ns, error) : 0;
    if (result == 0) {
        *ret_key = memory_copy_string(identity->credentials.key);
        *ret_secret = memory_copy_string(identity->credentials.secret);
        *ret_token = memory_copy_string(identity->credentials.token);
    }
    pthread_mutex_unlock(&identity->lock);
    return result;
}
