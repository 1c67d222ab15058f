/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_print.h"

#include "tests/unit/operator/cli/sweep_json.h"

static struct scene scene;
static struct buffer out;

static void begin(void)
{
    scene_init(&scene);
    buffer_init(&out, 65536);
}

static void end(void)
{
    scene_release(&scene);
    buffer_release(&out);
}

TestSuite(sweep_print, .init = begin, .fini = end);

static void expect(const char *text)
{
    cr_expect_str_eq(buffer_text(&out), text, "%s", buffer_text(&out));
}

Test(sweep_print, a_table_of_trials)
{
    sweep_print_table(&scene.view, &out);
    expect("TRIAL   STATE       learningRate   WORDS      validationLoss   STEP\n"
           "0       Succeeded   0.5            one        0.25                    best\n"
           "1       Failed      0.125          two, \"2\"\n"
           "2       Running     0.75           one        0.1              30\n"
           "3       Pending     1e-05          one\n");
}

Test(sweep_print, progress_on_one_line)
{
    sweep_print_line(&scene.view, SWEEP_NOW, &out);
    expect("trials 2/6 done, 2 running, 1 failed  best validationLoss 0.1 (s-2 after step 30)  about 65s left");
}

Test(sweep_print, a_block_shows_what_runs_and_is_never_wider)
{
    SCOPED_BUFFER narrow = BUFFER_INIT(65536);
    sweep_print_block(&scene.view, SWEEP_NOW, 100, &out);
    cr_expect(strstr(buffer_text(&out), "s  Random, 2 trials at a time  Running\n"), "%s", buffer_text(&out));
    cr_expect(
        strstr(buffer_text(&out), "\nbest  s-2: validationLoss 0.1 after step 30 with learningRate 0.75, WORDS one\n"));
    cr_expect(strstr(buffer_text(&out), "\ntrial 2  Running     50 %  learningRate 0.75, WORDS one\n"));
    cr_expect(strstr(buffer_text(&out), "\ntrial 3  Pending"));
    cr_expect_null(strstr(buffer_text(&out), "trial 1"), "what is over is not shown");
    sweep_print_block(&scene.view, SWEEP_NOW, 20, &narrow);
    cr_expect(strstr(buffer_text(&narrow), "\nbest  s-2: validatio\n"), "%s", buffer_text(&narrow));
}

Test(sweep_print, the_best_so_far_is_the_trial_that_succeeded_unless_another_has_a_better_value)
{
    scene.sweep.objective.goal = GOAL_MAXIMIZE;
    sweep_print_line(&scene.view, SWEEP_NOW, &out);
    buffer_append_byte(&out, '\n', NULL);
    scene.sweep.objective.goal = GOAL_MINIMIZE;
    scene.sweep.status.conditions[SWEEP_RUNNING].status = CONDITION_FALSE;
    scene.sweep.status.conditions[SWEEP_COMPLETE].status = CONDITION_TRUE;
    sweep_print_line(&scene.view, SWEEP_NOW, &out);
    expect("trials 2/6 done, 2 running, 1 failed  best validationLoss 0.25  about 65s left\n"
           "trials 2/6 done, 1 failed  best validationLoss 0.25");
}

Test(sweep_print, a_paused_trial_may_be_the_best_so_far)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC "  earlyStopping: {type: ASHA, minSteps: 10, action: Pause}\n  algorithm: {type: TPE}\n"
                            "status: {trials: {total: 6, running: 1, paused: 1}, results: [{state: Paused, objective: "
                            "'0.5', step: 20, values: '0.5,0'}]}\n");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_complete(&view);
    sweep_print_line(&view, SWEEP_NOW, &out);
    expect("trials 0/6 done, 1 running, 1 paused  best validationLoss 0.5 (s-0 after step 20)");
    training_sweep_release(&sweep);
}

Test(sweep_print, nothing_runs_in_an_interrupted_sweep)
{
    scene.view.interrupted = true;
    sweep_print_block(&scene.view, SWEEP_NOW, 100, &out);
    cr_expect(strstr(buffer_text(&out), "s  Random, 2 trials at a time  Interrupted\n"), "%s", buffer_text(&out));
    cr_expect(strstr(buffer_text(&out), "2/6 done, 1 failed\n"), "%s", buffer_text(&out));
}

Test(sweep_print, the_best_trial_lacks_a_parameter_that_it_did_not_try)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\n"
        "spec: {maxTrials: 6, template: {}, parameters: [{path: o.type, values: [SGD, AdamW]}, {path: o.momentum, "
        "values: [0.9], when: {parameter: o.type, values: [SGD]}}, {path: o.rate, values: [0.5]}]}\n"
        "status: {trials: {total: 6}, best: {trial: s-0, objective: '1', parameters: [{name: o.type, value: AdamW}, "
        "{name: o.rate, value: '0.5'}]}}\n");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_print_block(&view, SWEEP_NOW, 100, &out);
    cr_expect_not_null(strstr(buffer_text(&out), " with type AdamW, rate 0.5\n"), "%s", buffer_text(&out));
    training_sweep_release(&sweep);
}

