/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_answers.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/execute/entry_scene.h"

static struct job_entry *entry;
static struct training_job job = {.name = "digits", .uid = SCENE_JOB};

static void init(void)
{
    entry = entry_scene_begin();
}

static void fini(void)
{
    entry_scene_end(entry);
}

TestSuite(progress_answers, .init = init, .fini = fini);

static void add_chief(const char *uid, int64_t incarnation)
{
    const struct entry_pod pod = {.uid = uid, .role = ROLE_WORKER, .incarnation = incarnation};
    entry_scene_add(entry, &pod);
}

static void expect_look(int64_t asked_ms, int64_t since_ms, bool found)
{
    struct answers_input answers = progress_answers_of(entry, &job);
    cr_expect_eq(answers.asked_ms, asked_ms);
    cr_expect_eq(answers.since_ms, since_ms);
    cr_expect_eq(answers.found, found);
}

Test(progress_answers, says_when_the_chief_was_first_and_last_asked)
{
    add_chief("first", 1);
    expect_look(FIELD_UNSET, FIELD_UNSET, false);
    progress_answers_note(entry, "first", 5000, true);
    progress_answers_note(entry, "first", 9000, false);
    expect_look(9000, 5000, false);
}

Test(progress_answers, what_an_earlier_chief_answered_does_not_count)
{
    add_chief("first", 1);
    progress_answers_note(entry, "first", 5000, true);
    add_chief("second", 2);
    expect_look(FIELD_UNSET, FIELD_UNSET, false);
    progress_answers_note(entry, "second", 7000, true);
    expect_look(7000, 7000, true);
}

#define STARTED 1000
#define NOW 900000

static const struct push_endpoint endpoint = {.url = "https://o.n.svc:8443"};

static struct training_job pushing_job(void)
{
    return (struct training_job){.name = "digits",
                                 .uid = SCENE_JOB,
                                 .framework = FRAMEWORK_PYTORCH,
                                 .document.progress.push = true,
                                 .status = {.attempt = 2, .progress.updated_at_ms = FIELD_UNSET}};
}

static void expect_push(const struct training_job *pushing, int64_t asked_ms, int64_t since_ms)
{
    struct answers_input answers = progress_answers_of_push(entry, pushing, STARTED, NOW);
    cr_expect_eq(answers.asked_ms, asked_ms);
    cr_expect_eq(answers.since_ms, since_ms);
    cr_expect_not(answers.found);
}

/* Its pods may have no valid token: the keys may be younger than the job. */
Test(progress_answers, silence_counts_once_a_script_of_this_attempt_has_sent_a_report)
{
    struct training_job pushing = pushing_job();
    expect_push(&pushing, FIELD_UNSET, FIELD_UNSET);
    entry->push_attempt = 1;
    expect_push(&pushing, FIELD_UNSET, FIELD_UNSET);
    entry->push_attempt = 2;
    expect_push(&pushing, NOW, STARTED);
    entry->push_attempt = 0;
    pushing.status.progress.updated_at_ms = 500; /* by an earlier operator */
    expect_push(&pushing, NOW, STARTED);
    struct answers_input unreachable = progress_answers_of_push(entry, &pushing, FIELD_UNSET, NOW);
    cr_expect_eq(unreachable.asked_ms, FIELD_UNSET);
}

Test(progress_answers, a_log_is_read_until_a_script_sends_a_report)
{
    struct training_job pushing = pushing_job();
    cr_expect(progress_answers_is_pushed(entry, &pushing, &endpoint));
    cr_expect_not(progress_answers_is_pushed(entry, &pushing, NULL));
    pushing.document.progress.log_pattern_count = 1;
    pushing.status.progress.updated_at_ms = 500; /* of the log */
    cr_expect_not(progress_answers_is_pushed(entry, &pushing, &endpoint));
    entry->push_attempt = 2;
    cr_expect(progress_answers_is_pushed(entry, &pushing, &endpoint));
    expect_push(&pushing, NOW, STARTED);
}

Test(progress_answers, goes_with_the_clock_and_with_the_job)
{
    add_chief("first", 1);
    progress_answers_note(entry, "first", 5000, true);
    job_entry_clock_set(entry, 3600000, NULL);
    expect_look(3605000, 3605000, true);
    job_entry_set_job(entry, "another");
    expect_look(FIELD_UNSET, FIELD_UNSET, false);
}
