/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operator/cli/chief_line.h"

_Static_assert(sizeof(((struct history *)0)->members[0]) == CHIEF_MEMBER_NAME_MAX, "a name fits");
_Static_assert(sizeof((struct history *)0)->unit == CHIEF_UNIT_MAX, "a unit fits");

void history_init(struct history *history)
{
    memset(history, 0, sizeof *history);
    history->points.group_lines = history->tests.group_lines = HISTORY_GROUP;
    history->pace_stride = 1;
    history->last_step = -1;
    history->version = 1;
}

void history_begin_log(struct history *history)
{
    history->chief_is_new = true;
}

/* ---------------------------------------------------------------- points */

/* A loss that is no number is an extreme that has to stay. */
static double height(double loss)
{
    return isnan(loss) ? INFINITY : loss;
}

/* Keeps exactly HISTORY_GROUP of more points, in their order: those with the lowest and the highest loss and figure; where one point is
 * several of these, also the first, the last and others, because thin() finds the groups by their number of points. */
static unsigned keep_extremes(struct history_point *points, unsigned count)
{
    bool stays[2 * HISTORY_GROUP] = {false};
    unsigned low = 0, high = 0, least = 0, most = 0, kept = 0, chosen = 0;
    if (count <= HISTORY_GROUP)
        return count;
    for (unsigned i = 1; i < count; i++) {
        low = height(points[i].loss) < height(points[low].loss) ? i : low;
        high = height(points[i].loss) > height(points[high].loss) ? i : high;
        least = !(points[least].figure <= points[i].figure) && !isnan(points[i].figure) ? i : least;
        most = !(points[most].figure >= points[i].figure) && !isnan(points[i].figure) ? i : most;
    }
    const unsigned wanted[] = {low, high, least, most, 0, count - 1, 1, 2, 3};
    for (unsigned i = 0; chosen < HISTORY_GROUP; i++) {
        chosen += !stays[wanted[i]];
        stays[wanted[i]] = true;
    }
    for (unsigned i = 0; i < count; i++)
        if (stays[i])
            points[kept++] = points[i];
    return kept;
}

/* Merges pairs of groups. The beginnings stay: a line through two crews would show steps that never were. */
static void thin(struct history_curve *curve)
{
    unsigned kept = 0, end;
    for (unsigned start = 0; start < curve->count; start = end) {
        for (end = start + 1; end < curve->count && end - start < 2 * HISTORY_GROUP; end++)
            if (curve->points[start].begins || curve->points[end].begins)
                break;
        unsigned stay = keep_extremes(&curve->points[start], end - start);
        memmove(&curve->points[kept], &curve->points[start], stay * sizeof *curve->points);
        kept += stay;
    }
    if (kept < curve->count)
        curve->group_lines *= 2;
    curve->count = kept;
}

static void close_group(struct history_curve *curve)
{
    curve->count = curve->closed + keep_extremes(&curve->points[curve->closed], curve->count - curve->closed);
    if (curve->count > HISTORY_POINTS_MAX - 3 * HISTORY_GROUP)
        thin(curve);
    curve->closed = curve->count;
    curve->lines = 0;
}

/* Adds to the open group. When beginnings alone fill the curve, later points are lost. */
static void add_point(struct history_curve *curve, const struct history_point *point)
{
    if (point->begins)
        close_group(curve);
    if (curve->count == HISTORY_POINTS_MAX)
        return;
    curve->points[curve->count++] = *point;
    if (curve->count - curve->closed == 2 * HISTORY_GROUP)
        curve->count = curve->closed + keep_extremes(&curve->points[curve->closed], 2 * HISTORY_GROUP);
    if (point->begins || ++curve->lines >= curve->group_lines)
        close_group(curve);
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
    struct history_point point = {.step = step->step, .loss = step->loss, .figure = NAN, .begins = begins};
    chief_line_rate(line, &point.figure, history->unit);
    add_point(&history->points, &point);
    history->chief_is_new = false;
    history->last_step = step->step;
    history->version++;
}