Test(sweep_print, how_trials_end)
{
    sweep_print_end(&scene.sweep, scene.lines[1], &out);
    sweep_print_end(&scene.sweep, scene.lines[2], &out);
    struct trial_line *silent =
        trial_of(&scene.sweep, 4, "1", "one", "{conditions: [{type: Succeeded, status: 'True'}]}");
    sweep_print_end(&scene.sweep, silent, &out);
    expect("s-0: validationLoss 0.25 with learningRate 0.5, WORDS one\n"
           "s-1 failed: out of memory; with learningRate 0.125, WORDS two, \"2\"\n"
           "s-4 succeeded, but reports no validationLoss; with learningRate 1, WORDS one\n");
    trial_line_free(silent);
}

Test(sweep_print, trials_that_were_stopped_early)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC
                 "  algorithm: {type: TPE}\nstatus: {trials: {total: 6, succeeded: 2, failed: 1, stopped: 3}, results: "
                 "[{state: Stopped, objective: '2', step: 20, values: '0.5,0'}]}\n");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    struct trial_line *line = trial_line_of_result(&sweep, 0);
    sweep_print_end(&sweep, line, &out);
    sweep_print_result(&sweep, &out);
    sweep_print_line(&view, SWEEP_NOW, &out);
    expect("s-0 was stopped early: validationLoss 2 after step 20 with learningRate 0.5, WORDS one\n"
           "s is complete: 2 of 6 trials succeeded, 1 failed, 3 were stopped early\n"
           "trials 6/6 done, 0 running, 1 failed, 3 stopped early");
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(sweep_print, paused_trials_are_counted_and_not_listed)
{
    struct training_sweep sweep = sweep_of(
        SWEEP_SPEC "status: {trials: {total: 2, running: 1, paused: 1}, results: [{state: Running}, {state: Paused, "
                   "objective: '2', step: 20}]}\n");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    SCOPED_BUFFER block = BUFFER_INIT(65536);
    sweep_view_complete(&view);
    sweep_print_table(&view, &out);
    cr_expect_not_null(strstr(buffer_text(&out), "validationLoss   STEP\n"), "%s", buffer_text(&out));
    cr_expect_not_null(strstr(buffer_text(&out), "1       Paused"), "%s", buffer_text(&out));
    cr_expect_not_null(strstr(buffer_text(&out), "2                20\n"), "%s", buffer_text(&out));
    sweep_print_block(&view, SWEEP_NOW, 80, &block);
    cr_expect_not_null(strstr(buffer_text(&block), "0/2 done, 1 running, 1 paused"), "%s", buffer_text(&block));
    cr_expect_null(strstr(buffer_text(&block), "trial 1"), "%s", buffer_text(&block));
    buffer_clear(&out);
    sweep_print_result(&sweep, &out);
    expect("s is complete: 0 of 2 trials succeeded, 1 stay paused\n");
    training_sweep_release(&sweep);
}

