/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_view.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "job_json.h"
#include "operator/cli/view_print.h"

static struct json *parse(const char *text)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &value, &error), 0, "%s", error.message);
    return value;
}

Test(job_view, step_lines_of_the_chief)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    job_view_take_log(&view,
                      "step  120/1080  loss 0.0832  |g| 0.91     lr 9.80e-04  12.3 ms  20812 examples/s  1m8s left", 5);
    cr_assert_eq(view.step, 120);
    cr_assert_eq(view.total_steps, 1080);
    cr_assert_float_eq(view.loss, 0.0832, 1e-9);
    cr_assert_float_eq(view.examples_per_second, 20812, 1e-9);
    cr_assert_eq(view.seconds_left, 68);
    cr_assert_str_eq(view.unit, "examples");
    cr_assert_eq(view.events.length, 0);
    job_view_release(&view);
}

Test(job_view, other_lines_are_events)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    job_view_take_log(&view, "waiting for worker 1", 5);
    cr_assert_str_eq(buffer_text(&view.events), "chief: waiting for worker 1\n");
    cr_assert_str_eq(view.doing, "waiting for worker 1");
    job_view_take_log(&view, "validation after step 90: loss 0.1, accuracy 97.50 %", 6);
    cr_assert_float_eq(view.accuracy, 0.975, 1e-9);
    job_view_take_log(&view, "checkpoint of step 90: 12.3 MB in 0.04 s", 7);
    cr_assert_str_eq(buffer_text(&view.events), "chief: waiting for worker 1\n");
    cr_assert_str_eq(view.doing, "waiting for worker 1");
    job_view_release(&view);
}

Test(job_view, a_pod_comes_is_killed_and_is_replaced)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *running = parse("{\"metadata\":{\"labels\":{\"coxswain.dev/role\":\"worker\",\"coxswain.dev/"
                                 "index\":\"1\"}},\"status\":{\"phase\":"
                                 "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
                                 "\"containerStatuses\":[{\"name\":\"trainer\",\"containerID\":"
                                 "\"process://4242\",\"state\":{\"running\":{}}}]}}");
    SCOPED_JSON *killed = parse(
        "{\"metadata\":{\"labels\":{\"coxswain.dev/role\":\"worker\",\"coxswain.dev/"
        "index\":\"1\"}},\"status\":{\"phase\":"
        "\"Failed\",\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":137}}}]}}");
    job_view_take_pod(&view, "digits-worker-1-1", running);
    const struct pod_line *pod = job_view_pod(&view, "worker", 1);
    cr_assert_eq(pod->process, 4242);
    cr_assert(pod->ready);
    job_view_take_pod(&view, "digits-worker-1-1", killed);
    cr_assert_str_eq(job_view_pod(&view, "worker", 1)->words, "killed");
    job_view_take_pod(&view, "digits-worker-1-2", running);
    cr_assert_str_eq(job_view_pod(&view, "worker", 1)->name, "digits-worker-1-2");
    job_view_take_pod(&view, "digits-worker-1-1", NULL);
    cr_assert_eq(view.pod_count, 1);
    cr_assert_str_eq(buffer_text(&view.events), "worker 1: ready (digits-worker-1-1)\n"
                                                "worker 1: killed (digits-worker-1-1)\n"
                                                "worker 1: ready (digits-worker-1-2)\n");
    job_view_release(&view);
}

/* The operator's progress is some seconds old when it comes. */
#define PLACE(name) "'metadata':{'name':'" name "','labels':{'coxswain.dev/role':'worker','coxswain.dev/index':'0'}}"

Test(job_view, a_pod_is_what_its_trainer_is)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *foreign =
        json_of("{" PLACE("a") ",'spec':{'containers':[{'name':'pytorch'},{'name':'istio'}]},'status':{"
                               "'phase':'Running','containerStatuses':[{'name':'istio','state':{'running':{}}},{'name':"
                               "'pytorch','state':{"
                               "'terminated':{'exitCode':3}}}]}}");
    SCOPED_JSON *ours = json_of("{" PLACE("b") ",'spec':{'containers':[{'name':'istio'},{'name':'trainer'}]},'status':{"
                                               "'phase':'Running','containerStatuses':[{'name':'istio','state':{'"
                                               "terminated':{'exitCode':9}}},{'name':'trainer',"
                                               "'state':{'running':{}}}]}}");
    job_view_take_pod(&view, "digits-worker-0-1", foreign);
    cr_expect_str_eq(view.pods[0].container, "pytorch");
    cr_expect_str_eq(view.pods[0].words, "ended with 3");
    cr_expect(view.pods[0].container_ended);
    job_view_take_pod(&view, "digits-worker-0-1", ours);
    cr_expect_str_eq(view.pods[0].container, "trainer");
    cr_expect_str_eq(view.pods[0].words, "running");
    cr_expect_not(view.pods[0].container_ended);
    job_view_release(&view);
}