static void take_test(struct history *history, const struct chief_validation *test)
{
    add_point(&history->tests,
              &(struct history_point){.step = test->step, .loss = test->loss, .figure = test->accuracy});
    history->version++;
}

/* HISTORY_MEMBERS_MAX: there is no room for another name. */
static unsigned member_of(struct history *history, const char *name)
{
    unsigned at = 0;
    while (at < history->member_count && strcmp(history->members[at], name) != 0)
        at++;
    if (at == history->member_count && at < HISTORY_MEMBERS_MAX)
        snprintf(history->members[history->member_count++], CHIEF_MEMBER_NAME_MAX, "%s", name);
    return at;
}

static void take_pace(struct history *history, const struct chief_pace *line)
{
    history->version++;
    if (++history->paces_skipped < history->pace_stride)
        return;
    history->paces_skipped = 0;
    if (history->pace_count == HISTORY_PACES_MAX) {
        for (unsigned i = 0; i < HISTORY_PACES_MAX / 2; i++)
            history->paces[i] = history->paces[2 * i];
        history->pace_count = HISTORY_PACES_MAX / 2;
        history->pace_stride *= 2;
    }
    struct history_pace *pace = &history->paces[history->pace_count++];
    *pace = (struct history_pace){.step = line->step, .step_ms = (float)line->step_ms};
    for (unsigned i = 0; i < HISTORY_MEMBERS_MAX; i++)
        pace->own_ms[i] = NAN;
    for (unsigned i = 0; i < line->count; i++) {
        unsigned member = member_of(history, line->members[i].name);
        if (member < HISTORY_MEMBERS_MAX)
            pace->own_ms[member] = (float)line->members[i].own_ms;
    }
}

void history_take_line(struct history *history, const char *line)
{
    struct chief_step step;
    struct chief_validation test;
    struct chief_pace pace;
    int64_t number;
    if (chief_line_step(line, &step))
        take_step(history, line, &step);
    else if (chief_line_validation(line, &test))
        take_test(history, &test);
    else if (chief_line_pace(line, &pace))
        take_pace(history, &pace);
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

static void write_curve(const struct history_curve *curve, bool with_beginnings, struct json *points)
{
    for (unsigned i = 0; i < curve->count; i++) {
        const struct history_point *point = &curve->points[i];
        struct json *row = json_append(points, json_new_array());
        json_append(row, json_new_integer(point->step));
        append_figure(row, point->loss);
        append_figure(row, point->figure);
        if (with_beginnings)
            json_append(row, json_new_integer(point->begins));
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

static void write_crew(const struct history *history, struct json *crew)
{
    struct json *members = json_set_array(crew, "members"), *paces = json_set_array(crew, "paces");
    for (unsigned i = 0; i < history->member_count; i++)
        json_append_string(members, history->members[i]);
    for (unsigned i = 0; i < history->pace_count; i++) {
        const struct history_pace *pace = &history->paces[i];
        struct json *row = json_append(paces, json_new_array());
        json_append(row, json_new_integer(pace->step));
        append_figure(row, (double)pace->step_ms);
        struct json *own = json_append(row, json_new_array());
        for (unsigned member = 0; member < history->member_count; member++)
            append_figure(own, (double)pace->own_ms[member]);
    }
}

struct json *history_json(const struct history *history, uint64_t known_version)
{
    struct json *document = json_new_object();
    json_set_integer(document, "version", (int64_t)history->version);
    if (known_version == history->version)
        return document;
    json_set_string(document, "unit", *history->unit ? history->unit : "examples");
    write_curve(&history->points, true, json_set_array(document, "points"));
    write_curve(&history->tests, false, json_set_array(document, "tests"));
    write_marks(history, json_set_array(document, "marks"));
    write_crew(history, json_set_object(document, "crew"));
    return document;
}
