/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_export.h"

#include "tests/unit/operator/cli/sweep_json.h"

Test(sweep_export, csv_with_quotes_where_they_are_needed)
{
    struct scene scene;
    SCOPED_BUFFER out = BUFFER_INIT(65536);
    scene_init(&scene);
    cr_assert_eq(sweep_export_csv(&scene.view, &out, NULL), 0);
    cr_expect_str_eq(buffer_text(&out),
                     "trial,name,state,coxswain.training.optimizer.learningRate,WORDS,objective,step,seconds,best\n"
                     "0,s-0,Succeeded,0.5,one,0.25,,40.000,true\n"
                     "1,s-1,Failed,0.125,\"two, \"\"2\"\"\",,,,false\n"
                     "2,s-2,Running,0.75,one,0.1,30,,false\n"
                     "3,s-3,Pending,1e-05,one,,,,false\n");
    scene_release(&scene);
}

/* Both times of a job have fractions. Whole seconds, as an earlier operator wrote them, do not say how long a short trial took. */
Test(sweep_export, seconds_of_short_trials)
{
    static const struct {
        const char *end, *line;
    } trials[] = {
        {"2026-11-20T14:00:00.968000Z", "0,s-0,Succeeded,0.5,one,,,0.843,false\n"},
        {"2026-11-20T14:00:00.125000Z", "0,s-0,Succeeded,0.5,one,,,,false\n"},
        {"2026-12-08T14:00:00.128000Z", "0,s-0,Succeeded,0.5,one,,,1555200.003,false\n"},
        {"2026-11-20T16:00:00.625000Z", "0,s-0,Succeeded,0.5,one,,,7200.500,false\n"},
    };
    struct training_sweep sweep = sweep_of(SWEEP_SPEC);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        SCOPED_FREE char *status = memory_format("{conditions: [{type: Succeeded, status: 'True'}], startTime: "
                                                 "'2026-11-20T14:00:00.125000Z', completionTime: '%s'}",
                                                 trials[i].end);
        struct trial_line *trial = trial_of(&sweep, 0, "0.5", "one", status);
        struct sweep_view view = {.sweep = &sweep};
        SCOPED_BUFFER out = BUFFER_INIT(65536);
        sweep_view_add(&view, trial);
        cr_assert_eq(sweep_export_csv(&view, &out, NULL), 0);
        cr_expect_str_eq(strchr(buffer_text(&out), '\n') + 1, trials[i].line, "%s", buffer_text(&out));
        sweep_view_release(&view);
        trial_line_free(trial);
    }
    training_sweep_release(&sweep);
}

/* A job that is paused knows since when; an earlier pause does not count. */
Test(sweep_export, seconds_of_trials_that_were_held_back)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC "status: {results: [{state: Paused, objective: '2', step: 20}, {state: Stopped, objective: "
                            "'3', step: 10}, {state: Paused, objective: '4', step: 10}]}\n");
    struct trial_line *paused =
        trial_of(&sweep, 0, "0.5", "one",
                 "{conditions: [{type: Suspended, status: 'True', lastTransitionTime: '2026-11-20T14:01:00Z'}], "
                 "startTime: '2026-11-20T14:00:00.250000Z', controllerState: {suspendedMilliseconds: 20500}}");
    struct trial_line *stopped =
        trial_of(&sweep, 1, "0.5", "one",
                 "{conditions: [{type: Suspended, status: 'True', lastTransitionTime: '2026-11-20T14:00:30Z'}], "
                 "startTime: '2026-11-20T14:00:00Z'}");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    SCOPED_BUFFER out = BUFFER_INIT(65536);
    sweep_view_add(&view, paused);
    sweep_view_add(&view, stopped);
    sweep_view_complete(&view);
    cr_assert_eq(sweep_export_csv(&view, &out, NULL), 0);
    cr_expect_not_null(strstr(buffer_text(&out), ",2,20,39.250,false\n"), "%s", buffer_text(&out));
    cr_expect_not_null(strstr(buffer_text(&out), ",3,10,30.000,false\n"), "%s", buffer_text(&out));
    cr_expect_not_null(strstr(buffer_text(&out), ",4,10,,false\n"), "its job is gone: %s", buffer_text(&out));
    trial_line_free(paused);
    trial_line_free(stopped);
    training_sweep_release(&sweep);
}

Test(sweep_export, json_with_numbers_as_numbers)
{
    struct scene scene;
    SCOPED_BUFFER out = BUFFER_INIT(65536);
    SCOPED_JSON *list = NULL;
    scene_init(&scene);
    cr_assert_eq(sweep_export_json(&scene.view, &out, NULL), 0);
    cr_assert_eq(json_parse(buffer_text(&out), out.length, 65536, &list, NULL), 0);
    const struct json *first = json_first(list), *third = json_element(list, 2);
    const struct json *parameters = json_member(first, "parameters");
    cr_expect_eq(json_count(list), 4);
    cr_expect_eq(json_number(json_member(parameters, "coxswain.training.optimizer.learningRate"), 0), 0.5);
    cr_expect_str_eq(json_string(json_member(parameters, "WORDS"), ""), "one");
    cr_expect(json_number_at(first, "objective", 0) == 0.25 && json_number_at(first, "seconds", 0) == 40);
    cr_expect_eq(json_integer_at(third, "step", 0), 30);
    cr_expect(json_boolean_at(first, "best", false) && !json_boolean_at(third, "best", true));
    cr_expect_eq(json_number_at(third, "objective", 0), 0.1);
    cr_expect_eq(json_type(json_member(json_element(list, 3), "objective")), JSON_NULL);
    scene_release(&scene);
}

Test(sweep_export, what_does_not_fit_is_an_error)
{
    struct scene scene;
    SCOPED_BUFFER out = BUFFER_INIT(150);
    struct error error = ERROR_INIT;
    scene_init(&scene);
    cr_expect_lt(sweep_export_csv(&scene.view, &out, &error), 0);
    cr_expect_eq(error.kind, ERROR_TOO_LARGE);
    scene_release(&scene);
}
