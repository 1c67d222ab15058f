/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/node_taints.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "operator/controller/observed/node_view.h"
#include "tests/unit/operator/kube/loop_fixture.h"

/* The machine's clock in this program, instead of the C library's: a test may set it ahead. */
static int64_t wall_clock_ahead_ms;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += wall_clock_ahead_ms / 1000;
    return status;
}

static struct node_taints *taints;
static struct event_recorder *recorder;
static struct informer *nodes;

/* What the server answers: the node, how many nodes there are besides, and the status of a patch. */
static char node_text[1024], patches[8][2048];
static int others, patch_status, patch_count;

static void serve(struct scripted_request *request)
{
    SCOPED_FREE char *text = NULL;
    if (strncmp(request->line, "PATCH", 5) == 0) {
        snprintf(patches[patch_count % 8], sizeof patches[0], "%.2000s", request->body);
        patch_count++;
        scripted_reply(request, patch_status,
                       patch_status == 200 ? "{\"metadata\":{\"resourceVersion\":\"9\"}}" : "{}");
    } else if (strstr(request->line, "limit=1")) {
        text = memory_format("{\"metadata\":{\"remainingItemCount\":%d},\"items\":[{}]}", others);
        scripted_reply(request, 200, text);
    } else if (strstr(request->line, "/nodes?")) {
        text = memory_format("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", node_text);
        scripted_reply(request, strstr(request->line, "watch=") ? 400 : 200, text);
    } else if (strstr(request->line, "/nodes/gone")) {
        scripted_reply(request, 404, "{}");
    } else {
        scripted_reply(request, strncmp(request->line, "POST", 4) == 0 ? 201 : 200,
                       strncmp(request->line, "POST", 4) == 0 ? "{}" : node_text);
    }
}

static void *parse(void *context, const struct json *object)
{
    (void)context;
    return node_trouble_new(object);
}

static void start(const char *node)
{
    snprintf(node_text, sizeof node_text, "%s", node);
    patch_count = 0;
    patch_status = 200;
    fixture_start(serve, NULL, NULL);
    recorder = event_recorder_new(client, &(struct event_recorder_options){.controller = "c", .instance = "i"});
    struct informer_options options = {
        .resource = KUBE_NODES, .parse = parse, .item_free = free, .never_stream_list = true};
    nodes = informer_start(client, &options);
    taints = node_taints_start(&(struct node_taints_options){
        .client = client, .recorder = recorder, .nodes = nodes, .window_ms = 60000, .look_ms = 5});
}

static void stop(void)
{
    node_taints_stop(taints);
    informer_free(nodes);
    event_recorder_stop(recorder);
    fixture_stop();
    event_recorder_free(recorder);
    node_taints_free(taints);
    scripted_server_stop(&server);
}

/* The job's status blames the node `count` times; `sweep`: whose trial it is. */
static void note_node(const char *uid, const char *sweep, const char *node, unsigned count)
{
    struct node_failure failures[4];
    for (unsigned i = 0; i < count; i++)
        failures[i] = (struct node_failure){
            .node = node, .at_ms = clock_now_ms() - 1000 * i, .reason = "a device failed (pod p)"};
    struct training_job job = {.uid = uid, .namespace = "ml", .name = uid, .sweep_uid = sweep};
    job.status.node_failures = failures;
    job.status.node_failure_count = count;
    node_taints_note(taints, &job);
}

static void note(const char *uid, unsigned count)
{
    note_node(uid, NULL, "n", count);
}

static void turn_for(int64_t ms)
{
    for (int64_t end = clock_monotonic_ms() + ms; clock_monotonic_ms() < end;)
        event_loop_turn(loop, 10, NULL);
}

#define PLAIN_NODE                                                                                                     \
    "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[{\"key\":\"theirs\",\"value\":"    \
    "\"v\",\"effect\":\"NoExecute\"}]}}"

Test(node_taints, a_node_that_two_jobs_blame_gets_the_taint_beside_those_of_others)
{
    start(PLAIN_NODE);
    note("a", 2);
    turn_for(100);
    cr_expect_eq(patch_count, 0);
    note("b", 1);
    LOOP_UNTIL(patch_count > 0 && event_recorder_counts(recorder).written == 1);
    cr_assert(strstr(patches[0], "\"resourceVersion\":\"7\""), "%s", patches[0]);
    cr_assert(strstr(patches[0], "\"coxswain.dev/sick-since\":\"20"), "%s", patches[0]);
    cr_assert(strstr(patches[0], "\"taints\":[{\"key\":\"theirs\",\"value\":\"v\",\"effect\":\"NoExecute\"},"
                                 "{\"key\":\"coxswain.dev/sick\",\"effect\":\"NoSchedule\"}]"),
              "%s", patches[0]);
    stop();
}

