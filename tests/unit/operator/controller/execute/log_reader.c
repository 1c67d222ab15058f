/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/log_reader.h"

#include <criterion/criterion.h>

#include "common/buffer.h"
#include "tests/unit/operator/controller/execute/entry_scene.h"
#include "tests/unit/operator/kube/loop_fixture.h"

static struct log_reader *reader;
static struct job_entry *entry;
static int received;

static void count(void *context, struct job_entry *which)
{
    (void)context;
    (void)which;
    received++;
}

TestSuite(log_reader, .timeout = 60);

/* Reads the log of the job's only worker once. Returns the time until it is read again. */
static int64_t read_once(scripted_handler *log, const char *pattern)
{
    struct training_job job = {.name = "digits", .uid = SCENE_JOB, .framework = FRAMEWORK_PYTORCH};
    const struct entry_pod worker = {.uid = "worker", .role = ROLE_WORKER, .incarnation = 1};
    job.document.progress.log_patterns[0] = (char *)pattern;
    job.document.progress.log_pattern_count = 1;
    fixture_start(log, NULL, NULL);
    reader = log_reader_new(client, count, NULL);
    entry = entry_scene_begin();
    entry_scene_add(entry, &worker);
    received = 0;
    entry->log.turn_ms = clock_now_ms();
    cr_assert_eq(log_reader_look(reader, entry, &job, entry->log.turn_ms), PLAN_NEVER);
    cr_assert_not_null(entry->log.call);
    LOOP_UNTIL(received == 1);
    return entry->log.turn_ms - clock_now_ms();
}

static void end(void)
{
    entry_scene_end(entry);
    log_reader_free(reader);
    fixture_stop();
    scripted_server_stop(&server);
}

SCRIPTED_REPLY(steps, 200, "step 1 loss 0.5\nstep 2 loss 0.25\n")

Test(log_reader, the_values_of_a_log_are_kept)
{
    int64_t wait_ms = read_once(steps, "step (?<step>\\d+) loss (?<loss>\\S+)");
    cr_assert_str_eq(server.log[0], "GET /api/v1/namespaces/default/pods/worker/log?tailLines=200");
    cr_assert_not_null(entry->document);
    cr_expect_eq(entry->document->step, 2);
    cr_expect_leq(wait_ms, LOG_INTERVAL_MS);
    end();
}

/* Two hundred lines without what the expression ends with. */
static void long_lines(struct scripted_request *request)
{
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    for (int i = 0; i < 200; i++)
        buffer_format(&text, "step %d of the training of a model with many parameters on many devices\n", i);
    scripted_reply(request, 200, buffer_text(&text));
}

/* Otherwise some dozens of such jobs would take all of the operator's time. */
Test(log_reader, a_log_that_takes_much_work_is_read_less_often)
{
    int64_t wait_ms = read_once(long_lines, "(?<a>[a-z ]*;)|(?<b>[a-z ]*:)|(?<c>[a-z ]*!)|step (?<step>\\d+)");
    cr_assert_null(entry->log.flaw, "%s", entry->log.flaw);
    cr_assert_not_null(entry->document);
    cr_expect_eq(entry->document->step, 199);
    cr_expect_gt(wait_ms, 2 * LOG_INTERVAL_MS, "%lld ms", (long long)wait_ms);
    end();
}

Test(log_reader, a_log_that_takes_too_much_work_is_read_once_a_minute)
{
    int64_t wait_ms = read_once(long_lines, "(?<a>[a-z ]*[a-z ]*;)|#");
    cr_assert_not_null(entry->log.flaw);
    cr_expect_gt(wait_ms, 50000, "%lld ms", (long long)wait_ms);
    end();
}
