/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/summary.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/view_print.h"

#include "job_json.h"

static struct job_view view;
static struct json *document;
static struct buffer text;

static const char job_text[] =
    "{\"spec\":{\"storage\":[{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"results\"}},"
    "{\"name\":\"scratch\",\"emptyDir\":{}}],\"coxswain\":{\"data\":{\"validation\":{\"last\":1000}},"
    "\"checkpoint\":{\"storage\":\"runs\",\"path\":\"digits\"},"
    "\"export\":{\"storage\":\"runs\",\"path\":\"digits/model.safetensors\"}}}}";

static struct json *parse(const char *source)
{
    struct json *value = NULL;
    cr_assert_eq(json_parse(source, strlen(source), 1 << 20, &value, NULL), 0);
    return value;
}

static void setup(void)
{
    setenv("HOME", "/home/ada", 1);
    document = parse(job_text);
    buffer_init(&text, VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
}

static void teardown(void)
{
    job_view_release(&view);
    buffer_release(&text);
    json_free(document);
}

TestSuite(summary, .init = setup, .fini = teardown);

static void ended(const char *state)
{
    snprintf(view.state, sizeof view.state, "%s", state);
}

static void trained_for(int64_t ms)
{
    job_view_take_log(&view, "step 1/2  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1000);
    job_view_take_log(&view, "step 2/2  loss 0.1  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1000 + ms);
}

/* In a cluster, whose volumes have no place on this machine. */
static const char *summary(void)
{
    struct storage_place cluster = {.state = NULL};
    summary_write(&view, document, &cluster, false, &text);
    return buffer_text(&text);
}

static bool has(const char *part)
{
    return strstr(buffer_text(&text), part) != NULL;
}

Test(summary, says_how_well_and_where)
{
    struct storage_place place = {.state = "/home/ada/state"};
    ended("Succeeded");
    trained_for(2500);
    job_view_take_log(&view, "validation after step 2: loss 0.0625, accuracy 98.30 %", 3600);
    job_view_take_log(&view, "trained 2400 examples in 2.400 s of steps", 3600);
    job_view_take_log(&view, "goodput 97.4 % of 3s", 3600);
    summary_write(&view, document, &place, true, &text);
    cr_assert_str_eq(buffer_text(&text), "\ndigits is done: 98.3 % right on 1,000 held-out examples\n"
                                         "  loss         █▁\n"
                                         "               2.000 to 0.1000\n"
                                         "  losses       training 0.1000 (last step), held out 0.0625\n"
                                         "  training     2.4 s, 1,000 examples a second, goodput 97.4 %\n"
                                         "  checkpoints  ~/state/volumes/default/results/digits\n"
                                         "  TensorBoard  ~/state/volumes/default/results/digits/tensorboard\n"
                                         "  weights      ~/state/volumes/default/results/digits/model.safetensors\n");
}

Test(summary, a_short_training_is_told_in_milliseconds)
{
    ended("Succeeded");
    trained_for(40);
    cr_expect(strstr(summary(), "\n  training     40 ms, 1,234"), "%s", buffer_text(&text));
}

/* The rate of the last moment would be 4 a second here. */
Test(summary, the_rate_is_the_mean_over_the_time_beside_it)
{
    ended("Succeeded");
    job_view_take_log(&view, "step 1/100  loss 2.0  |g| 1  lr 1e-3  1 ms  99 examples/s", 1000);
    job_view_take_log(&view, "step 100/100  loss 0.1  |g| 1  lr 1e-3  1 ms  4 examples/s", 1010);
    job_view_take_log(&view, "trained 1600 examples in 206.000 s of steps", 1010);
    cr_expect(strstr(summary(), "\n  training     206.0 s, 8 examples a second\n"), "%s", buffer_text(&text));
}

Test(summary, a_job_that_was_over_has_no_rate)
{
    SCOPED_JSON *over = parse("{\"status\":{\"conditions\":[{\"type\":\"Succeeded\",\"status\":\"True\"}]}}");
    ended("Succeeded");
    view.since_ms = 1;
    job_view_take_job(&view, over);
    trained_for(10);
    job_view_take_log(&view, "trained 2400 examples in 2.400 s of steps", 1010);
    job_view_take_log(&view, "goodput 97.4 % of 3s", 1010);
    summary();
    cr_expect(!has("training     ") && !has("goodput"), "%s", buffer_text(&text));
}

Test(summary, a_language_model_is_told_by_its_perplexity)
{
    ended("Succeeded");
    trained_for(2500);
    job_view_take_log(&view, "validation after step 2: loss 2.0000, perplexity 7.39", 3600);
    cr_assert_str_eq(summary(), "\ndigits is done: perplexity 7.39 (loss 2.0000) on 1,000 held-out examples\n"
                                "  losses       training 0.1000 (last step), held out 2.0000\n"
                                "  training     2.5 s, 1,234 examples a second at the end\n");
}

Test(summary, a_mean_squared_error_is_told_as_it_is)
{
    json_free(document);
    document = parse("{\"spec\":{\"coxswain\":{\"model\":{\"loss\":\"MeanSquaredError\"}}}}");
    job_view_take_job(&view, document);
    job_view_take_log(&view, "validation after step 2: loss 2.0000", 3600);
    view_print_line(&view, &text);
    cr_expect(has("held out: loss 2.0000"), "%s", buffer_text(&text));
    buffer_clear(&text);
    ended("Succeeded");
    cr_expect_str_eq(summary(), "\ndigits is done: loss 2.0000 on held-out examples\n");
}

Test(summary, numbers_are_told_by_their_error_in_their_unit)
{
    job_view_take_log(&view, "validation after step 2: loss 0.0400, RMSE 2.31", 3600);
    view_print_line(&view, &text);
    cr_expect(has("held out: RMSE 2.31"), "%s", buffer_text(&text));
    buffer_clear(&text);
    ended("Succeeded");
    cr_expect_str_eq(summary(), "\ndigits is done: RMSE 2.31 (loss 0.0400) on 1,000 held-out examples\n");
}

/* The newest evaluation, in the log, is worse. */
static void take_overfitted(const char *weights)
{
    SCOPED_FREE char *job = memory_format(
        "{'spec':{'coxswain':{'data':{'validation':{'last':1000}},'checkpoint':{'keepBest':true},'export':{%s}}},"
        "'status':{'progress':{'step':9,'totalSteps':9,'metrics':[{'name':'loss','value':'0.1'},"
        "{'name':'validationLoss','value':'0.9','step':9},{'name':'validationAccuracy','value':'0.7','step':9},{'name':"
        "'bestValidationLoss','value':'0.25','step':4},"
        "{'name':'bestValidationAccuracy','value':'0.983','step':4}]}}}",
        weights);
    json_free(document);
    document = json_of(job);
    job_view_take_job(&view, document);
    job_view_take_log(&view, "validation after step 9: loss 0.9000, accuracy 70.00 %", 1000);
    ended("Succeeded");
}

Test(summary, the_score_is_that_of_the_exported_weights)
{
    take_overfitted("'weights':'Best'");
    cr_expect_str_eq(
        summary(), "\ndigits is done: 98.3 % right on 1,000 held-out examples with the best weights, of step 4, which "
                   "are exported\n"
                   "  losses       training 0.1000 (last step), held out 0.9000 (last), 0.2500 (best)\n");
}

Test(summary, the_last_weights_have_the_newest_score)
{
    take_overfitted("");
    cr_expect_str_eq(summary(), "\ndigits is done: 70.0 % right on 1,000 held-out examples\n"
                                "  losses       training 0.1000 (last step), held out 0.9000\n");
}

Test(summary, a_failure_has_its_reason)
{
    struct storage_place place = {.state = "/s"};
    ended("Failed");
    snprintf(view.message, sizeof view.message, "worker 0 exited with code 65");
    summary_write(&view, document, &place, true, &text);
    cr_assert_str_eq(buffer_text(&text), "\ndigits has failed: worker 0 exited with code 65\n");
}

Test(summary, a_named_volume_comes_before_the_default_place)
{
    const char *volumes[] = {"result=/wrong", "results=/data/runs"};
    struct storage_place place = {.state = "/s", .volumes = volumes, .volume_count = 2};
    char *named = export_file(&place, document, "default");
    cr_assert_str_eq(named, "/data/runs/digits/model.safetensors");
    free(named);
    cr_assert_null(storage_directory(&place, document, "default", "scratch"), "that is no claim");
    struct storage_place cluster = {.state = NULL};
    cr_assert_null(export_file(&cluster, document, "default"));
}