Test(node_taints, what_a_job_takes_back_counts_no_more_and_what_it_repeats_counts_once)
{
    start(PLAIN_NODE);
    note("b", 1);
    note("a", 2);
    note("a", 0);
    note("a", 1);
    note("a", 1);
    turn_for(100);
    cr_expect_eq(patch_count, 0);
    stop();
}

Test(node_taints, the_trials_of_a_sweep_alone_taint_no_node)
{
    start(PLAIN_NODE);
    note_node("a-0", "a", "n", 3);
    note_node("a-1", "a", "n", 3);
    turn_for(100);
    cr_expect_eq(patch_count, 0);
    note_node("b-0", "b", "n", 1);
    LOOP_UNTIL(patch_count > 0);
    stop();
}

/* The node of a spot machine is often deleted soon after it was lost. */
Test(node_taints, a_node_that_is_gone_keeps_no_other_waiting)
{
    start(PLAIN_NODE);
    note_node("a", NULL, "gone", 4);
    note_node("b", NULL, "gone", 4);
    note("c", 2);
    note("d", 1);
    LOOP_UNTIL(patch_count > 0 && event_recorder_counts(recorder).written == 1);
    stop();
}

Test(node_taints, a_node_that_has_changed_is_read_again)
{
    start(PLAIN_NODE);
    patch_status = 409;
    note("a", 2);
    note("b", 1);
    LOOP_UNTIL(patch_count >= 3);
    cr_expect_eq(event_recorder_counts(recorder).recorded, 0);
    stop();
}

/* format: the time of the taint */
#define TAINTED_NODE(time)                                                                                             \
    "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"7\",\"annotations\":{\"coxswain.dev/sick-since\":\"" time     \
    "\"}},\"spec\":{\"taints\":[{\"key\":\"coxswain.dev/sick\",\"effect\":\"NoSchedule\"},{\"key\":\"theirs\"}]}}"

Test(node_taints, a_taint_that_an_earlier_operator_has_set_ends)
{
    start(TAINTED_NODE("2026-01-01T00:00:00Z"));
    LOOP_UNTIL(patch_count > 0);
    cr_assert(strstr(patches[0], "\"coxswain.dev/sick-since\":null"), "%s", patches[0]);
    cr_assert(strstr(patches[0], "\"taints\":[{\"key\":\"theirs\"}]"), "%s", patches[0]);
    stop();
}

/* A node whose taint was set, and ends, so many seconds from now. */
static void start_tainted(int64_t since_s, int64_t until_s)
{
    char since[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX], node[1024];
    clock_format_seconds(clock_now_ms() + 1000 * since_s, since);
    clock_format_seconds(clock_now_ms() + 1000 * until_s, until);
    snprintf(
        node, sizeof node,
        "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"7\",\"annotations\":{\"coxswain.dev/sick-since\":\"%s\","
        "\"coxswain.dev/sick-until\":\"%s\"}},\"spec\":{\"taints\":[{\"key\":\"coxswain.dev/sick\",\"effect\":"
        "\"NoSchedule\"}]}}",
        since, until);
    start(node);
    LOOP_UNTIL(informer_synced(nodes));
}

/* This operator's window is a minute. */
Test(node_taints, a_taint_of_an_operator_with_another_window_ends_when_that_one_said)
{
    start_tainted(-120, 3480);
    turn_for(200);
    cr_expect_eq(patch_count, 0);
    stop();
    start_tainted(-20, -10);
    LOOP_UNTIL(patch_count > 0);
    cr_assert(strstr(patches[0], "\"coxswain.dev/sick-until\":null"), "%s", patches[0]);
    stop();
}

Test(node_taints, a_clock_that_is_set_ends_no_taint_and_forgets_no_failure)
{
    start_tainted(-10, 50);
    turn_for(100);
    wall_clock_ahead_ms = 3600000;
    turn_for(200);
    cr_expect_eq(patch_count, 0);
    stop();
    wall_clock_ahead_ms = 0;
    start(PLAIN_NODE);
    LOOP_UNTIL(informer_synced(nodes));
    note("a", 2);
    turn_for(100);
    wall_clock_ahead_ms = 3600000;
    turn_for(100);
    note("b", 1);
    LOOP_UNTIL(patch_count > 0);
    wall_clock_ahead_ms = 0;
    stop();
}

Test(node_taints, no_more_than_the_limit_and_none_that_a_person_has_set_is_removed)
{
    start("{\"metadata\":{\"name\":\"other\",\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[{\"key\":"
          "\"coxswain.dev/sick\"}]}}");
    others = 18;
    LOOP_UNTIL(informer_synced(nodes));
    note("a", 2);
    note("b", 1);
    turn_for(200);
    cr_assert_eq(patch_count, 0);
    others = 19; /* of 20 nodes, two may have it; the server answers with the other node, so nothing is changed */
    snprintf(node_text, sizeof node_text, "%s", PLAIN_NODE);
    LOOP_UNTIL(patch_count > 0);
    stop();
}
