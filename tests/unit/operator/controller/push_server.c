/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/push_server.h"

#include "common/base64.h"
#include "common/certificate.h"
#include "common/json.h"
#include "common/scope.h"
#include "tests/unit/operator/kube/loop_fixture.h"

#define YEAR_S ((int64_t)365 * 24 * 3600)
#define GET_SECRET "GET /api/v1/namespaces/n/secrets/"
#define CREATE_SECRET "POST /api/v1/namespaces/n/secrets"
#define REPLACE_SECRET "PUT /api/v1/namespaces/n/secrets/"
#define WRITE_SLICE "PATCH /apis/discovery.k8s.io/v1/namespaces/n/endpointslices/"
#define STATUS(code, reason, message)                                                                                  \
    code, "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"code\":" #code ",\"message\":\"" message "\"}"

static struct push_server *push;
static const struct push_endpoint *endpoint;
static int ready, failures;
static char *secret, *aged_secret, *damaged_secret; /* read by the server's threads */
static bool is_mended;                              /* of what a handler refuses before */

static void set_data(struct json *object, const char *name, const char *bytes, size_t length)
{
    SCOPED_FREE char *text = base64_encode(bytes, length);
    json_set_string(json_set_object(object, "data"), name, text);
}

static char *secret_text(const char *certificate_pem, const char *key_pem)
{
    static const char token_key[HMAC_BYTES] = "0123456789";
    SCOPED_JSON *object = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    json_set_string(json_set_object(object, "metadata"), "name", PUSH_SECRET_NAME);
    set_data(object, "ca.crt", certificate_pem, strlen(certificate_pem));
    set_data(object, "ca.key", key_pem, strlen(key_pem));
    set_data(object, "token.key", token_key, sizeof token_key);
    cr_assert_eq(json_print(object, &text, NULL), 0);
    return memory_copy_string(buffer_text(&text));
}

static struct certificate make_authority(int64_t years)
{
    int64_t now_s = clock_now_ms() / 1000;
    struct certificate made;
    const struct certificate_request request = {
        .common_name = "a", .is_authority = true, .from_s = now_s, .until_s = now_s + years * YEAR_S};
    cr_assert_eq(certificate_make(&request, NULL, &made, NULL), 0);
    return made;
}

static void init(void)
{
    SCOPED(certificate_release) struct certificate fresh = make_authority(9), aged = make_authority(1);
    secret = secret_text(fresh.certificate_pem, fresh.key_pem);
    aged_secret = secret_text(aged.certificate_pem, aged.key_pem);
    damaged_secret = secret_text(fresh.certificate_pem, aged.key_pem);
    ready = failures = 0;
    is_mended = false;
}

static void on_ready(void *context)
{
    (void)context;
    ready++;
}

static void on_failed(void *context, const struct error *error)
{
    (void)context;
    (void)error;
    failures++;
}

static void start(scripted_handler *handler, struct push_server_options options)
{
    options.address = "127.0.0.1";
    options.name_space = "n";
    options.ready = on_ready;
    options.failed = on_failed;
    fixture_start(handler, NULL, NULL);
    push = push_server_start(client, &options);
    endpoint = push_server_endpoint(push);
}

static void fini(void)
{
    push_server_stop(push);
    fixture_stop();
    push_server_free(push);
    scripted_server_stop(&server); /* its threads read what is freed below */
    free(secret);
    free(aged_secret);
    free(damaged_secret);
}

TestSuite(push_server, .init = init, .fini = fini, .timeout = 120);

static bool is_for(const struct scripted_request *request, const char *line)
{
    return strncmp(request->line, line, strlen(line)) == 0;
}

static void expect_refusal(const char *words)
{
    LOOP_UNTIL(ready > 0);
    cr_assert_eq(ready, 1, "the operator acts without");
    cr_assert_eq(failures, 0);
    cr_assert_null(endpoint->url);
    cr_assert(strstr(endpoint->refusal, words), "%s", endpoint->refusal);
}

static void have_no_secret(struct scripted_request *request)
{
    if (is_for(request, CREATE_SECRET))
        scripted_reply(request, 201, request->body);
    else
        scripted_reply(request, STATUS(404, "NotFound", ""));
}

Test(push_server, makes_the_secret_that_is_missing)
{
    start(have_no_secret, (struct push_server_options){0});
    LOOP_UNTIL(ready > 0);
    cr_expect_not_null(endpoint->url);
    cr_expect_null(endpoint->refusal);
    cr_expect_neq(endpoint->reachable_since_ms, FIELD_UNSET);
    cr_expect_eq(scripted_count(&server, CREATE_SECRET), 1);
}

static void have_no_namespace(struct scripted_request *request)
{
    scripted_reply(request, STATUS(404, "NotFound", "namespaces n not found"));
}

