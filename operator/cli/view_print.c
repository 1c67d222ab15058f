/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/view_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/utf8.h"

#define BAR_WIDTH_MAX 40
#define PODS_SHOWN_MAX 8
#define CURVE_WIDTH_MAX 256
#define CURVE_WIDTH_LEAST 4 /* in narrower curves nothing is an outlier */
#define OUTLIERS_PART 10    /* a tenth of the columns and one more may be outliers */
#define LOSS_LEAST 1e-12

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define GREEN "\033[32m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static void paint(struct buffer *out, bool colour, const char *attribute)
{
    if (colour)
        buffer_append_string(out, attribute, NULL);
}

void view_print_number(int64_t number, struct buffer *out)
{
    if (number >= 1000) {
        view_print_number(number / 1000, out);
        buffer_format(out, ",%03lld", (long long)(number % 1000));
    } else {
        buffer_format(out, "%lld", (long long)number);
    }
}

/* ---------------------------------------------------------------- columns */

/* Returns the length of the next attribute or character in bytes, and its width in columns. */
static size_t next_cell(const char *text, size_t length, unsigned *ret_columns)
{
    size_t bytes = utf8_sequence(text, length);
    const char *attribute_end = *text == '\033' ? memchr(text, 'm', length) : NULL;
    *ret_columns = attribute_end == NULL;
    if (attribute_end)
        bytes = (size_t)(attribute_end - text) + 1;
    return bytes > 0 ? bytes : 1;
}

void view_print_clipped(const char *lines, unsigned width, struct buffer *out)
{
    const char *at = lines, *end = at + strlen(lines);
    for (unsigned column = 0, columns; at < end; column += columns) {
        size_t bytes = next_cell(at, (size_t)(end - at), &columns);
        if (*at == '\n')
            columns = column = 0;
        if (*at == '\n' || column + columns <= width)
            buffer_append(out, at, bytes, NULL);
        at += bytes;
    }
}

/* How much of a line of `length` bytes goes into `width` columns: up to a space, if there is one. */
static size_t fitting(const char *line, size_t length, unsigned width)
{
    size_t at = 0, space = 0;
    for (unsigned column = 0, columns; at < length; column += columns) {
        if (line[at] == ' ' && column > 0)
            space = at;
        size_t bytes = next_cell(line + at, length - at, &columns);
        if (column + columns > width)
            return space > 0 ? space : at;
        at += bytes;
    }
    return length;
}

void view_print_wrapped(const char *lines, unsigned width, unsigned indent, struct buffer *out)
{
    if (width < 2 * indent)
        indent = 0;
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        size_t part = fitting(lines, (size_t)(end - lines), width);
        buffer_append(out, lines, part, NULL);
        for (lines += part; lines < end; lines += part) {
            lines += *lines == ' ';
            part = fitting(lines, (size_t)(end - lines), width - indent);
            buffer_format(out, "\n%*s%.*s", (int)indent, "", (int)part, lines);
        }
        buffer_append_byte(out, '\n', NULL);
    }
}

/* ---------------------------------------------------------------- the curve */

static double mean(const double *values, unsigned first, unsigned end)
{
    double sum = 0;
    for (unsigned i = first; i < end; i++)
        sum += values[i];
    return sum / (end - first);
}

static int compare_heights(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

/* Returns the height at which the scale begins. A few losses of nearly 0 are below it if they would take more than half of the scale. */
static double lowest_height(const double *heights, unsigned columns)
{
    double sorted[CURVE_WIDTH_MAX];
    unsigned few = columns / OUTLIERS_PART + 1;
    memcpy(sorted, heights, columns * sizeof *sorted);
    qsort(sorted, columns, sizeof *sorted, compare_heights);
    bool far = columns >= CURVE_WIDTH_LEAST && sorted[few] - sorted[0] > sorted[columns - 1] - sorted[few];
    return far ? sorted[few] : sorted[0];
}

void view_print_losses(const double *losses, unsigned count, unsigned width, struct buffer *out)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    unsigned most = width < CURVE_WIDTH_MAX ? width : CURVE_WIDTH_MAX, columns = count < most ? count : most;
    double heights[CURVE_WIDTH_MAX], highest = -INFINITY;
    for (unsigned i = 0; i < columns; i++) { /* the logarithm, since a loss falls fast and then slowly */
        heights[i] = log(fmax(mean(losses, i * count / columns, (i + 1) * count / columns), LOSS_LEAST));
        highest = fmax(highest, heights[i]);
    }
    double lowest = columns > 0 ? lowest_height(heights, columns) : 0;
    for (unsigned i = 0; i < columns; i++) {
        double part = highest > lowest ? fmax(heights[i] - lowest, 0) / (highest - lowest) : 0;
        buffer_append_string(out, blocks[(unsigned)(part * 7.999)], NULL);
    }
}

void view_print_curve(const struct job_view *view, unsigned width, struct buffer *out)
{
    view_print_losses(view->losses, view->loss_count, width, out);
}

/* ---------------------------------------------------------------- lines */

static int percent(const struct job_view *view)
{
    return view->total_steps > 0 && view->step >= 0 ? (int)(100 * view->step / view->total_steps) : 0;
}

static void print_rate(const struct job_view *view, struct buffer *out)
{
    if (!isfinite(view->examples_per_second))
        return;
    buffer_append_string(out, "  ", NULL);
    view_print_number(llround(view->examples_per_second), out);
    buffer_format(out, " %s/s", view->unit);
}