Test(sweep_print, a_pause_and_what_its_value_means)
{
    struct training_sweep sweep = sweep_of(
        SWEEP_SPEC "status: {trials: {total: 2, succeeded: 1, paused: 1}, best: {trial: s-0, objective: '4'}, results: "
                   "[{state: Succeeded, objective: '4'}, {state: Paused, objective: '2', step: 20}]}\n");
    struct trial_line *line = trial_line_of_result(&sweep, 1);
    sweep_print_end(&sweep, line, &out);
    cr_expect_not_null(strstr(buffer_text(&out), "s-1 pauses: validationLoss 2 after step 20 with learningRate 0."),
                       "%s", buffer_text(&out));
    buffer_clear(&out);
    sweep_print_result(&sweep, &out);
    expect("s is complete: 1 of 2 trials succeeded, 1 stay paused\n"
           "  best         s-0: validationLoss 4\n"
           "  The validationLoss of paused trials was measured after fewer steps, so none of them is the "
           "best.\n");
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(sweep_print, a_budget_that_is_used_is_told)
{
    struct training_sweep sweep =
        sweep_of("metadata: {name: s}\n"
                 "spec: {maxTrials: 6, budget: {workerHours: 0.02}, template: {}, parameters: [{path: o.rate, values: "
                 "[0.5]}]}\n"
                 "status: {conditions: [{type: Complete, status: 'True', reason: BudgetUsed}], trials: {total: 3, "
                 "succeeded: 1, failed: 2}}\n");
    sweep_print_result(&sweep, &out);
    expect("s is complete: 1 of 3 trials succeeded, 2 failed; the budget of 0.02 worker-hours is used, so no more "
           "trials began\n");
    training_sweep_release(&sweep);
}

Test(sweep_print, why_tells_trials_that_run_from_those_that_wait)
{
    sweep_print_why(&scene.view, &out);
    expect("s waits for its trials: 1 run, and 2 of 6 are over\n"
           "1 more waits to start; cox why s-3 says for what the first of them waits\n"
           "s-1 failed: out of memory; with learningRate 0.125, WORDS two, \"2\"\n");
}

Test(sweep_print, why_says_how_an_interrupted_run_goes_on)
{
    scene.view.again = "cox run /s.yaml";
    scene.view.interrupted = true;
    sweep_print_why(&scene.view, &out);
    expect("s waits for a user to run it again: its run was interrupted, and goes on with: cox run /s.yaml\n"
           "s-1 failed: out of memory; with learningRate 0.125, WORDS two, \"2\"\n");
}

Test(sweep_print, why_names_trials_that_succeeded_without_an_objective)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC "status: {conditions: [{type: Failed, status: 'True', message: 1 trial has failed}], "
                            "trials: {total: 1, failed: 1}, results: [{state: Failed}]}\n");
    struct trial_line *line = trial_of(&sweep, 0, "0.5", "one", "{conditions: [{type: Succeeded, status: 'True'}]}");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_add(&view, line);
    sweep_view_complete(&view);
    sweep_print_why(&view, &out);
    expect("s waits for nothing: it has failed: 1 trial has failed\n"
           "s-0 succeeded, but reports no validationLoss; with learningRate 0.5, WORDS one\n");
    buffer_clear(&out);
    sweep_print_table(&view, &out);
    cr_expect(strstr(buffer_text(&out), "\n0       Failed"), "%s", buffer_text(&out));
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(sweep_print, a_trial_that_failed_and_lost_its_job_has_no_reason)
{
    const char *values[] = {"0.5", "one"};
    struct training_sweep sweep = sweep_of(SWEEP_SPEC);
    struct trial_line line = {.name = "s-0", .message = "", .failed = true, .values = values, .value_count = 2};
    sweep_print_end(&sweep, &line, &out);
    expect("s-0 failed: the reason was in its job, which has been deleted; with learningRate 0.5, WORDS one\n");
    training_sweep_release(&sweep);
}

Test(sweep_print, the_result)
{
    struct training_sweep complete = sweep_of(SWEEP_RUNS), failed;
    sweep_print_result(&complete, &out);
    expect("s is complete: 1 of 6 trials succeeded, 1 failed\n"
           "  best         s-0: validationLoss 0.25\n"
           "               coxswain.training.optimizer.learningRate  0.5\n"
           "               WORDS                                     one\n");
    failed = sweep_of(SWEEP_SPEC "status: {conditions: [{type: Failed, status: 'True', message: nothing works}]}");
    buffer_clear(&out);
    sweep_print_result(&failed, &out);
    expect("s has failed: nothing works\n");
    training_sweep_release(&complete);
    training_sweep_release(&failed);
}

Test(sweep_print, a_sweep_that_has_tried_all_values_says_so)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\n"
        "spec: {maxTrials: 40, template: {}, parameters: [{path: a, values: [1, 2]}]}\n"
        "status: {trials: {total: 2, succeeded: 2}, conditions: [{type: Complete, status: 'True', reason: TrialsDone, "
        "message: m}], results: [{state: Succeeded}, {state: Succeeded}]}\n");
    sweep_print_result(&sweep, &out);
    expect("s is complete: 2 of 2 trials succeeded\n"
           "  The parameters have no other combination of values, so it ended before maxTrials 40.\n");
    training_sweep_release(&sweep);
}

Test(sweep_print, a_list_of_sweeps)
{
    SCOPED_JSON *list =
        sweep_json("- metadata: {name: a, namespace: n, creationTimestamp: '2026-11-20T14:00:00Z'}\n"
                   "- metadata: {name: b, namespace: m, creationTimestamp: '2026-11-20T14:00:30Z'}\n"
                   "  status: {conditions: [{type: Running, status: 'True'}], trials: {total: 4, running: 2, "
                   "succeeded: 1}, best: {trial: b-0, objective: '2'}}\n");
    sweep_print_list(list, true, SWEEP_NOW, &out);
    expect("NAMESPACE   NAME   STATE     TRIALS   RUNNING   SUCCEEDED   FAILED   BEST   OBJECTIVE   AGE\n"
           "n           a      Pending   0        0         0           0                           60s\n"
           "m           b      Running   4        2         1           0        b-0    2           30s\n");
}