#define DATED(name, time)                                                                                              \
    "'metadata':{'name':'" name "','creationTimestamp':'" time "','labels':{'coxswain.dev/role':'worker',"             \
    "'coxswain.dev/index':'0'}}"

/* `cox run` goes on with a job that a command before it has begun. */
Test(job_view, of_a_job_that_continues_only_what_is_new_is_told)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    cr_assert(clock_parse("2026-11-27T10:00:05.7Z", &view.since_ms));
    SCOPED_JSON *job = json_of("{'status':{'conditions':[{'type':'Running','status':'True'}],"
                               "'progress':{'step':40,'totalSteps':90,'metrics':[{'name':'loss','value':'0.5'}]}}}");
    SCOPED_JSON *old = json_of("{" DATED("a", "2026-11-27T10:00:04Z") ",'status':{'phase':'Failed'}}");
    SCOPED_JSON *new = json_of("{" DATED("b", "2026-11-27T10:00:05Z") ",'status':{'phase':'Running','conditions':["
                                                                      "{'type':'Ready','status':'True'}]}}");
    job_view_take_job(&view, job);
    job_view_take_pod(&view, "a", old);
    cr_expect(job_view_pod(&view, "worker", 0)->earlier);
    cr_expect_eq(view.events.length, 0, "%s", buffer_text(&view.events));
    cr_expect_eq(view.step, -1);
    cr_expect_eq(view.total_steps, 90);
    job_view_take_pod(&view, "b", new);
    cr_expect_not(job_view_pod(&view, "worker", 0)->earlier);
    job_view_take_log(&view, "resumes from the checkpoint of step 30", 1);
    job_view_take_log(&view, "step 31/90  loss 0.6  |g| 1  lr 1e-3  1 ms  1234 examples/s", 2);
    cr_expect_str_eq(buffer_text(&view.events), "worker 0: ready (b)\nchief: resumes from the checkpoint of step 30\n");
    job_view_take_job(&view, job);
    cr_expect_eq(view.step, 31);
    cr_expect_float_eq(view.loss, 0.6, 1e-9);
    job_view_release(&view);
}

/* The times of pods that share processors vary. */
Test(job_view, a_straggler_on_shared_processors_is_told_once_it_has_been_one_for_a_while)
{
    static const char straggler[] =
        "warning: worker 1 is a straggler: its part of a step takes 9.0 ms, the others' 4.0 ms (step 3)";
    const char *of_parameter_servers = straggler + strlen("warning: ");
    struct job_view view;
    job_view_init(&view, "default", "digits");
    view.shares_processors = true;
    job_view_take_log(&view, straggler, 1000);
    job_view_take_log(&view, "worker 1 keeps up again", 1000 + VIEW_STRAGGLER_MS - 1);
    cr_expect_eq(view.events.length, 0, "%s", buffer_text(&view.events));
    job_view_take_log(&view, of_parameter_servers, 20000);
    job_view_take_log(&view, "worker 1 keeps up again", 21000);
    cr_expect_eq(view.events.length, 0, "%s", buffer_text(&view.events));
    job_view_take_log(&view, straggler, 50000);
    job_view_take_log(&view, "waiting for worker 1", 50000 + VIEW_STRAGGLER_MS);
    job_view_take_log(&view, "worker 1 keeps up again", 99000);
    SCOPED_FREE char *told =
        memory_format("chief: %s\nchief: waiting for worker 1\nchief: worker 1 keeps up again\n", straggler);
    cr_expect_str_eq(buffer_text(&view.events), told);
    buffer_clear(&view.events);
    view.shares_processors = false;
    job_view_take_log(&view, straggler, 100000);
    cr_expect_neq(view.events.length, 0);
    job_view_release(&view);
}

Test(job_view, the_later_of_two_ended_pods_counts)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *ended = json_of("{" PLACE("a") ",'status':{'phase':'Failed'}}");
    job_view_take_pod(&view, "digits-worker-0-10", ended);
    job_view_take_pod(&view, "digits-worker-0-9", ended);
    cr_expect_str_eq(job_view_pod(&view, "worker", 0)->name, "digits-worker-0-10");
    job_view_release(&view);
}

