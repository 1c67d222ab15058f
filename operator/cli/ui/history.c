/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operator/cli/chief_line.h"

_Static_assert(sizeof((struct history *)0)->unit == CHIEF_UNIT_MAX, "a unit fits");

void history_init(struct history *history)
{
    memset(history, 0, sizeof *history);
    history->stride = 1;
    history->last_step = -1;
    history->version = 1;
}

void history_begin_log(struct history *history)
{
    history->chief_is_new = true;
}

/* ---------------------------------------------------------------- points */

/* The beginnings stay: a line through two crews would show steps that never were. */
static void halve(struct history *history)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < history->point_count; i++)
        if (i % 2 == 0 || history->points[i].begins)
            history->points[kept++] = history->points[i];
    history->point_count = kept;
    history->stride *= 2;
}

static void add_point(struct history *history, const struct history_point *point)
{
    if (++history->skipped < history->stride && !point->begins)
        return;
    history->skipped = 0;
    if (history->point_count == HISTORY_POINTS_MAX)
        halve(history);
    if (history->point_count < HISTORY_POINTS_MAX)
        history->points[history->point_count++] = *point;
}

static void thin_checkpoints(struct history *history)
{
    unsigned kept = 0, checkpoints = 0;
    for (unsigned i = 0; i < history->mark_count; i++)
        if (history->marks[i].event != HISTORY_CHECKPOINT || checkpoints++ % 2 == 0)
            history->marks[kept++] = history->marks[i];
    history->mark_count = kept;
}

static void add_mark(struct history *history, enum history_event event, int64_t step)
{
    if (history->mark_count == HISTORY_MARKS_MAX)
        thin_checkpoints(history);
    if (history->mark_count == HISTORY_MARKS_MAX)
        memmove(history->marks, history->marks + 1, --history->mark_count * sizeof *history->marks);
    history->marks[history->mark_count++] = (struct history_mark){event, step};
    history->version++;
}

static void take_step(struct history *history, const char *line, const struct chief_step *step)
{
    bool begins = history->chief_is_new || history->last_step < 0;
    if (history->chief_is_new && history->last_step >= 0)
        add_mark(history, HISTORY_RESTART, step->step);
    struct history_point point = {.step = step->step, .loss = step->loss, .rate = NAN, .begins = begins};
    chief_line_rate(line, &point.rate, history->unit);
    add_point(history, &point);
    history->chief_is_new = false;
    history->last_step = step->step;
    history->version++;
}

static void take_test(struct history *history, const struct chief_validation *test)
{
    if (history->test_count == HISTORY_TESTS_MAX) {
        for (unsigned i = 0; i < HISTORY_TESTS_MAX / 2; i++)
            history->tests[i] = history->tests[2 * i];
        history->test_count = HISTORY_TESTS_MAX / 2;
    }
    history->tests[history->test_count++] = (struct history_test){test->step, test->loss, test->accuracy};
    history->version++;
}

void history_take_line(struct history *history, const char *line)
{
    struct chief_step step;
    struct chief_validation test;
    int64_t number;
    if (chief_line_step(line, &step))
        take_step(history, line, &step);
    else if (chief_line_validation(line, &test))
        take_test(history, &test);
    else if (chief_line_whole_again(line, &number))
        add_mark(history, HISTORY_WHOLE_AGAIN, number);
    else if (chief_line_checkpoint(line, &number) || chief_line_resumes(line, &number))
        history_take_checkpoint(history, number);
}

static bool has_checkpoint(const struct history *history, int64_t step)
{
    for (unsigned i = history->mark_count; i-- > 0;)
        if (history->marks[i].event == HISTORY_CHECKPOINT && history->marks[i].step == step)
            return true;
    return false;
}

void history_take_checkpoint(struct history *history, int64_t step)
{
    if (step >= 0 && !has_checkpoint(history, step))
        add_mark(history, HISTORY_CHECKPOINT, step);
}

/* ---------------------------------------------------------------- as JSON */

static void append_figure(struct json *row, double figure)
{
    json_append(row, isfinite(figure) ? json_new_number(figure) : json_new_null());
}

static void write_points(const struct history *history, struct json *points)
{
    for (unsigned i = 0; i < history->point_count; i++) {
        const struct history_point *point = &history->points[i];
        struct json *row = json_append(points, json_new_array());
        json_append(row, json_new_integer(point->step));
        append_figure(row, point->loss);
        append_figure(row, point->rate);
        json_append(row, json_new_integer(point->begins));
    }
}

static void write_tests(const struct history *history, struct json *tests)
{
    for (unsigned i = 0; i < history->test_count; i++) {
        struct json *row = json_append(tests, json_new_array());
        json_append(row, json_new_integer(history->tests[i].step));
        append_figure(row, history->tests[i].loss);
        append_figure(row, history->tests[i].accuracy);
    }
}

static void write_marks(const struct history *history, struct json *marks)
{
    static const char *const words[] = {"restart", "whole again", "checkpoint"};
    for (unsigned i = 0; i < history->mark_count; i++) {
        struct json *row = json_append(marks, json_new_array());
        json_append_string(row, words[history->marks[i].event]);
        json_append(row, json_new_integer(history->marks[i].step));
    }
}

struct json *history_json(const struct history *history, uint64_t known_version)
{
    struct json *document = json_new_object();
    json_set_integer(document, "version", (int64_t)history->version);
    if (known_version == history->version)
        return document;
    json_set_string(document, "unit", *history->unit ? history->unit : "examples");
    write_points(history, json_set_array(document, "points"));
    write_tests(history, json_set_array(document, "tests"));
    write_marks(history, json_set_array(document, "marks"));
    return document;
}