static void print_validation(const struct job_view *view, struct buffer *out)
{
    if (isfinite(view->accuracy))
        buffer_format(out, "  held out %.1f %%", 100 * view->accuracy);
    else if (isfinite(view->rmse))
        buffer_format(out, "  held out: RMSE %.6g", view->rmse);
    else if (isfinite(view->validation_loss) && view->loss_alone)
        buffer_format(out, "  held out: loss %.4f", view->validation_loss);
    else if (isfinite(view->validation_loss))
        buffer_format(out, "  held out: perplexity %.2f", exp(view->validation_loss));
}

static void print_left(const struct job_view *view, struct buffer *out)
{
    char text[24];
    bool stepped =
        view->total_steps > 0 && view->step >= view->total_steps; /* only the last evaluation may still go on */
    if (view->seconds_left < 0 || stepped || job_view_over(view))
        return;
    clock_format_duration(1000 * view->seconds_left, text, sizeof text);
    buffer_format(out, "  %s left", text);
}

void view_print_line(const struct job_view *view, struct buffer *out)
{
    if (view->total_steps >= 0)
        buffer_format(out, "step %lld/%lld  %d %%", (long long)view->step, (long long)view->total_steps, percent(view));
    else
        buffer_format(out, "step %lld", (long long)view->step);
    if (isfinite(view->loss))
        buffer_format(out, "  loss %.4f", view->loss);
    print_rate(view, out);
    print_validation(view, out);
    print_left(view, out);
}

/* ---------------------------------------------------------------- the block */

static const char *state_colour(const struct job_view *view)
{
    if (job_view_succeeded(view) || strcmp(view->state, "Running") == 0)
        return GREEN;
    return strcmp(view->state, "Failed") == 0 ? RED : YELLOW;
}

static void print_title(const struct job_view *view, bool colour, struct buffer *out)
{
    paint(out, colour, BOLD);
    buffer_append_string(out, view->name, NULL);
    paint(out, colour, PLAIN);
    buffer_format(out, "  %s, %lld worker%s  ", view->strategy, (long long)view->workers,
                  view->workers == 1 ? "" : "s");
    paint(out, colour, state_colour(view));
    buffer_append_string(out, *view->state ? view->state : "Created", NULL);
    paint(out, colour, PLAIN);
    if (view->restarts > 0)
        buffer_format(out, "  %lld pod%s replaced", (long long)view->restarts, view->restarts == 1 ? "" : "s");
    buffer_append_byte(out, '\n', NULL);
}

static void print_bar(const struct job_view *view, unsigned width, struct buffer *out)
{
    unsigned bar = width / 2 < BAR_WIDTH_MAX ? width / 2 : BAR_WIDTH_MAX;
    unsigned full = (unsigned)percent(view) * bar / 100;
    for (unsigned i = 0; i < bar; i++)
        buffer_append_string(out, i < full ? "█" : "░", NULL);
    if (view->total_steps > 0 && view->step >= 0)
        buffer_format(out, "  step %lld/%lld", (long long)view->step, (long long)view->total_steps);
    print_left(view, out);
    buffer_append_byte(out, '\n', NULL);
}

static void print_figures(const struct job_view *view, struct buffer *out)
{
    if (!isfinite(view->loss))
        return;
    buffer_format(out, "loss %.4f", view->loss);
    print_rate(view, out);
    print_validation(view, out);
    buffer_append_byte(out, '\n', NULL);
}

static const char *pod_colour(const struct pod_line *pod)
{
    if (pod->ready || strcmp(pod->words, "done") == 0)
        return GREEN;
    return pod->ended ? RED : YELLOW;
}

static void print_pods(const struct job_view *view, bool colour, struct buffer *out)
{
    unsigned shown = view->pod_count < PODS_SHOWN_MAX ? view->pod_count : PODS_SHOWN_MAX;
    for (unsigned i = 0; i < shown; i++) {
        const struct pod_line *pod = &view->pods[i];
        buffer_format(out, "%s %lld  ", pod->role, (long long)pod->index);
        paint(out, colour, pod_colour(pod));
        buffer_format(out, "%-10.24s", pod->words);
        paint(out, colour, PLAIN DIM);
        buffer_format(out, " %.40s", pod->name);
        paint(out, colour, PLAIN);
        buffer_append_byte(out, '\n', NULL);
    }
    if (shown < view->pod_count)
        buffer_format(out, "and %u more pods\n", view->pod_count - shown);
}

void view_print_block(const struct job_view *view, unsigned width, bool colour, struct buffer *out)
{
    SCOPED_BUFFER lines = BUFFER_INIT(VIEW_PRINT_MAX);
    print_title(view, colour, &lines);
    print_bar(view, width, &lines);
    if (view->loss_count > 1) {
        view_print_curve(view, width / 2 < BAR_WIDTH_MAX ? width / 2 : BAR_WIDTH_MAX, &lines);
        buffer_append_byte(&lines, '\n', NULL);
    }
    print_figures(view, &lines);
    print_pods(view, colour, &lines);
    if (*view->doing && !job_view_over(view))
        buffer_format(&lines, "%s\n", view->doing);
    view_print_clipped(buffer_text(&lines), width, out);
}