Test(job_view, no_pod_of_a_large_crew_is_left_out)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    for (int i = 999; i >= 0; i--) {
        char name[64];
        snprintf(name, sizeof name, "digits-worker-%d-1", i);
        SCOPED_JSON *pod = json_of("{'status':{'phase':'Running'}}");
        job_view_take_pod(&view, name, pod);
    }
    cr_expect_eq(view.pod_count, 1000);
    job_view_take_pod(&view, "digits-worker-7-1", NULL);
    cr_expect_eq(view.pod_count, 999);
    job_view_release(&view);
}

#define FAILED_POD(index, message)                                                                                     \
    "{'metadata':{'labels':{'coxswain.dev/role':'worker','coxswain.dev/index':'" index                                 \
    "'}},'status':{'phase':'Failed',"                                                                                  \
    "'containerStatuses':[{'name':'trainer','state':{'terminated':{'exitCode':1,'message':'" message "'}}}]}}"

Test(job_view, why_other_pods_than_the_chief_failed_is_told_once)
{
    struct job_view view;
    job_view_init(&view, "default", "cnn");
    static const char *const messages[] = {FAILED_POD("0", "ValueError: of the chief, whose log is shown"),
                                           FAILED_POD("1", "KeyError: a"), FAILED_POD("2", "KeyError: b")};
    SCOPED_JSON *running = json_of("{'status':{'conditions':[{'type':'Running','status':'True'}]}}");
    SCOPED_JSON *restarting = json_of("{'status':{'conditions':[{'type':'Restarting','status':'True'}]}}");
    SCOPED_JSON *failed = json_of("{'status':{'conditions':[{'type':'Failed','status':'True',"
                                  "'message':'worker 2: KeyError: b (pod cnn-worker-2-1, exit code 1)'}]}}");
    job_view_take_job(&view, running);
    for (int i = 0; i < 2; i++) {
        SCOPED_JSON *pod = json_of(messages[i]);
        job_view_take_pod(&view, i == 0 ? "cnn-worker-0-1" : "cnn-worker-1-1", pod);
    }
    buffer_clear(&view.events);
    job_view_take_job(&view, restarting);
    cr_expect_str_eq(buffer_text(&view.events), "cnn is Restarting\nworker-1 | KeyError: a\n");
    SCOPED_JSON *pod = json_of(messages[2]);
    job_view_take_pod(&view, "cnn-worker-2-1", pod);
    buffer_clear(&view.events);
    job_view_take_job(&view, failed);
    cr_expect_str_eq(buffer_text(&view.events), "cnn is Failed\n", "the summary quotes it");
    job_view_release(&view);
}

#define ENDED_POD(code, message)                                                                                       \
    "{'metadata':{'labels':{'coxswain.dev/role':'worker','coxswain.dev/index':'0'}},'status':{'phase':'Failed',"       \
    "'containerStatuses':[{'name':'trainer','state':{'terminated':{'exitCode':" code ",'message':'" message "'}}}]}}"

/* The worker writes it into its log and into its termination message, and the operator into the condition. */
static void check_exit(const char *pod_text, const char *line, const char *state_text, const char *words)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *pod = json_of(pod_text);
    SCOPED_JSON *job = json_of(state_text);
    job_view_take_log(&view, line, 5);
    cr_expect_str_eq(buffer_text(&view.events), "");
    job_view_take_pod(&view, "digits-worker-0-1", pod);
    buffer_clear(&view.events);
    job_view_take_job(&view, job);
    cr_expect_str_eq(buffer_text(&view.events), words);
    job_view_release(&view);
}

Test(job_view, why_a_worker_of_ours_ended_is_said_once)
{
    check_exit(ENDED_POD("71", "exit 71 (the loss is not finite): step 12"),
               "exit 71 (the loss is not finite): step 12",
               "{'status':{'conditions':[{'type':'Failed','status':'True','message':'worker 0: step 12 "
               "(pod x, exit code 71)'}]}}",
               "digits is Failed\n");
    check_exit(ENDED_POD("162", "exit 162 (a device failed): GPU 0"), "exit 162 (a device failed): GPU 0",
               "{'status':{'conditions':[{'type':'Restarting','status':'True'}]}}",
               "digits is Restarting\nworker-0 | GPU 0\n");
    check_exit(ENDED_POD("143", "exit 143 (left by request, state safe): asked to"),
               "exit 143 (left by request): asked to",
               "{'status':{'conditions':[{'type':'Restarting','status':'True'}]}}", "digits is Restarting\n");
}

