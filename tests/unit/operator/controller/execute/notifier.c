/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/notifier.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/kube/loop_fixture.h"

static struct notifier *notifier;
static int delivered, failed;
static char last_id[64];

static void done(void *context, const char *key, const char *id, bool is_delivered)
{
    (void)context;
    cr_expect_str_eq(key, "ml/digits");
    delivered += is_delivered;
    failed += !is_delivered;
    snprintf(last_id, sizeof last_id, "%s", id);
}

static void start(scripted_handler *handler)
{
    fixture_start(handler, NULL, NULL);
    SCOPED_FREE char *sink = memory_format("http://127.0.0.1:%d/hook?a=b", server.port);
    struct notifier_options options = {.sink = sink, .retry_base_ms = 5, .done = done};
    cr_assert_eq(notifier_new(loop, &options, &notifier, NULL), 0);
    delivered = failed = 0;
}

static void stop(void)
{
    notifier_free(notifier);
    fixture_stop();
    scripted_server_stop(&server);
}

static bool post(const char *id, int64_t time_ms)
{
    struct notice notice = {.id = id, .body = "{\"specversion\":\"1.0\"}", .until_ms = clock_now_ms() + time_ms};
    return notifier_send(notifier, "ml/digits", &notice);
}

static void take(struct scripted_request *request)
{
    bool right = strncmp(request->line, "POST /hook?a=b", 14) == 0 &&
                 strstr(request->head, "application/cloudevents+json; charset=UTF-8") &&
                 strcmp(request->body, "{\"specversion\":\"1.0\"}") == 0;
    scripted_reply(request, right ? 204 : 400, "");
}

Test(notifier, posts_an_event_and_calls_done_once)
{
    start(take);
    cr_assert(post("a", 60000) && post("a", 60000), "the same one waits already");
    LOOP_UNTIL(delivered == 1);
    cr_assert_str_eq(last_id, "a");
    cr_assert(post("b", 60000));
    LOOP_UNTIL(delivered == 2);
    cr_assert_eq(server.requests, 2);
    SCOPED_BUFFER text;
    buffer_init(&text, 4096);
    notifier_write_metrics(notifier, &text);
    cr_assert(strstr(buffer_text(&text), "{result=\"delivered\"} 2\n"));
    stop();
}

static void take_the_fourth(struct scripted_request *request)
{
    static const int statuses[] = {503, 429, 408, 200};
    scripted_reply(request, statuses[request->number], "");
}

Test(notifier, tries_again_after_an_outage)
{
    start(take_the_fourth);
    post("a", 60000);
    LOOP_UNTIL(delivered == 1);
    cr_assert_eq(server.requests, 4);
    cr_assert_eq(failed, 0);
    stop();
}

static void refuse(struct scripted_request *request)
{
    scripted_reply(request, 404, "");
}

static void redirect(struct scripted_request *request)
{
    scripted_reply_with(request, 307, "Location: http://169.254.169.254/latest\r\n", "");
}

static void fail(struct scripted_request *request)
{
    scripted_reply(request, 500, "");
}

Test(notifier, gives_up_at_a_refusal_a_redirect_and_the_end_of_its_time)
{
    scripted_handler *const handlers[] = {refuse, redirect, fail};
    for (size_t i = 0; i < 3; i++) {
        start(handlers[i]);
        post("a", i < 2 ? 60000 : 40);
        LOOP_UNTIL(failed == 1);
        cr_assert(i == 2 ? server.requests > 1 : server.requests == 1, "%zu: %d requests", i, server.requests);
        cr_assert_eq(delivered, 0);
        stop();
    }
}

static void be_silent(struct scripted_request *request)
{
    scripted_hold(request);
}

Test(notifier, holds_a_limited_number_and_drops_them_at_the_end)
{
    start(be_silent);
    for (unsigned i = 0; i < NOTIFIER_QUEUE; i++) {
        SCOPED_FREE char *id = memory_format("%u", i);
        cr_assert(post(id, 60000));
    }
    cr_assert_not(post("one more", 60000));
    event_loop_turn(loop, 10, NULL);
    stop();
    cr_assert_eq(delivered + failed, 0);
}
