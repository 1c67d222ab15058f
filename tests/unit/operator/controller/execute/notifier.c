/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/notifier.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

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
    SCOPED_BUFFER text = BUFFER_INIT(4096);
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

static char first_ids[17];

/* Slower than the first pauses. */
static void note_and_fail(struct scripted_request *request)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (request->number < 16)
        first_ids[request->number] = request->body[0];
    pthread_mutex_lock(&lock);
    usleep(20000);
    pthread_mutex_unlock(&lock);
    scripted_reply(request, 500, "");
}

Test(notifier, none_is_tried_again_before_all_were_tried)
{
    start(note_and_fail);
    char body[2] = "";
    for (body[0] = 'a'; body[0] <= 'p'; body[0]++) {
        struct notice notice = {.id = body, .body = body, .until_ms = clock_now_ms() + 60000};
        cr_assert(notifier_send(notifier, "ml/digits", &notice));
    }
    LOOP_UNTIL(server.requests >= 17);
    for (char id = 'a'; id <= 'p'; id++)
        cr_expect(strchr(first_ids, id), "%c was not among the first 16: %s", id, first_ids);
    stop();
}

static void take_at_length(struct scripted_request *request)
{
    SCOPED_FREE char *page = memory_format("%0100000d", 0);
    scripted_reply(request, 200, page);
}

Test(notifier, what_the_sink_answers_may_be_long)
{
    start(take_at_length);
    post("a", 60000);
    LOOP_UNTIL(delivered == 1);
    cr_assert_eq(server.requests, 1);
    stop();
}

Test(notifier, no_log_has_the_path_of_the_sink, .init = cr_redirect_stderr)
{
    char line[1024] = "";
    start(take);
    scripted_server_stop(&server);
    post("a", 0);
    LOOP_UNTIL(failed == 1);
    cr_assert_not_null(fgets(line, sizeof line, cr_get_redirected_stderr()));
    cr_assert(strstr(line, "a notification was not delivered"), "%s", line);
    cr_assert_not(strstr(line, "/hook"), "%s", line);
    notifier_free(notifier);
    fixture_stop();
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
        post("a", i < 2 ? 60000 : 500);
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