/* No pod has failed that could say it. */
Test(job_view, why_a_crew_that_hangs_restarts)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *job = json_of("{'status':{'conditions':[{'type':'Restarting','status':'True','reason':"
                               "'ProgressDeadlineExceeded','message':'no new step for 60 s'}]}}");
    job_view_take_job(&view, job);
    cr_expect_str_eq(buffer_text(&view.events), "digits is Restarting: no new step for 60 s\n");
    job_view_release(&view);
}

#define SAVES(status, reason, message)                                                                                 \
    "{'status':{'conditions':[{'type':'Running','status':'True'},{'type':'CheckpointsFailing','status':'" status       \
    "','reason':'" reason "','message':'" message "'}]}}"

Test(job_view, checkpoints_that_fail_are_told_while_training_goes_on)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *running = json_of("{'status':{'conditions':[{'type':'Running','status':'True'}]}}");
    SCOPED_JSON *failing = json_of(SAVES("True", "VolumeFull", "No space left on device; training goes on"));
    SCOPED_JSON *mended = json_of(SAVES("False", "Saved", "checkpoints are saved again"));
    job_view_take_job(&view, running);
    buffer_clear(&view.events);
    for (int i = 0; i < 2; i++)
        job_view_take_job(&view, failing);
    cr_expect_str_eq(buffer_text(&view.events), "warning: No space left on device; training goes on\n", "once");
    buffer_clear(&view.events);
    for (int i = 0; i < 2; i++)
        job_view_take_job(&view, mended);
    cr_expect_str_eq(buffer_text(&view.events), "checkpoints are saved again\n");
    job_view_release(&view);
}

#define HELD(reason, message)                                                                                          \
    "{'metadata':{'name':'digits'},'status':{'conditions':[{'type':'Scheduled','status':'False','reason':'" reason     \
    "','message':'" message "'}]}}"

static void expect_news(struct job_view *view, const char *job, const char *news)
{
    SCOPED_JSON *object = json_of(job);
    job_view_take_job(view, object);
    cr_expect_str_eq(buffer_text(&view->events), news);
    buffer_clear(&view->events);
}

Test(job_view, what_a_job_waits_for_is_told_once)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    expect_news(&view, HELD("TrainingClassMissing", "class x does not exist"),
                "digits is Pending\ndigits waits for its class: class x does not exist\n");
    expect_news(&view, HELD("TrainingClassMissing", "class x does not exist"), "");
    expect_news(&view, HELD("QuotaExceeded", "1 of 2 pods"),
                "digits waits for room in the namespace's quota: 1 of 2 pods\n");
    expect_news(&view, HELD("QuotaExceeded", "0 of 2 pods"), "");
    expect_news(&view, HELD("Pending", "pods are being created"), "");
    expect_news(&view, HELD("QuotaExceeded", "1 of 2 pods"),
                "digits waits for room in the namespace's quota: 1 of 2 pods\n");
    expect_news(&view,
                "{'metadata':{'name':'digits'},'status':{'conditions':[{'type':'Suspended','status':'True',"
                "'reason':'Queued','message':'all 2 pods wait'}]}}",
                "digits is Suspended\ndigits waits for its queue to admit it: all 2 pods wait\n");
    expect_news(&view, "{'metadata':{'name':'digits'},'status':{'conditions':[{'type':'Running','status':'True'}]}}",
                "digits is Running\n");
    expect_news(&view,
                "{'metadata':{'name':'digits'},'spec':{'suspend':true},'status':{'conditions':[{'type':'Suspended',"
                "'status':'True','reason':'Suspended'}]}}",
                "digits is Suspended; to let it go on: cox resume digits\n");
    job_view_release(&view);
}

Test(job_view, the_newest_evaluation_counts)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *early = parse("{\"status\":{\"progress\":{\"step\":900,\"totalSteps\":1800,\"metrics\":[{\"name\":"
                               "\"validationAccuracy\",\"value\":\"0.982\"}]}}}");
    SCOPED_JSON *late = parse("{\"status\":{\"progress\":{\"step\":1800,\"totalSteps\":1800,\"metrics\":[{\"name\":"
                              "\"validationAccuracy\",\"value\":\"0.982\"}]}}}");
    job_view_take_job(&view, early);
    cr_assert_float_eq(view.accuracy, 0.982, 1e-9, "nothing newer is known");
    job_view_take_log(&view, "validation after step 1800: loss 0.0625, accuracy 98.30 %", 6);
    job_view_take_job(&view, late);
    cr_assert_float_eq(view.accuracy, 0.983, 1e-9);
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    view_print_line(&view, &text);
    cr_assert(strstr(buffer_text(&text), "held out 98.3 %"), "%s", buffer_text(&text));
    job_view_release(&view);
}

