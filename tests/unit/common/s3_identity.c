/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers of credentials that refuse, fail and answer badly. tests/s3 exchanges a token at a real one.
 */
#include "common/s3_identity.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/scripted_server.h"

static struct scripted_server server;
static struct s3_identity *identity;
static struct error error;
static int64_t lifetime_ms;
static int status;
static char *key, *secret, *token, folder[] = "/tmp/identity-XXXXXX";

static void write_token(const char *text)
{
    SCOPED_FREE char *path = memory_format("%s/token", folder);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void start(scripted_handler *handler, const char *url_variable)
{
    signal(SIGPIPE, SIG_IGN);
    error = (struct error)ERROR_INIT;
    lifetime_ms = 3600 * 1000;
    status = 200;
    cr_assert(mkdtemp(folder));
    write_token("tok&en\n");
    scripted_server_start(&server, handler, NULL);
    SCOPED_FREE char *url = memory_format("http://127.0.0.1:%d/sts", server.port);
    SCOPED_FREE char *path = memory_format("%s/token", folder);
    setenv(url_variable, url, 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1);
    identity = s3_identity_new("eu-central-1", NULL);
}

static int get(void)
{
    free(key), free(secret), free(token);
    key = secret = token = NULL;
    return s3_identity_credentials(identity, &key, &secret, &token, &error);
}

static void end(void)
{
    SCOPED_FREE char *path = memory_format("%s/token", folder);
    free(key), free(secret), free(token);
    s3_identity_free(identity);
    scripted_server_stop(&server);
    unlink(path);
    rmdir(folder);
}

static void expiration(char text[CLOCK_TEXT_MAX])
{
    clock_format_seconds(clock_now_ms() + lifetime_ms, text);
}

static void sts(struct scripted_request *request)
{
    char time[CLOCK_TEXT_MAX];
    expiration(time);
    cr_assert_str_eq(request->line, "POST /sts");
    cr_assert_str_eq(request->body,
                     "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
                     "RoleSessionName=coxswain&WebIdentityToken=tok%26en");
    SCOPED_FREE char *good = memory_format(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>k%d</"
        "AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
        request->number, time);
    scripted_reply(request, status,
                   status == 200 ? good
                                 : "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no trust</Message></Error>"
                                   "</ErrorResponse>");
}

static void start_web_identity(void)
{
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    start(sts, "AWS_ENDPOINT_URL_STS");
    cr_assert(s3_identity_is_for("127.0.0.1:9000"));
}

TestSuite(s3_identity, .timeout = 60);

Test(s3_identity, a_token_is_exchanged_once_for_credentials)
{
    cr_assert_not(s3_identity_is_for("127.0.0.1:9000"));
    start_web_identity();
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(get(), 0, "%s", error.message);
        cr_expect_str_eq(key, "k0");
        cr_expect_str_eq(secret, "s");
        cr_expect_str_eq(token, "t");
    }
    cr_expect_eq(server.requests, 1);
    end();
}

Test(s3_identity, expired_credentials_are_renewed)
{
    start_web_identity();
    lifetime_ms = -1000;
    cr_assert_eq(get(), 0, "%s", error.message);
    cr_assert_eq(get(), 0, "%s", error.message);
    cr_expect_str_eq(key, "k1");
    end();
}

Test(s3_identity, credentials_serve_while_their_renewal_fails)
{
    start_web_identity();
    lifetime_ms = 60 * 1000; /* due at once, and valid */
    cr_assert_eq(get(), 0, "%s", error.message);
    status = 503;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(get(), 0, "%s", error.message);
    cr_expect_str_eq(key, "k0");
    cr_expect_leq(server.requests, 2, "%d requests", server.requests);
    end();
}

