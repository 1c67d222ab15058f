/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define REPORT "epoch 1\n{\"metrics\":{\"validationLoss\":0.31,\"bleu\":27.4},\"step\":3000,\"epoch\":2}\n"

SCENE_SUITE(script_progress)
{
    scene_init_running(&scene, 2);
    scene.job.framework = FRAMEWORK_TENSORFLOW;
    scene.pods[0].termination_message = REPORT;
    scene.input.now_ms += 60000;
}

static void end_both(int code)
{
    scene_end_pod(&scene, &scene.pods[0], code);
    scene_end_pod(&scene, &scene.pods[1], code);
}

static void expect_metrics(const char *first, const char *second)
{
    const struct progress *progress = &scene.plan.status.progress;
    cr_assert_eq(progress->metric_count, 2);
    cr_expect_str_eq(progress->metrics[0].name, "validationLoss");
    cr_expect_str_eq(progress->metrics[0].value, first);
    cr_expect_str_eq(progress->metrics[1].name, "bleu");
    cr_expect_str_eq(progress->metrics[1].value, second);
}

static const char *warning(void)
{
    const char *note = NULL;
    for (size_t i = 0; i < scene.plan.event_count; i++) {
        const struct plan_event *event = &scene.plan.events[i];
        if (strcmp(event->reason, "ProgressUnreadable") != 0)
            continue;
        cr_assert(event->warning);
        cr_assert_null(note, "two warnings");
        note = event->note;
    }
    return note ? note : "";
}

Test(script_progress, the_chiefs_report_is_written_with_the_end)
{
    end_both(0);
    expect_plan("write_status=1 Succeeded:True=ChiefSucceeded progress.step=3000 progress.data_epoch=2 "
                "progress.percent=unset");
    expect_metrics("0.31", "27.4");
    cr_expect_eq(scene.plan.status.progress.updated_at_ms, scene.pods[0].finished_ms);
    cr_expect_str_eq(warning(), "");
}

Test(script_progress, of_any_other_framework)
{
    for (int framework = FRAMEWORK_TENSORFLOW; framework <= FRAMEWORK_JAX; framework++) {
        scene_renew();
        scene.job.framework = (enum framework)framework;
        end_both(0);
        scene_plan(&scene);
        expect_metrics("0.31", "27.4");
    }
    scene_renew();
    scene.job.framework = FRAMEWORK_COXSWAIN;
    end_both(0);
    expect_plan("Succeeded:True=ChiefSucceeded progress.step=unset (its worker says this in another form)");
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
}

Test(script_progress, another_workers_report_does_not_count)
{
    scene.pods[1].termination_message = "{\"metrics\":{\"bleu\":1}}";
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("Succeeded:True= progress.step=unset");
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
    scene_end_pod(&scene, &scene.pods[0], 0);
    expect_plan("Succeeded:True=ChiefSucceeded");
    expect_metrics("0.31", "27.4");
}

Test(script_progress, that_of_a_chief_of_its_own)
{
    scene.job.roles[ROLE_CHIEF].count = 1;
    struct pod_view *chief = scene_add_pod(&scene, ROLE_CHIEF, 0, 1);
    chief->termination_message = "{\"metrics\":{\"validationLoss\":1,\"bleu\":2}}";
    scene_end_pod(&scene, chief, 0);
    end_both(0);
    expect_plan("Succeeded:True=ChiefSucceeded");
    expect_metrics("1", "2");
}

/* With FallbackToLogsOnError the message is the end of its log. */
Test(script_progress, the_message_of_a_pod_that_failed_does_not_count)
{
    end_both(1);
    expect_plan("Succeeded:True= progress.step=unset");
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
    cr_expect_str_eq(warning(), "");
}

Test(script_progress, nor_that_of_a_pod_that_was_asked_to_end)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.pods[0].deletion_ms = scene.pods[0].finished_ms - 3000;
    scene.pods[0].grace_ms = 30000;
    expect_plan("Succeeded:True= progress.step=unset");
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
}

