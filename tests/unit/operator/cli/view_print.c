/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/view_print.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/utf8.h"

/* Columns of the widest line, without attributes. */
static unsigned widest(const char *text)
{
    unsigned most = 0, column = 0;
    while (*text) {
        size_t bytes = utf8_sequence(text, strlen(text));
        if (*text == '\033') {
            text = strchr(text, 'm') + 1;
            continue;
        }
        column = *text == '\n' ? 0 : column + 1;
        most = column > most ? column : most;
        text += bytes;
    }
    return most;
}

static void fill(struct job_view *view)
{
    char line[128];
    job_view_init(view, "default", "a-job-with-rather-a-long-name-that-goes-on-and-on");
    snprintf(view->state, sizeof view->state, "Running");
    snprintf(view->strategy, sizeof view->strategy, "MultiWorkerMirrored");
    view->workers = 2;
    for (int step = 1; step <= 60; step++) {
        snprintf(line, sizeof line, "step %d/100  loss %f  |g| 1  lr 1e-3  1 ms  123456 examples/s  1m3s left", step,
                 2.0 / step);
        job_view_take_log(view, line, step);
    }
    job_view_take_log(view, "waiting for worker 1, which was lost while step 61 was under way; it comes back", 70);
    view->pods = memory_allocate(1, sizeof *view->pods);
    snprintf(view->pods[0].name, sizeof view->pods[0].name, "a-job-with-rather-a-long-name-worker-0-1");
    snprintf(view->pods[0].role, sizeof view->pods[0].role, "worker");
    snprintf(view->pods[0].words, sizeof view->pods[0].words, "CrashLoopBackOff");
    view->pod_count = 1;
}

Test(view_print, no_line_of_the_block_is_wider_than_the_terminal)
{
    for (unsigned width = 1; width <= 120; width++) {
        struct job_view view;
        SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
        fill(&view);
        view_print_block(&view, width, true, &text);
        cr_assert_leq(widest(buffer_text(&text)), width);
        job_view_release(&view);
    }
}

Test(view_print, the_block_tells_all)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    fill(&view);
    view_print_block(&view, 120, false, &text);
    cr_assert_null(strchr(buffer_text(&text), '\033'), "no colours asked for");
    static const char *const parts[] = {"MultiWorkerMirrored, 2 workers  Running", "step 60/100  63s left",
                                        "loss 0.0333  123,456 examples/s", "worker 0  CrashLoopBackOff",
                                        "waiting for worker 1"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_assert(strstr(buffer_text(&text), parts[i]), "%s in\n%s", parts[i], buffer_text(&text));
    job_view_release(&view);
}

Test(view_print, no_time_is_left_after_the_last_step)
{
    struct job_view view;
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    fill(&view);
    view_print_line(&view, &text);
    cr_expect(strstr(buffer_text(&text), "63s left"), "%s", buffer_text(&text));
    buffer_clear(&text);
    view.step = view.total_steps;
    view_print_line(&view, &text);
    cr_expect(strstr(buffer_text(&text), "100 %") && !strstr(buffer_text(&text), "left"), "%s", buffer_text(&text));
    job_view_release(&view);
}

Test(view_print, long_lines_are_broken_at_spaces)
{
    SCOPED_BUFFER text = BUFFER_INIT(VIEW_PRINT_MAX);
    view_print_wrapped("short\nchief: aaa bbb ccc ddd eee\nunbreakable-unbreakable\n", 15, 4, &text);
    cr_assert_str_eq(buffer_text(&text), "short\nchief: aaa bbb\n    ccc ddd eee\nunbreakable-unb\n    reakable\n");
}

/* Without the loss of nearly 0, the curve takes the whole scale. */
Test(view_print, one_loss_of_0_leaves_the_scale)
{
    double losses[40];
    SCOPED_BUFFER with = BUFFER_INIT(VIEW_PRINT_MAX), without = BUFFER_INIT(VIEW_PRINT_MAX);
    for (unsigned i = 0; i < 40; i++)
        losses[i] = 2.0 / (i + 1);
    view_print_losses(losses, 39, 40, &without);
    losses[39] = 0;
    view_print_losses(losses, 40, 40, &with);
    cr_expect_eq(strncmp(buffer_text(&with), "█▇▆▅", strlen("█▇▆▅")), 0, "%s", buffer_text(&with));
    cr_expect(strstr(buffer_text(&with), "▂"), "%s", buffer_text(&with));
    cr_expect_eq(strncmp(buffer_text(&with), buffer_text(&without), strlen("█▇▆")), 0, "%s", buffer_text(&without));
}
