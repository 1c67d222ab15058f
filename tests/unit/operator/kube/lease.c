/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/lease.h"
#include "common/lock.h"
#include "tests/unit/operator/kube/loop_fixture.h"

static struct lease *lease;
static int elected, lost, released, troubles;
static struct error lost_reason;
static int64_t last_trouble_ns, least_gap_ns; /* between two of them */

static void on_elected(void *context)
{
    (void)context;
    elected++;
}

static void on_lost(void *context, const struct error *error)
{
    (void)context;
    lost++;
    lost_reason = *error;
}

static void on_released(void *context, const struct error *error)
{
    (void)context;
    released += error == NULL ? 1 : 100;
}

static void on_failure(void *context, const struct error *error)
{
    (void)context;
    (void)error;
    int64_t now_ns = clock_monotonic_ns(), gap_ns = now_ns - last_trouble_ns;
    if (troubles++ > 0 && (least_gap_ns == 0 || gap_ns < least_gap_ns))
        least_gap_ns = gap_ns;
    last_trouble_ns = now_ns;
}

static void start_with(int64_t duration_ms, int64_t renew_deadline_ms, int64_t retry_ms)
{
    lease = lease_start(client, &(struct lease_options){
                                    .name_space = "n",
                                    .name = "l",
                                    .identity = "me",
                                    .duration_ms = duration_ms,
                                    .renew_deadline_ms = renew_deadline_ms,
                                    .retry_ms = retry_ms,
                                    .on_elected = on_elected,
                                    .on_lost = on_lost,
                                    .on_failure = on_failure,
                                });
}

static void hold(int64_t duration_ms, int64_t renew_deadline_ms, int64_t retry_ms)
{
    start_with(duration_ms, renew_deadline_ms, retry_ms);
    LOOP_UNTIL(elected == 1);
}

/* A term that no machine is too slow for. */
static void start(void)
{
    start_with(60000, 40000, 20);
}

/* Holds a lease with a short term, whose end the test waits for. */
static void hold_briefly(void)
{
    hold(1000, 400, 20);
}

/* A server of one Lease with optimistic concurrency. */
static struct {
    char record[4096]; /* "" when there is none */
    int version;
    bool frozen;  /* answers nothing */
    bool forbids; /* refuses writes */
    bool changes; /* between a client's read and its write */
    bool holds;   /* does not answer pod writes */
} store;

static void store_write(struct scripted_request *request, int status)
{
    struct json *record;
    json_parse(request->body, strlen(request->body), 65536, &record, NULL);
    char version[16];
    snprintf(version, sizeof version, "%d", ++store.version);
    json_set_string(json_set_object(record, "metadata"), "resourceVersion", version);
    SCOPED_BUFFER text = BUFFER_INIT(sizeof store.record);
    json_print(record, &text, NULL);
    memcpy(store.record, buffer_text(&text), text.length + 1);
    json_free(record);
    scripted_reply(request, status, store.record);
}

static bool version_fits(const struct scripted_request *request)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, "\"resourceVersion\":\"%d\"", store.version);
    return strstr(request->body, wanted) != NULL;
}

static void serve_locked(struct scripted_request *request)
{
    bool reads = strncmp(request->line, "GET", 3) == 0, creates = strncmp(request->line, "POST", 4) == 0;
    bool is_lease = strstr(request->line, "/apis/coordination.k8s.io/v1/namespaces/n/leases") != NULL;
    if (!is_lease)
        scripted_reply(request, 200, "{}");
    else if (reads && store.record[0] == '\0')
        scripted_reply(request, 404, "{}");
    else if (reads)
        scripted_reply(request, 200, store.record);
    else if (store.forbids)
        scripted_reply(request, 403, "{}");
    else if (creates && store.record[0])
        scripted_reply(request, 409, "{\"reason\":\"AlreadyExists\"}");
    else if (creates || (version_fits(request) && !store.changes))
        store_write(request, creates ? 201 : 200);
    else
        scripted_reply(request, 409, "{\"reason\":\"Conflict\"}");
}

static void serve(struct scripted_request *request)
{
    if (store.frozen || (store.holds && strncmp(request->line, "PATCH", 5) == 0)) {
        scripted_hold(request);
        return;
    }
    SCOPED_LOCK(&request->server->lock);
    serve_locked(request);
}

static void serve_leases(void)
{
    fixture_start(serve, NULL, NULL);
}

static void stop(void)
{
    lease_free(lease);
    fixture_stop();
}

TestSuite(lease, .init = serve_leases, .fini = stop, .timeout = 120);

static void write_pod(void)
{
    SCOPED_JSON *patch = json_new_object();
    kube_client_patch(client, &pod, patch, &plain);
}

Test(lease, it_is_created_held_renewed_and_released)
{
    start();
    write_pod();
    LOOP_UNTIL(elected == 1);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED, "no write before the election");
    cr_assert(lease_held(lease));
    cr_assert_str_eq(lease_holder(lease), "me");
    cr_assert_not_null(strstr(store.record, "\"leaseDurationSeconds\":60"));
    LOOP_UNTIL(store.version >= 4);
    write_pod();
    LOOP_UNTIL(answer.calls == 2);
    cr_assert_eq(answer.error.kind, ERROR_NONE);
    cr_assert_eq(scripted_count(&server, "GET /apis/coordination"), 1, "renewals are single requests");
    lease_release(lease, on_released, NULL);
    cr_assert_not(lease_held(lease));
    LOOP_UNTIL(released == 1);
    cr_assert_not_null(strstr(store.record, "\"holderIdentity\":\"\""));
    cr_assert_eq(lost, 0);
    write_pod();
    LOOP_UNTIL(answer.calls == 3);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
}