Test(job_view, a_language_model_has_a_perplexity)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    job_view_init(&view, "default", "bytes");
    job_view_take_log(&view, "step 1/4  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 tokens/s  3s left", 1);
    job_view_take_log(&view, "validation after step 1: loss 2.0000, perplexity 7.39", 2);
    cr_assert(isnan(view.accuracy));
    view_print_line(&view, &text);
    cr_assert_str_eq(buffer_text(&text),
                     "step 1/4  25 %  loss 2.0000  1,234 tokens/s  held out: perplexity 7.39  3s left");
    job_view_release(&view);
}

Test(job_view, a_mended_crew_says_what_it_repeated)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    job_view_take_log(
        &view, "the crew is whole again: step 912 done 0.41 s after a member was lost, one step was repeated", 50);
    cr_assert_eq(view.recovery.step, 912);
    cr_assert_eq(view.recovery.repeated, 1);
    cr_assert_eq(view.recovery.logged_ms, 50);
    job_view_take_log(
        &view, "the crew is whole again: step 1000 done 0.41 s after a member was lost, nothing was repeated", 60);
    cr_assert_eq(view.recovery.repeated, 0);
    job_view_release(&view);
}

Test(job_view, a_new_chief_goes_on_where_the_crew_was)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    job_view_begin_log(&view);
    job_view_take_log(&view, "step 1/99  loss 2", 10);
    cr_assert_eq(view.recovery.step, -1, "the first chief recovers nothing");
    job_view_take_log(&view, "step 40/99  loss 1", 20);
    job_view_begin_log(&view);
    job_view_take_log(&view, "step 40/99  loss 1", 30);
    job_view_take_log(&view, "step 41/99  loss 1", 31);
    cr_assert_eq(view.recovery.step, 40);
    cr_assert_eq(view.recovery.repeated, 1);
    cr_assert_eq(view.recovery.logged_ms, 30);
    job_view_release(&view);
}

Test(job_view, the_failure_line_of_the_chief_are_not_said_twice)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    job_view_take_log(&view, "step 99/99  loss 0.1", 10);
    job_view_take_log(&view, "held-out examples: accuracy 98.30 %, loss 0.0625", 11);
    job_view_take_log(&view, "goodput 97.4 % of 21s", 11);
    job_view_take_log(&view, "weights      /coxswain/storage/runs/digits/model.safetensors", 11);
    cr_assert_str_eq(buffer_text(&view.events), "");
    cr_assert_float_eq(view.goodput, 97.4, 1e-9);
    job_view_release(&view);
}

Test(job_view, losses_are_thinned_out_not_lost)
{
    struct job_view view;
    char line[128];
    job_view_init(&view, "default", "digits");
    for (int step = 1; step <= 3 * VIEW_LOSSES_MAX; step++) {
        snprintf(line, sizeof line, "step %d/99999  loss %d", step, step);
        job_view_take_log(&view, line, step);
    }
    cr_assert_leq(view.loss_count, VIEW_LOSSES_MAX);
    cr_assert_float_eq(view.losses[0], 1, 1e-9);
    cr_assert_gt(view.losses[view.loss_count - 1], 3 * VIEW_LOSSES_MAX - 8);
    job_view_release(&view);
}

/* `cox run` of a job that is over reads its status first and then its log. */
Test(job_view, the_curve_of_a_job_that_is_over_is_in_the_order_of_steps)
{
    struct job_view view;
    SCOPED_JSON *over = json_of("{\"status\":{\"progress\":{\"step\":30,\"totalSteps\":30,\"metrics\":"
                                "[{\"name\":\"loss\",\"value\":\"0.5\"}]}}}");
    job_view_init(&view, "default", "digits");
    job_view_take_job(&view, over);
    job_view_begin_log(&view);
    job_view_take_log(&view, "step 10/30  loss 3.0  |g| 1  lr 1e-3  1 ms  1234 examples/s  3s left", 1);
    job_view_take_log(&view, "step 20/30  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s  3s left", 2);
    job_view_take_log(&view, "step 30/30  loss 0.5  |g| 1  lr 1e-3  1 ms  1234 examples/s  3s left", 3);
    cr_assert_eq(view.loss_count, 3);
    cr_expect(view.losses[0] == 3 && view.losses[1] == 2 && view.losses[2] == 0.5);
    job_view_release(&view);
}

