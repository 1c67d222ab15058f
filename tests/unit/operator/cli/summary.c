/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/summary.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/view_print.h"

static const char job_text[] =
    "{\"spec\":{\"storage\":[{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"results\"}},"
    "{\"name\":\"scratch\",\"emptyDir\":{}}],\"coxswain\":{\"data\":{\"validation\":{\"last\":1000}},"
    "\"checkpoint\":{\"storage\":\"runs\",\"path\":\"digits\"},"
    "\"export\":{\"storage\":\"runs\",\"path\":\"digits/model.safetensors\"}}}}";

static struct json *parse(const char *text)
{
    struct json *value = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &value, NULL), 0);
    return value;
}

static struct json *job(void)
{
    return parse(job_text);
}

static void finished(struct job_view *view, const char *state)
{
    job_view_init(view, "default", "digits");
    snprintf(view->state, sizeof view->state, "%s", state);
    job_view_take_log(view, "step 1/2  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1000);
    job_view_take_log(view, "step 2/2  loss 0.1  |g| 1  lr 1e-3  1 ms  1234 examples/s", 3500);
}

Test(summary, says_how_well_and_where)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    setenv("HOME", "/home/ada", 1);
    finished(&view, "Succeeded");
    job_view_take_log(&view, "validation after step 2: loss 0.0625, accuracy 98.30 %", 3600);
    job_view_take_log(&view, "trained 2400 examples in 2.400 s of steps", 3600);
    job_view_take_log(&view, "goodput 97.4 % of 3s", 3600);
    struct storage_place place = {.state = "/home/ada/state"};
    summary_write(&view, document, &place, true, &text);
    cr_assert_str_eq(buffer_text(&text), "\ndigits is done: 98.3 % right on 1,000 held-out examples\n"
                                         "  loss         █▁\n"
                                         "               2.000 to 0.1000\n"
                                         "  losses       training 0.1000 (last step), held out 0.0625\n"
                                         "  training     2.4 s, 1,000 examples a second, goodput 97.4 %\n"
                                         "  checkpoints  ~/state/volumes/default/results/digits\n"
                                         "  TensorBoard  ~/state/volumes/default/results/digits/tensorboard\n"
                                         "  weights      ~/state/volumes/default/results/digits/model.safetensors\n");
    job_view_release(&view);
}

Test(summary, a_short_training_is_told_in_milliseconds)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
    snprintf(view.state, sizeof view.state, "Succeeded");
    job_view_take_log(&view, "step 1/2  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1000);
    job_view_take_log(&view, "step 2/2  loss 0.1  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1040);
    struct storage_place cluster = {.state = NULL};
    summary_write(&view, document, &cluster, false, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "\n  training     40 ms, 1,234"), "%s", buffer_text(&text));
    job_view_release(&view);
}

/* The rate of the last moment would be 4 a second here. */
Test(summary, the_rate_is_the_mean_over_the_time_beside_it)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
    snprintf(view.state, sizeof view.state, "Succeeded");
    job_view_take_log(&view, "step 1/100  loss 2.0  |g| 1  lr 1e-3  1 ms  99 examples/s", 1000);
    job_view_take_log(&view, "step 100/100  loss 0.1  |g| 1  lr 1e-3  1 ms  4 examples/s", 1010);
    job_view_take_log(&view, "trained 1600 examples in 206.000 s of steps", 1010);
    struct storage_place cluster = {.state = NULL};
    summary_write(&view, document, &cluster, false, &text);
    cr_expect_not_null(strstr(buffer_text(&text), "\n  training     206.0 s, 8 examples a second\n"), "%s",
                       buffer_text(&text));
    job_view_release(&view);
}

Test(summary, a_job_that_was_over_has_no_rate)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_JSON *over = parse("{\"status\":{\"conditions\":[{\"type\":\"Succeeded\",\"status\":\"True\"}]}}");
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
    view.since_ms = 1;
    job_view_take_job(&view, over);
    job_view_take_log(&view, "step 1/2  loss 2.0  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1000);
    job_view_take_log(&view, "step 2/2  loss 0.1  |g| 1  lr 1e-3  1 ms  1234 examples/s", 1010);
    job_view_take_log(&view, "trained 2400 examples in 2.400 s of steps", 1010);
    job_view_take_log(&view, "goodput 97.4 % of 3s", 1010);
    struct storage_place cluster = {.state = NULL};
    summary_write(&view, document, &cluster, false, &text);
    cr_expect_null(strstr(buffer_text(&text), "training     "), "%s", buffer_text(&text));
    cr_expect_null(strstr(buffer_text(&text), "goodput"), "%s", buffer_text(&text));
    job_view_release(&view);
}

Test(summary, a_language_model_is_told_by_its_perplexity)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    finished(&view, "Succeeded");
    job_view_take_log(&view, "validation after step 2: loss 2.0000, perplexity 7.39", 3600);
    struct storage_place cluster = {.state = NULL};
    summary_write(&view, document, &cluster, false, &text);
    cr_assert_str_eq(buffer_text(&text), "\ndigits is done: perplexity 7.39 (loss 2.0000) on 1,000 held-out examples\n"
                                         "  losses       training 0.1000 (last step), held out 2.0000\n"
                                         "  training     2.5 s, 1,234 examples a second at the end\n");
    job_view_release(&view);
}

Test(summary, a_mean_squared_error_is_told_as_it_is)
{
    struct job_view view;
    SCOPED_JSON *document = parse("{\"spec\":{\"coxswain\":{\"model\":{\"loss\":\"MeanSquaredError\"}}}}");
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
    job_view_take_job(&view, document);
    job_view_take_log(&view, "validation after step 2: loss 2.0000", 3600);
    view_print_line(&view, &text);
    cr_expect(strstr(buffer_text(&text), "held out: loss 2.0000"), "%s", buffer_text(&text));
    buffer_clear(&text);
    snprintf(view.state, sizeof view.state, "Succeeded");
    summary_write(&view, document, &(struct storage_place){.state = NULL}, false, &text);
    cr_expect_str_eq(buffer_text(&text), "\ndigits is done: loss 2.0000 on held-out examples\n");
    job_view_release(&view);
}

Test(summary, a_failure_has_its_reason)
{
    struct job_view view;
    SCOPED_JSON *document = job();
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_EVENTS_MAX);
    job_view_init(&view, "default", "digits");
    snprintf(view.state, sizeof view.state, "Failed");
    snprintf(view.message, sizeof view.message, "worker 0 exited with code 65");
    struct storage_place place = {.state = "/s"};
    summary_write(&view, document, &place, true, &text);
    cr_assert_str_eq(buffer_text(&text), "\ndigits has failed: worker 0 exited with code 65\n");
    job_view_release(&view);
}

Test(summary, a_named_volume_comes_before_the_default_place)
{
    SCOPED_JSON *document = job();
    const char *volumes[] = {"result=/wrong", "results=/data/runs"};
    struct storage_place place = {.state = "/s", .volumes = volumes, .volume_count = 2};
    char *named = export_file(&place, document, "default");
    cr_assert_str_eq(named, "/data/runs/digits/model.safetensors");
    free(named);
    cr_assert_null(storage_directory(&place, document, "default", "scratch"), "that is no claim");
    struct storage_place cluster = {.state = NULL};
    cr_assert_null(export_file(&cluster, document, "default"));
}