Test(script_progress, what_was_reported_stays_when_the_pod_goes)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    expect_turn("Succeeded:True= progress.step=3000");
    scene.list[0] = &scene.pods[1];
    scene.input.pod_count = 1;
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_turn("Succeeded:True=WorkersSucceeded progress.step=3000");
    expect_metrics("0.31", "27.4");
    expect_plan("write_status=0 progress.step=3000");
}

Test(script_progress, a_crew_that_starts_over_forgets_it)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    scene_turn(&scene);
    expect_metrics("0.31", "27.4");
    scene_end_pod(&scene, &scene.pods[1], 1);
    expect_turn("attempt=2 progress.step=unset progress.data_epoch=unset progress.updated_at_ms=unset");
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
}

Test(script_progress, what_cannot_be_used_is_told_once_and_fails_nothing)
{
    scene.pods[0].termination_message = "{\"metrics\":{\"loss\":\"low\\u001b[31m\",\"bleu\":27.4}}";
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms = scene.pods[0].finished_ms + 500;
    expect_plan("Succeeded:True= (the others may still end)");
    cr_expect_str_eq(warning(), "");
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_turn("Succeeded:True=ChiefSucceeded");
    cr_expect_str_eq(
        warning(), "not all of the report in the termination message of pod digits-worker-0-1 can be used: the metric "
                   "loss is of type string, not a number");
    cr_expect_eq(scene.plan.status.progress.metric_count, 1);
    cr_expect_str_eq(scene.plan.status.progress.metrics[0].name, "bleu");
    expect_plan("write_status=0");
    cr_expect_str_eq(warning(), "");
}

Test(script_progress, a_report_that_is_no_JSON)
{
    scene.pods[0].termination_message = "{'metrics': {'loss': 1}}";
    end_both(0);
    expect_plan("Succeeded:True=ChiefSucceeded progress.updated_at_ms=unset");
    cr_expect(strstr(warning(), "pod digits-worker-0-1 cannot be used: not JSON"), "%s", warning());
    cr_expect_eq(scene.plan.status.progress.metric_count, 0);
}

Test(script_progress, NaN_costs_no_other_metric)
{
    scene.pods[0].termination_message = "{\"metrics\": {\"loss\": NaN, \"bleu\": 27.4}, \"step\": 40}";
    end_both(0);
    expect_turn("Succeeded:True=ChiefSucceeded");
    cr_expect_str_eq(
        warning(), "not all of the report in the termination message of pod digits-worker-0-1 can be used: the metric "
                   "loss is NaN, not a finite number");
    cr_assert_eq(scene.plan.status.progress.metric_count, 1);
    cr_expect_str_eq(scene.plan.status.progress.metrics[0].name, "bleu");
}

Test(script_progress, other_words_are_no_report)
{
    scene.pods[0].termination_message = "done";
    end_both(0);
    expect_plan("Succeeded:True=ChiefSucceeded");
    cr_expect_str_eq(warning(), "");
}

/* The metrics of the end are those that a sweep compares. */
Test(script_progress, the_end_is_held_back_until_the_log_has_been_read)
{
    end_both(0);
    scene.input.now_ms += 3600000; /* by a node whose clock is wrong, or whom no operator has heard for an hour */
    scene.input.log.unread_since_ms = scene.input.now_ms - 500;
    expect_plan("Succeeded:True= Failed:True=");
    scene.input.log.unread_since_ms = FIELD_UNSET;
    expect_plan("Succeeded:True=ChiefSucceeded");
    scene.input.log.unread_since_ms = scene.input.now_ms;
    scene.input.now_ms += 20000;
    expect_plan("Succeeded:True=ChiefSucceeded (nobody could read it)");
}

Test(script_progress, a_log_that_cannot_be_read_is_told_once)
{
    scene.input.log.flaw = "its log could not be read: pods \"digits-worker-0-1\" is forbidden\x1b[31m";
    scene_plan(&scene);
    cr_expect(scene.plan.reports_log_flaw);
    cr_expect_str_eq(warning(), "the progress of the script cannot be read: its log could not be read: pods "
                                "\"digits-worker-0-1\" is forbidden");
    scene.input.log.flaw_reported = true;
    scene_plan(&scene);
    cr_expect_not(scene.plan.reports_log_flaw);
    cr_expect_str_eq(warning(), "");
}
