/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/history.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/memory.h"

static struct history *history_new(void)
{
    struct history *history = memory_allocate(1, sizeof *history);
    history_init(history);
    history_begin_log(history);
    return history;
}

Test(ui_history, lines_become_points_and_tests)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history, "model      lenet, 225034 parameters");
    cr_expect_eq(history->version, 1, "a line without a figure changes nothing");
    history_take_line(history, "step   20/100  loss 0.5000   |g| 0.9  lr 2.00e-04  2.1 ms  12861 tokens/s  2m left");
    history_take_line(history, "step 40/100 loss 0.25");
    history_take_line(history, "validation after step 40: loss 0.3, accuracy 92.50 %");
    history_take_line(history, "validation after step 60: loss 0.2");
    cr_assert_eq(history->points.count, 2);
    cr_expect(history->points.points[0].step == 20 && history->points.points[0].loss == 0.5 &&
              history->points.points[0].figure == 12861);
    cr_expect(history->points.points[0].begins && !history->points.points[1].begins &&
              isnan(history->points.points[1].figure));
    cr_expect_str_eq(history->unit, "tokens");
    cr_assert_eq(history->tests.count, 2);
    cr_expect(history->tests.points[0].step == 40 && fabs(history->tests.points[0].figure - 0.925) < 1e-9);
    cr_expect(isnan(history->tests.points[1].figure));
    cr_expect_eq(history->mark_count, 0);
}

Test(ui_history, another_chief_is_a_restart_where_it_begins)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history, "step 40/100 loss 0.25");
    history_begin_log(history);
    history_take_line(history, "resumes from the checkpoint of step 30");
    history_take_line(history, "step 31/100 loss 0.3");
    history_take_line(history,
                      "the crew is whole again: step 32 done 0.14 s after a member was lost, one step was repeated");
    history_take_checkpoint(history, 30);
    history_take_checkpoint(history, -1);
    history_take_checkpoint(history, 50);
    cr_assert_eq(history->mark_count, 4, "the checkpoint is marked once");
    cr_expect(history->marks[0].event == HISTORY_CHECKPOINT && history->marks[0].step == 30);
    cr_expect(history->marks[1].event == HISTORY_RESTART && history->marks[1].step == 31);
    cr_expect(history->marks[2].event == HISTORY_WHOLE_AGAIN && history->marks[2].step == 32);
    cr_expect(history->marks[3].event == HISTORY_CHECKPOINT && history->marks[3].step == 50);
    cr_expect(history->points.points[1].begins);
}

/* The status is written every few seconds, and may lag behind the log. */
Test(ui_history, the_log_has_checkpoints_that_no_status_told)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history, "checkpoint of step 20: 12.3 MB in 0.04 s");
    history_take_line(history, "checkpoint of step 40: 900.0 kB in 0.04 s");
    history_take_checkpoint(history, 20);
    history_take_checkpoint(history, 40);
    cr_assert_eq(history->mark_count, 2);
    cr_expect(history->marks[0].event == HISTORY_CHECKPOINT && history->marks[0].step == 20);
    cr_expect(history->marks[1].event == HISTORY_CHECKPOINT && history->marks[1].step == 40);
}

Test(ui_history, many_checkpoints_displace_no_restart)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history, "step 1/2 loss 1");
    history_begin_log(history);
    history_take_line(history, "step 1/2 loss 1");
    for (int step = 1; step <= 20 * HISTORY_MARKS_MAX; step++)
        history_take_checkpoint(history, step);
    cr_expect(history->marks[0].event == HISTORY_RESTART);
    cr_expect(history->mark_count > HISTORY_MARKS_MAX / 4 && history->mark_count <= HISTORY_MARKS_MAX);
    cr_expect_eq(history->marks[history->mark_count - 1].step, 20 * HISTORY_MARKS_MAX);
}

/* Of a long run every part of the curve stays, its beginning, and where each chief began. */
Test(ui_history, a_long_run_is_thinned_out)
{
    SCOPED_FREE struct history *history = history_new();
    for (int step = 1; step <= 50 * HISTORY_POINTS_MAX; step++) {
        char line[64];
        if (step == 777)
            history_begin_log(history);
        snprintf(line, sizeof line, "step %d/999999 loss %d", step, step);
        history_take_line(history, line);
    }
    cr_assert(history->points.count <= HISTORY_POINTS_MAX && history->points.count > HISTORY_POINTS_MAX / 4);
    bool has_restart = false;
    for (unsigned i = 0; i < history->points.count; i++) {
        has_restart |= history->points.points[i].step == 777 && history->points.points[i].begins;
        cr_assert(i == 0 || history->points.points[i].step > history->points.points[i - 1].step);
        cr_assert(i == 0 || history->points.points[i].step - history->points.points[i - 1].step <=
                                2 * history->points.group_lines);
    }
    cr_expect(has_restart);
    cr_expect_eq(history->points.points[0].step, 1);
}