Test(s3_identity, refusals_and_outages_are_told_apart)
{
    start_web_identity();
    status = 403;
    cr_assert_lt(get(), 0);
    cr_expect_eq(error.kind, ERROR_FORBIDDEN);
    cr_expect(
        strstr(error.message, "gives no credentials to this pod's service account: HTTP 403 AccessDenied no trust"),
        "%s", error.message);
    status = 503;
    cr_assert_lt(get(), 0);
    cr_expect_eq(error.kind, ERROR_UNAVAILABLE, "%s", error.message);
    end();
}

static void slow_outage(struct scripted_request *request)
{
    usleep(300000);
    scripted_reply(request, 503, "");
}

static void *ask(void *unused)
{
    struct error why = ERROR_INIT;
    char *got[3];
    cr_assert_lt(s3_identity_credentials(identity, &got[0], &got[1], &got[2], &why), 0);
    cr_expect_eq(why.kind, ERROR_UNAVAILABLE, "%s", why.message);
    return unused;
}

Test(s3_identity, threads_that_wait_for_a_renewal_share_its_failure)
{
    pthread_t threads[8];
    setenv("AWS_ROLE_ARN", "r", 1);
    start(slow_outage, "AWS_ENDPOINT_URL_STS");
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, ask, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    cr_expect_leq(server.requests, 3, "%d requests", server.requests);
    int before = server.requests;
    ask(NULL);
    cr_expect_eq(server.requests, before + 1, "a later call asks again");
    end();
}

SCRIPTED_REPLY(nothing, 200, "<AssumeRoleWithWebIdentityResponse/>")

Test(s3_identity, an_answer_without_credentials_is_refused)
{
    setenv("AWS_ROLE_ARN", "r", 1);
    start(nothing, "AWS_ENDPOINT_URL_STS");
    cr_assert_lt(get(), 0);
    cr_expect_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
}

static void agent(struct scripted_request *request)
{
    char time[CLOCK_TEXT_MAX];
    expiration(time);
    cr_assert_str_eq(request->line, "GET /sts");
    cr_assert(strstr(request->head, "Authorization: tok&en\r\n"), "%s", request->head);
    SCOPED_FREE char *body = memory_format(
        "{\"AccessKeyId\": \"k\", \"SecretAccessKey\": \"s\", \"Token\": \"t\", \"Expiration\": \"%s\"}", time);
    scripted_reply(request, 200, status == 200 ? body : "[]");
}

Test(s3_identity, the_credentials_of_aws_are_for_its_own_hosts)
{
    setenv("AWS_ROLE_ARN", "r", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token", 1);
    for (int agents = 0; agents < 2; agents++) {
        cr_expect(s3_identity_is_for("s3.eu-central-1.amazonaws.com"));
        cr_expect(s3_identity_is_for("s3.cn-north-1.amazonaws.com.cn:443"));
        cr_expect_not(s3_identity_is_for("minio.storage.svc:9000"));
        cr_expect_not(s3_identity_is_for("amazonaws.com.example.org"));
        unsetenv("AWS_ROLE_ARN");
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials", 1);
    }
}

Test(s3_identity, an_agent_on_the_node_gives_credentials)
{
    start(agent, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    cr_assert(s3_identity_is_for("127.0.0.1:9000"));
    cr_assert_eq(get(), 0, "%s", error.message);
    cr_expect_str_eq(token, "t");
    end();
}

Test(s3_identity, an_agent_that_answers_nonsense_gives_none)
{
    start(agent, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    status = 500; /* as `agent` understands it */
    cr_assert_lt(get(), 0);
    cr_expect_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    end();
}

Test(s3_identity, a_token_is_sent_to_no_other_host)
{
    static const char *const urls[] = {"http://169.254.170.230/v1", "http://example.com/",
                                       "http://127.0.0.1.example.com/", "ftp://169.254.170.23/",
                                       "http://169.254.170.23:80@127.0.0.1/"};
    start(agent, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i], 1);
        cr_assert_lt(get(), 0);
        cr_expect_eq(error.kind, ERROR_INVALID, "%s", error.message);
    }
    cr_expect_eq(server.requests, 0);
    end();
}
