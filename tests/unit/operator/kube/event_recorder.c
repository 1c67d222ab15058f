/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/event_recorder.h"
#include "tests/unit/json_of.h"
#include "tests/unit/operator/kube/loop_fixture.h"

static struct event_recorder *recorder;

static void stop(void)
{
}

TestSuite(event_recorder, .fini = stop, .timeout = 120);

static char body[8][65536];

static void keep(struct scripted_request *request)
{
    snprintf(body[request->number % 8], sizeof body[0], "%s", request->body);
    scripted_reply(request, 201, "{}");
}

static void start(scripted_handler *handler, int64_t window_ms, int64_t series_delay_ms)
{
    fixture_start(handler, NULL, NULL);
    recorder = event_recorder_new(client, &(struct event_recorder_options){.controller = "coxswain.dev/operator",
                                                                           .instance = "host-1",
                                                                           .window_ms = window_ms,
                                                                           .series_delay_ms = series_delay_ms});
}

static const struct event_subject job = {"coxswain.dev/v1beta1", "TrainingJob", "n", "j", "u-1", "7"};

Test(event_recorder, an_event_is_written_whole)
{
    start(keep, 0, 0);
    event_recorder_record(recorder, &job, EVENT_WARNING, "PodReplaced", "Replace", "worker 1 was preempted");
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    cr_assert_str_eq(server.log[0], "POST /apis/events.k8s.io/v1/namespaces/n/events");
    static const char *const parts[] = {
        "\"name\":\"j.",
        "\"reportingController\":\"coxswain.dev/operator\",\"reportingInstance\":\"host-1\"",
        "\"type\":\"Warning\",\"reason\":\"PodReplaced\",\"action\":\"Replace\"",
        "\"regarding\":{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"namespace\":\"n\","
        "\"name\":\"j\",\"uid\":\"u-1\",\"resourceVersion\":\"7\"}",
        "\"note\":\"worker 1 was preempted\"",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_assert_not_null(strstr(body[0], parts[i]), "%s lacks %s", body[0], parts[i]);
}

Test(event_recorder, repetitions_become_one_series)
{
    start(keep, 0, 20);
    for (int i = 0; i < 50; i++)
        event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", "again");
    event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", "another note");
    LOOP_UNTIL(event_recorder_counts(recorder).written == 3);
    cr_assert_eq(scripted_count(&server, "POST"), 2);
    cr_assert_eq(scripted_count(&server, "PATCH /apis/events.k8s.io/v1/namespaces/n/events/j."), 1);
    bool told = false; /* in which order they come depends on the machine's other work */
    for (size_t i = 0; i < 3; i++)
        told |= strstr(body[i], "{\"series\":{\"count\":50,\"lastObservedTime\":\"") != NULL;
    cr_assert(told, "%s", body[2]);
}

Test(event_recorder, after_the_window_an_event_is_new)
{
    start(keep, 1, 0);
    event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", "again");
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    for (int64_t start = clock_now_ms(); clock_now_ms() - start < 3;)
        ;
    event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", "again");
    LOOP_UNTIL(scripted_count(&server, "POST") == 2);
    event_recorder_free(recorder);
    fixture_stop();
}

SCRIPTED_REPLY(refuse, 403, "{}")

Test(event_recorder, refusals_are_counted_and_more_than_the_queue_dropped)
{
    start(refuse, 0, 0);
    for (int i = 0; i < EVENT_RECORDER_QUEUE + 10; i++) {
        SCOPED_FREE char *note = memory_format("%d", i);
        event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", note);
    }
    LOOP_UNTIL(event_recorder_counts(recorder).failed == EVENT_RECORDER_QUEUE);
    cr_assert_eq(event_recorder_counts(recorder).dropped, 10);
}

Test(event_recorder, a_long_note_is_cut_between_characters)
{
    start(keep, 0, 0);
    char note[1200] = "x";
    for (size_t i = 1; i + 2 < sizeof note; i += 2)
        memcpy(note + i, "\xc3\xa9", 3);
    event_recorder_record(recorder, &job, EVENT_NORMAL, "R", "A", note);
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    SCOPED_JSON *event = json_of(body[0]);
    cr_assert_eq(strlen(json_string_at(event, "note", "")), 1023);
}
