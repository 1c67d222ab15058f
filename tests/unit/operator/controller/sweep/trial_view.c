/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_view.h"

#include "sweep_scene.h"

static struct trial_view *view_of(const char *yaml)
{
    SCOPED_JSON *object = yaml_value(yaml);
    return trial_view_new(object);
}

#define HEAD                                                                                                           \
    "metadata: {name: s-3, ownerReferences: [{apiVersion: coxswain.dev/v1beta1, kind: TrainingSweep, name: s, uid: "   \
    "u, controller: true}]}\n"
#define ENDED(type)                                                                                                    \
    "status:\n  conditions: [{type: " type ", status: 'True', reason: R, message: why}]\n"                             \
    "  progress: {metrics: [{name: loss, value: '0.5'}, {name: odd, value: nan}, {name: half, value: 1x}]}\n"

Test(trial_view, of_a_trial_that_succeeded)
{
    struct trial_view *view = view_of(HEAD ENDED("Succeeded"));
    cr_expect_str_eq(view->name, "s-3");
    cr_expect_str_eq(view->sweep_uid, "u");
    cr_expect_str_eq(view->sweep_name, "s");
    cr_expect(view->succeeded && !view->failed && !view->suspend);
    cr_expect_str_eq(trial_view_metric(view, "loss"), "0.5");
    cr_expect_null(trial_view_metric(view, "odd"));
    cr_expect_null(trial_view_metric(view, "half"));
    cr_expect_null(trial_view_metric(view, "validationLoss"));
    trial_view_free(view);
}

Test(trial_view, of_a_trial_that_failed)
{
    struct trial_view *view = view_of(HEAD "spec: {suspend: true}\n" ENDED("Failed"));
    cr_expect(view->failed && !view->succeeded && view->suspend);
    cr_expect_str_eq(view->message, "why");
    trial_view_free(view);
}

Test(trial_view, of_a_job_of_nobodys_or_of_another_owners)
{
    struct trial_view *view = view_of("metadata: {name: s-3}\n");
    struct trial_view *other = view_of("metadata: {name: s-3, ownerReferences: [{kind: CronJob, name: s, uid: u, "
                                       "controller: true}]}\n");
    cr_expect_str_eq(view->sweep_uid, "");
    cr_expect_str_eq(other->sweep_uid, "");
    cr_expect(!view->succeeded && !view->failed);
    trial_view_free(view);
    trial_view_free(other);
}

Test(trial_view, moves_that_matter_to_a_sweep)
{
    struct trial_view *runs = view_of(HEAD "status: {progress: {step: 1}}\n");
    struct trial_view *later = view_of(HEAD "status: {progress: {step: 2}}\n");
    struct trial_view *suspended = view_of(HEAD "spec: {suspend: true}\n");
    struct trial_view *idle = view_of(HEAD "spec: {suspend: true}\n" ENDED("Suspended"));
    struct trial_view *ended = view_of(HEAD ENDED("Succeeded"));
    struct trial_view *was_off = view_of(HEAD "status: {controllerState: {suspendedMilliseconds: 5}}\n");
    cr_expect(!trial_view_has_moved(runs, later));
    cr_expect(trial_view_has_moved(runs, was_off), "it has taken less of the budget");
    trial_view_free(was_off);
    cr_expect(trial_view_has_moved(runs, suspended));
    cr_expect(trial_view_has_moved(suspended, idle));
    cr_expect(idle->suspended && !suspended->suspended);
    cr_expect(trial_view_has_moved(runs, ended));
    cr_expect_eq(trial_view_steps(ended, "loss"), -1);
    trial_view_free(runs);
    trial_view_free(later);
    trial_view_free(suspended);
    trial_view_free(idle);
    trial_view_free(ended);
}

Test(trial_view, steps_of_a_metric)
{
    struct trial_view *view =
        view_of(HEAD "status: {progress: {step: 9, totalSteps: 20, metrics: [{name: loss, value: "
                     "'1', step: 7}, {name: bleu, value: '2'}, {name: odd, value: nan, step: 7}]}}\n");
    struct trial_view *copy = trial_view_copy(view);
    cr_expect_eq(trial_view_steps(copy, "loss"), 7);
    cr_expect_eq(trial_view_steps(copy, "bleu"), 9, "of the whole report");
    cr_expect_eq(trial_view_steps(copy, "odd"), -1);
    cr_expect_eq(trial_view_steps(copy, "none"), -1);
    cr_expect_eq(copy->total_steps, 20);
    trial_view_free(copy);
    trial_view_free(view);
}

Test(trial_view, pods_and_times)
{
    struct trial_view *one = view_of(HEAD "spec: {}\n");
    struct trial_view *many = view_of(HEAD "spec: {workers: {replicas: 4}, chief: {}}\nstatus: {startTime: "
                                           "'1970-01-01T00:00:02Z', completionTime: '1970-01-01T00:00:05Z'}\n");
    struct trial_view *suspended =
        view_of(HEAD "status: {startTime: '1970-01-01T00:00:02Z', conditions: [{type: Suspended, status: 'True', "
                     "lastTransitionTime: '1970-01-01T00:00:09Z'}], controllerState: {suspendedMilliseconds: 3000}}\n");
    cr_expect(one->pods == 1 && one->start_ms == FIELD_UNSET && one->end_ms == FIELD_UNSET);
    cr_expect(many->pods == 5 && many->start_ms == 2000 && many->end_ms == 5000 && many->suspended_ms == 0);
    cr_expect(suspended->start_ms == 2000 && suspended->end_ms == 9000 && suspended->suspended_ms == 3000);
    trial_view_free(one);
    trial_view_free(suspended);
    trial_view_free(many);
}