/* As a script of another framework reports it. */
Test(job_view, a_step_of_an_unknown_number)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    job_view_init(&view, "default", "digits");
    SCOPED_JSON *job = json_of("{'status':{'progress':{'step':7,'metrics':[{'name':'loss','value':'0.5'}]}}}");
    job_view_take_job(&view, job);
    view_print_line(&view, &text);
    cr_assert_str_eq(buffer_text(&text), "step 7  loss 0.5000");
    job_view_release(&view);
}

/* `cox run` cannot read the loss of a script in its log, whose lines have a form of their own: it takes the one in the status. */
Test(job_view, the_loss_of_a_script_follows_its_status)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    job_view_init(&view, "default", "digits");
    for (int step = 1; step <= 3; step++) {
        SCOPED_FREE char *words =
            memory_format("{'spec':{'pytorch':{}},'status':{'progress':{'step':%d,'totalSteps':4,'metrics':[{'name':"
                          "'loss','value':'0.%d'},{'name':'validationLoss','value':'0.5'}]}}}",
                          step, 9 - step);
        SCOPED_JSON *job = json_of(words);
        job_view_take_job(&view, job);
        job_view_take_job(&view, job);
    }
    view_print_line(&view, &text);
    cr_expect_str_eq(buffer_text(&text), "step 3/4  75 %  loss 0.6000  held out: loss 0.5000");
    cr_expect_eq(view.loss_count, 3);
    job_view_release(&view);
}

Test(job_view, numbers_line_and_curve)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    job_view_init(&view, "default", "digits");
    job_view_take_log(&view, "step 1/4  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s  3s left", 1);
    job_view_take_log(&view, "step 2/4  loss 0.5  |g| 1  lr 1e-3  1 ms  1234 examples/s  2s left", 2);
    view_print_line(&view, &text);
    cr_assert_str_eq(buffer_text(&text), "step 2/4  50 %  loss 0.5000  1,234 examples/s  2s left");
    buffer_clear(&text);
    view_print_curve(&view, 10, &text);
    cr_assert_str_eq(buffer_text(&text), "█▁");
    job_view_release(&view);
}

Test(job_view, the_document_of_the_chief_has_the_figures)
{
    struct job_view view;
    job_view_init(&view, "default", "digits");
    struct status_document document;
    status_document_init(&document);
    job_view_take_document(&view, &document, 1);
    cr_assert_eq(view.document_ms, 0, "it knows nothing yet");
    document.step = 130;
    document.total_steps = 1080;
    document.examples_per_second = 5000;
    document.seconds_remaining = 40;
    document.metrics[0] = (struct status_metric){.name = "loss", .value = 0.05};
    document.metric_count = 1;
    job_view_begin_log(&view);
    job_view_take_document(&view, &document, 10);
    cr_assert(view.step == -1 && view.total_steps == 1080, "the log tells with which step this chief began");
    job_view_take_log(&view, "step  120/1080  loss 0.0832  |g| 0.91  lr 9.80e-04  12.3 ms  20812 images/s  1m8s left",
                      11);
    cr_assert_eq(view.step, 120);
    cr_assert_str_eq(view.unit, "images");
    cr_assert_eq(view.seconds_left, 40, "the document's, which is fresh");
    job_view_take_document(&view, &document, 12);
    cr_assert_eq(view.step, 130);
    cr_assert_float_eq(view.loss, 0.05, 1e-9);
    cr_assert_float_eq(view.examples_per_second, 5000, 1e-9);
    job_view_take_log(&view, "step  125/1080  loss 0.07  |g| 0.91  lr 9.80e-04  12.3 ms  20812 images/s  1m8s left",
                      13);
    cr_assert_eq(view.step, 130, "a line that comes late takes nothing back");
    job_view_take_log(&view, "step  140/1080  loss 0.04  |g| 0.91  lr 9.80e-04  12.3 ms  20812 images/s  1m8s left",
                      20000);
    cr_assert_eq(view.step, 140);
    cr_assert_eq(view.seconds_left, 68, "the document is stale");
    job_view_release(&view);
}