Test(push_server, without_its_namespace_the_operator_acts_all_the_same)
{
    start(have_no_namespace, (struct push_server_options){0});
    expect_refusal("cannot create its Secret n/coxswain-progress");
    cr_expect(strstr(endpoint->refusal, "namespaces n not found"), "%s", endpoint->refusal);
    cr_expect_eq(scripted_count(&server, CREATE_SECRET), 1, "it does not ask in a loop");
}

static void have_no_room(struct scripted_request *request)
{
    if (is_for(request, CREATE_SECRET))
        scripted_reply(request, STATUS(403, "Forbidden",
                                       "secrets x is forbidden: exceeded quota: q, requested: secrets=1, used: "
                                       "secrets=4, limited: secrets=4"));
    else
        scripted_reply(request, STATUS(404, "NotFound", ""));
}

Test(push_server, a_quota_that_is_spent_holds_nothing_up)
{
    start(have_no_room, (struct push_server_options){0});
    expect_refusal("exceeded quota");
}

static void cannot_tell(struct scripted_request *request)
{
    scripted_reply(request, STATUS(500, "InternalError", "the database is gone"));
}

Test(push_server, an_outage_that_lasts_holds_nothing_up)
{
    start(cannot_tell, (struct push_server_options){.retry_ms = 1});
    expect_refusal("the database is gone");
}

static void forbid_until_mended(struct scripted_request *request)
{
    if (__atomic_load_n(&is_mended, __ATOMIC_SEQ_CST))
        scripted_reply(request, 200, secret);
    else
        scripted_reply(request, STATUS(403, "Forbidden", "no"));
}

static void mend(void)
{
    __atomic_store_n(&is_mended, true, __ATOMIC_SEQ_CST);
}

Test(push_server, an_operator_without_rights_looks_again)
{
    start(forbid_until_mended, (struct push_server_options){.retry_ms = 1});
    expect_refusal("cannot read its Secret");
    mend();
    LOOP_UNTIL(endpoint->url != NULL);
    cr_expect_null(endpoint->refusal);
    cr_expect_eq(ready, 1);
}

static void have_damaged_secret(struct scripted_request *request)
{
    scripted_reply(request, 200, damaged_secret);
}

Test(push_server, a_key_that_is_not_the_certificates_ends_no_operator)
{
    start(have_damaged_secret, (struct push_server_options){0});
    expect_refusal("is corrupt");
}

static void damage_once_read(struct scripted_request *request)
{
    scripted_reply(request, 200, request->number == 0 ? secret : damaged_secret);
}

Test(push_server, what_serves_goes_on_and_is_renewed_with_the_keys_that_it_has)
{
    start(damage_once_read, (struct push_server_options){.refresh_ms = 5});
    LOOP_UNTIL(scripted_count(&server, GET_SECRET) > 3);
    cr_expect_not_null(endpoint->url);
    cr_expect_null(endpoint->refusal);
    cr_expect_eq(failures, 0);
    cr_expect_eq(ready, 1);
}

static void age_once_read(struct scripted_request *request)
{
    if (is_for(request, REPLACE_SECRET))
        scripted_hold(request);
    else
        scripted_reply(request, 200, request->number == 0 ? secret : aged_secret);
}

Test(push_server, pods_get_the_renewed_authority_before_it_is_stored)
{
    int64_t until_s = 0;
    start(age_once_read, (struct push_server_options){.refresh_ms = 5});
    LOOP_UNTIL(scripted_count(&server, REPLACE_SECRET) > 0);
    cr_assert_eq(certificate_end(endpoint->authority_pem, &until_s, NULL), 0);
    cr_expect_gt(until_s, clock_now_ms() / 1000 + 9 * YEAR_S + YEAR_S / 2);
}

static void forbid_the_slice_until_mended(struct scripted_request *request)
{
    if (is_for(request, WRITE_SLICE) && !__atomic_load_n(&is_mended, __ATOMIC_SEQ_CST))
        scripted_reply(request, STATUS(403, "Forbidden", "no"));
    else
        scripted_reply(request, 200, secret);
}

Test(push_server, pods_reach_it_once_the_endpoint_slice_is_written)
{
    start(forbid_the_slice_until_mended,
          (struct push_server_options){.service = "progress", .pod_ip = "127.0.0.1", .retry_ms = 1});
    LOOP_UNTIL(scripted_count(&server, WRITE_SLICE) > 2);
    cr_expect_not_null(endpoint->url);
    cr_expect_eq(endpoint->reachable_since_ms, FIELD_UNSET);
    mend();
    LOOP_UNTIL(endpoint->reachable_since_ms != FIELD_UNSET);
    cr_expect_leq(push_reachable_since(endpoint, clock_now_ms()), clock_now_ms());
}
