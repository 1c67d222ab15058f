/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/notice.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(notice)
{
    scene_init_running(&scene, 2);
    scene.options.notifies = true;
    scene.job.status.notice_since_ms = FIELD_UNSET;
}

static void end_job(int exit_code)
{
    for (size_t i = 0; i < 2; i++) {
        scene_end_pod(&scene, &scene.pods[i], exit_code);
        scene.pods[i].termination_message = "password=hunter2";
    }
    scene_turn(&scene);
}

Test(notice, the_end_is_sent_once_the_status_has_it_until_it_is_delivered)
{
    end_job(0);
    scene_expect("job.state=Succeeded");
    cr_assert_null(scene.plan.end_notice.id, "the status is not written yet");
    cr_assert_eq(scene.job.status.notice_since_ms, scene.input.now_ms);
    for (int again = 0; again < 2; again++) { /* the second time by the operator's successor */
        scene_turn(&scene);
        cr_assert_str_eq(scene.plan.end_notice.id, SCENE_UID ".succeeded");
        cr_assert(notice_is_about_end(scene.plan.end_notice.id, SCENE_UID));
        cr_assert_not(notice_is_about_end(scene.plan.end_notice.id, "another"));
        cr_assert_eq(scene.plan.end_notice.until_ms, scene.input.now_ms + NOTICE_END_MS);
    }
    scene.input.memory.notice = NOTICE_DELIVERED;
    expect_turn("write_status=1 events=0");
    cr_assert_eq(scene.job.status.notice_since_ms, FIELD_UNSET);
    cr_assert_null(scene.plan.end_notice.id);
    scene.input.memory.notice = NOTICE_OPEN;
    expect_turn("write_status=0");
    cr_assert_null(scene.plan.end_notice.id, "an operator that is started later does not tell it again");
}

Test(notice, it_is_a_cloud_event_without_any_text_of_the_program)
{
    end_job(65);
    scene_turn(&scene);
    cr_assert_not(strstr(scene.plan.end_notice.body, "hunter2"));
    cr_assert(strstr(scene.job.status.conditions[CONDITION_FAILED].message, "hunter2"), "as the condition has it");
    SCOPED_JSON *event = json_of(scene.plan.end_notice.body);
    static const char *const expected[][2] = {
        {"specversion", "1.0"},
        {"id", SCENE_UID ".failed"},
        {"type", "dev.coxswain.trainingjob.failed"},
        {"datacontenttype", "application/json"},
        {"time", "2023-11-14T22:13:20Z"},
        {"data.name", "digits"},
        {"data.uid", SCENE_UID},
        {"data.reason", "PermanentFailure"},
        {"data.completionTime", "2023-11-14T22:13:20Z"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_expect_str_eq(json_string_at(event, expected[i][0], ""), expected[i][1], "%s", expected[i][0]);
    cr_expect(strstr(json_string_at(event, "source", ""), "/trainingjobs/digits"));
    cr_expect_eq(json_integer_at(event, "data.restarts.failures", -1), 0);
}

Test(notice, one_that_is_given_up_leaves_an_event)
{
    end_job(0);
    scene.input.memory.notice = NOTICE_FAILED;
    expect_turn("event=NotificationFailed write_status=1");
    cr_assert_eq(scene.job.status.notice_since_ms, FIELD_UNSET);
}

Test(notice, ttl_waits_for_the_delivery)
{
    scene.job.run_policy.ttl_seconds_after_finished = 0;
    end_job(0);
    expect_plan("delete_job=0");
    scene.input.memory.notice = NOTICE_DELIVERED;
    expect_plan("delete_job=1");
}

Test(notice, a_restart_is_sent_with_its_number)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene_expect("restart_count=1");
    cr_assert_str_eq(scene.plan.restart_notice.id, SCENE_UID ".restarting.1");
    cr_assert_not(notice_is_about_end(scene.plan.restart_notice.id, SCENE_UID));
    cr_assert(strstr(scene.plan.restart_notice.body, "dev.coxswain.trainingjob.restarting"));
    scene_plan(&scene);
    cr_assert_null(scene.plan.restart_notice.id);
}

Test(notice, nothing_is_sent_or_remembered_without_a_sink)
{
    scene.options.notifies = false;
    end_job(0);
    cr_assert_eq(scene.job.status.notice_since_ms, FIELD_UNSET);
    scene_turn(&scene);
    cr_assert_null(scene.plan.end_notice.id);
    scene.options.notifies = true;
    scene_turn(&scene);
    cr_assert_null(scene.plan.end_notice.id, "ends from before there was a sink stay unrecorded");
}

Test(notice, what_waits_is_forgotten_when_the_sink_is_taken_away)
{
    end_job(0);
    scene.options.notifies = false;
    expect_turn("write_status=1");
    cr_assert_eq(scene.job.status.notice_since_ms, FIELD_UNSET);
}