/* 1,000,000 lines of a smooth curve, with a spike and a NaN, a slow and a fast step; the memory is that of the struct. */
Test(ui_history, peaks_among_a_million_points_stay)
{
    SCOPED_FREE struct history *history = history_new();
    bool spike = false, gap = false, slow = false, fast = false;
    for (int step = 1; step <= 1000000; step++) {
        char line[96];
        const char *loss = step == 345678 ? "99.5" : step == 500001 ? "nan" : "1.25";
        int rate = step == 77777 ? 3 : step == 654321 ? 90000 : 5000 + step % 100;
        snprintf(line, sizeof line, "step %d/1000000 loss %s  2.1 ms  %d examples/s", step, loss, rate);
        history_take_line(history, line);
        if (step % 5000 == 0) {
            snprintf(line, sizeof line, "validation after step %d: loss %s, accuracy 50.00 %%", step,
                     step == 600000 ? "0.01" : "2");
            history_take_line(history, line);
        }
    }
    const struct history_curve *curve = &history->points;
    cr_assert(curve->count <= HISTORY_POINTS_MAX && curve->count > HISTORY_POINTS_MAX / 4);
    for (unsigned i = 0; i < curve->count; i++) {
        const struct history_point *point = &curve->points[i];
        cr_assert(i == 0 || point->step > curve->points[i - 1].step, "in the order of steps");
        cr_assert(i == 0 || point->step - curve->points[i - 1].step <= 2 * curve->group_lines, "each part has points");
        spike |= point->step == 345678 && point->loss == 99.5;
        gap |= point->step == 500001 && isnan(point->loss);
        slow |= point->step == 77777 && point->figure == 3;
        fast |= point->step == 654321 && point->figure == 90000;
    }
    cr_expect(spike, "a spike of the loss stays");
    cr_expect(gap, "a loss that is no number stays");
    cr_expect(slow && fast, "the slowest and the fastest step stay");
    cr_expect_eq(curve->points[curve->count - 1].step, 1000000, "the newest step is shown");
    cr_expect_eq(history->tests.count, 200, "few results are all kept");
}

Test(ui_history, the_best_of_many_results_stays)
{
    SCOPED_FREE struct history *history = history_new();
    bool best = false;
    for (int step = 1; step <= 10 * HISTORY_POINTS_MAX; step++) {
        char line[64];
        snprintf(line, sizeof line, "validation after step %d: loss %s, accuracy %s %%", step,
                 step == 4321 ? "0.01" : "0.3", step == 4321 ? "99.00" : "90.00");
        history_take_line(history, line);
    }
    for (unsigned i = 0; i < history->tests.count; i++)
        best |= history->tests.points[i].step == 4321;
    cr_expect(best);
    cr_expect(history->tests.count <= HISTORY_POINTS_MAX && history->tests.count > HISTORY_POINTS_MAX / 4);
}

Test(ui_history, beginnings_alone_never_overflow)
{
    SCOPED_FREE struct history *history = history_new();
    for (int chief = 0; chief < 3 * HISTORY_POINTS_MAX; chief++) {
        history_begin_log(history);
        history_take_line(history, "step 1/2 loss 1");
    }
    cr_expect_eq(history->points.count, HISTORY_POINTS_MAX);
    cr_expect_eq(history->mark_count, HISTORY_MARKS_MAX);
}

Test(ui_history, a_version_that_is_known_is_not_sent_again)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history, "step 1/2 loss nan");
    SCOPED_JSON *whole = history_json(history, 0);
    SCOPED_JSON *same = history_json(history, history->version);
    cr_expect_eq(json_count(json_at(whole, "points")), 1);
    cr_expect_eq(json_type(json_element(json_first(json_at(whole, "points")), 1)), JSON_NULL,
                 "what is no number is a gap");
    cr_expect_null(json_at(same, "points"));
    cr_expect_eq(json_integer_at(same, "version", 0), (int64_t)history->version);
}

Test(ui_history, the_pace_of_the_crew_is_kept_by_member)
{
    SCOPED_FREE struct history *history = history_new();
    history_take_line(history,
                      "pace of the crew to step 120: 13.5 ms a step; own parts worker 0 11.2 ms, worker 1 12.0 ms");
    history_take_line(history,
                      "pace of the crew to step 240: 14.0 ms a step; own parts chief 0 3.0 ms, worker 1 12.5 ms");
    static const char *const others[] = {"pace of the crew to step 3: 4 ms a step; own parts",
                                         "pace of the crew to step 3",
                                         "pace of the crew to step 3: nan ms a step; own parts worker 0 1 ms",
                                         "pace of the crew to step 3: 1e300 ms a step; own parts worker 0 1 ms",
                                         "pace of the crew to step 3: 4 ms a step; own parts worker 0 -1 ms",
                                         "pace of the crew to step -3: 1 ms a step; own parts worker 0 1 ms"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        history_take_line(history, others[i]);
    cr_assert_eq(history->pace_count, 2);
    SCOPED_JSON *document = history_json(history, 0);
    SCOPED_BUFFER text;
    buffer_init(&text, 10000);
    cr_assert_eq(json_print(json_at(document, "crew"), &text, NULL), 0);
    cr_expect_str_eq(
        buffer_text(&text),
        "{\"members\":[\"worker 0\",\"worker 1\",\"chief 0\"],\"paces\":[[120,13.5,[11.199999809265137,12,null]],"
        "[240,14,[null,12.5,3]]]}");
}

Test(ui_history, many_paces_and_members_stay_within_bounds)
{
    SCOPED_FREE struct history *history = history_new();
    for (int step = 1; step <= 5 * HISTORY_PACES_MAX; step++) {
        SCOPED_FREE char *line =
            memory_format("pace of the crew to step %d: 2.0 ms a step; own parts worker %d 1.0 ms", step, step);
        history_take_line(history, line);
    }
    cr_expect_eq(history->member_count, HISTORY_MEMBERS_MAX);
    cr_expect(history->pace_count >= HISTORY_PACES_MAX / 2 && history->pace_count <= HISTORY_PACES_MAX);
    cr_expect_eq(history->paces[0].step, 1);
    cr_expect(history->paces[history->pace_count - 1].step > 4 * HISTORY_PACES_MAX);
}