static void hold_by_other(const char *holder, int seconds)
{
    snprintf(store.record, sizeof store.record,
             "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%d\"},\"spec\":{\"holderIdentity\":\"%s\","
             "\"leaseDurationSeconds\":%d,\"leaseTransitions\":4}}",
             ++store.version, holder, seconds);
}

Test(lease, anothers_is_taken_over_only_when_it_stopped_changing)
{
    hold_by_other("other", 1);
    int64_t before = clock_monotonic_ns();
    start();
    LOOP_UNTIL(elected == 1);
    cr_assert_geq(clock_monotonic_ns() - before, (int64_t)1e9);
    cr_assert_not_null(strstr(store.record, "\"leaseTransitions\":5"));
}

Test(lease, a_released_one_is_taken_at_once)
{
    hold_by_other("", 3600);
    start();
    LOOP_UNTIL(elected == 1);
}

Test(lease, when_the_server_falls_silent_writes_stop_and_waiting_ones_end)
{
    hold_briefly();
    store.frozen = true;
    write_pod(); /* on the wire, never answered */
    LOOP_UNTIL(lost == 1);
    cr_assert_eq(answer.calls, 1, "the write ended with the lease");
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_not(lease_held(lease));
    write_pod();
    LOOP_UNTIL(answer.calls == 2);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
}

Test(lease, refused_renewals_lose_it_before_another_may_take_it)
{
    hold_briefly();
    store.forbids = true;
    LOOP_UNTIL(lost == 1);
    cr_assert_not_null(strstr(lost_reason.message, "400 are allowed; "), "%s", lost_reason.message);
}

static bool says_why(const char *words)
{
    LOOP_UNTIL(lost == 1);
    return strstr(lost_reason.message, words) != NULL;
}

Test(lease, a_conflict_is_a_cause_like_any_other)
{
    hold(60000, 1000, 400);
    store.changes = true;
    cr_assert(says_why("the last try: the API server answered with HTTP status 409") ||
                  says_why("has had no answer for"),
              "%s", lost_reason.message);
    cr_assert_eq(troubles, 0);
}

Test(lease, that_nothing_was_tried_is_one_too)
{
    hold(60000, 400, 60000);
    cr_assert(says_why("there was no other try") || says_why("got no CPU time"), "%s", lost_reason.message);
}

/* At the pace of renewals that go well, a few that fail in a row would lose it. */
Test(lease, a_renewal_that_fails_is_tried_again_sooner)
{
    hold(120000, 60000, 2000);
    store.forbids = true;
    LOOP_UNTIL(lost == 1 || (least_gap_ns > 0 && least_gap_ns < 1900000000));
    cr_assert_eq(lost, 0, "as often as it had the time to");
    store.forbids = false;
    int before = store.version;
    LOOP_UNTIL(store.version > before);
    cr_assert(lease_held(lease));
}

Test(lease, it_is_lost_when_another_has_taken_it)
{
    start();
    LOOP_UNTIL(elected == 1);
    pthread_mutex_lock(&server.lock);
    hold_by_other("other", 3600);
    pthread_mutex_unlock(&server.lock);
    LOOP_UNTIL(lost == 1);
    cr_assert_not_null(strstr(lost_reason.message, "another has taken it"), "%s", lost_reason.message);
    cr_assert_str_eq(lease_holder(lease), "other");
}

Test(lease, a_stalled_loop_cannot_write_after_the_term)
{
    hold_briefly();
    for (int64_t start_ns = clock_monotonic_ns(); clock_monotonic_ns() - start_ns < 450000000;)
        ; /* no turn of the loop: no timer could have noticed */
    cr_assert_not(lease_held(lease));
    int before = scripted_count(&server, "PATCH");
    write_pod();
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_eq(scripted_count(&server, "PATCH"), before);
}

Test(lease, a_process_that_was_stopped_reports_it)
{
    hold_briefly();
    for (int64_t start_ns = clock_monotonic_ns(); clock_monotonic_ns() - start_ns < 2500000000;)
        ;
    LOOP_UNTIL(lost == 1);
    cr_assert_not_null(strstr(lost_reason.message, "this process was stopped, or got no CPU time, for "), "%s",
                       lost_reason.message);
}

/* As a process that was stopped between asking for a write and sending it. */
Test(lease, what_waited_to_be_sent_is_not_sent_after_the_term)
{
    hold_briefly();
    write_pod();
    cr_assert(lease_held(lease));
    for (int64_t start_ns = clock_monotonic_ns(); clock_monotonic_ns() - start_ns < 450000000;)
        ;
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_eq(lost, 1);
    cr_assert_eq(scripted_count(&server, "PATCH"), 0);
}

Test(lease, giving_it_up_ends_the_writes_on_the_wire)
{
    start();
    LOOP_UNTIL(elected == 1);
    store.holds = true;
    write_pod();
    LOOP_UNTIL(scripted_count(&server, "PATCH") == 1);
    lease_release(lease, on_released, NULL);
    cr_assert_eq(answer.calls, 1, "nothing may be written when another may hold it");
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    LOOP_UNTIL(released == 1);
    cr_assert_not_null(strstr(store.record, "\"holderIdentity\":\"\""));
}
