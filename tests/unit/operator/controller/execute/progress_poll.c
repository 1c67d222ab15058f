/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_poll.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "common/memory.h"
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

TestSuite(progress_poll, .init = init, .fini = fini);

static void add_chief(const char *uid, int64_t incarnation, bool ready)
{
    const struct entry_pod pod = {
        .uid = uid, .role = ROLE_WORKER, .ip = "10.0.0.7", .incarnation = incarnation, .unready = !ready};
    entry_scene_add(entry, &pod);
}

static void chief_status_received(const char *uid, enum status_phase phase, const char *message)
{
    entry->document = memory_allocate(1, sizeof *entry->document);
    entry->document_pod = memory_copy_string(uid);
    status_document_init(entry->document);
    entry->document->phase = phase;
    snprintf(entry->document->message, sizeof entry->document->message, "%s", message);
}

Test(progress_poll, what_the_ready_chief_waits_for_counts)
{
    add_chief("first", 1, true);
    cr_assert_null(progress_crew_waits(entry, &job), "nothing was told");
    chief_status_received("first", STATUS_WAITING, "waiting for worker 1");
    cr_assert_str_eq(progress_crew_waits(entry, &job), "waiting for worker 1");
}

Test(progress_poll, a_chief_that_trains_waits_for_nothing)
{
    add_chief("first", 1, true);
    chief_status_received("first", STATUS_TRAINING, "step 3");
    cr_assert_null(progress_crew_waits(entry, &job));
}

Test(progress_poll, the_words_of_a_chief_that_is_gone_explain_nothing)
{
    chief_status_received("first", STATUS_WAITING, "waiting for worker 1");
    cr_assert_null(progress_crew_waits(entry, &job));
    add_chief("second", 2, true);
    cr_assert_null(progress_crew_waits(entry, &job), "its successor has said nothing yet");
}

Test(progress_poll, the_words_of_a_chief_that_is_not_ready_explain_nothing)
{
    add_chief("first", 1, false);
    chief_status_received("first", STATUS_WAITING, "waiting for worker 1");
    cr_assert_null(progress_crew_waits(entry, &job));
}

Test(progress_poll, a_ready_chief_that_answers_nothing_for_a_minute_is_silent)
{
    add_chief("first", 1, true);
    progress_ask_pod(entry, "first");
    progress_heard(entry, "first", CHIEF_SILENT, 5000);
    progress_heard(entry, "first", CHIEF_SILENT, 5000 + PROGRESS_SILENCE_MS - 1);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD);
    progress_heard(entry, "first", CHIEF_SILENT, 5000 + PROGRESS_SILENCE_MS);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_SILENT);
    progress_heard(entry, "first", CHIEF_HEARD, 70000);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD, "it has answered");
    progress_heard(entry, "first", CHIEF_SILENT, 71000);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD, "a minute begins anew");
}

Test(progress_poll, the_silence_of_one_chief_is_not_anothers)
{
    add_chief("first", 1, true);
    progress_ask_pod(entry, "first");
    progress_heard(entry, "first", CHIEF_SILENT, 0);
    progress_heard(entry, "first", CHIEF_SILENT, PROGRESS_SILENCE_MS);
    add_chief("second", 2, true);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD);
    progress_ask_pod(entry, "second");
    progress_heard(entry, "first", CHIEF_SILENT, 2 * PROGRESS_SILENCE_MS);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD, "an answer of the first that came late");
    progress_heard(entry, "second", CHIEF_SILENT, 2 * PROGRESS_SILENCE_MS);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD);
}

Test(progress_poll, one_that_is_not_ready_is_not_asked)
{
    add_chief("first", 1, false);
    progress_ask_pod(entry, "first");
    progress_heard(entry, "first", CHIEF_SILENT, 0);
    progress_heard(entry, "first", CHIEF_SILENT, PROGRESS_SILENCE_MS);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD);
}

Test(progress_poll, one_that_answers_with_something_else_is_not_silent)
{
    add_chief("first", 1, true);
    progress_ask_pod(entry, "first");
    progress_heard(entry, "first", CHIEF_SILENT, 0);
    progress_heard(entry, "first", CHIEF_STRANGE, PROGRESS_SILENCE_MS - 1);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD, "not for a minute yet");
    progress_heard(entry, "first", CHIEF_STRANGE, PROGRESS_SILENCE_MS);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_STRANGE);
    progress_heard(entry, "first", CHIEF_HEARD, PROGRESS_SILENCE_MS + 1000);
    cr_assert_eq(progress_chief_voice(entry, &job), CHIEF_HEARD);
}
