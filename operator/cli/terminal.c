/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/terminal.h"

#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "operator/cli/view_print.h"

#define DEFAULT_WIDTH 80
#define LINE_INTERVAL_MS 2000
/* Where the chief's words begin after "chief: memory     ". */
#define EVENT_INDENT 18

static unsigned current_width(void)
{
    struct winsize size = {.ws_col = 0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : DEFAULT_WIDTH;
}

void terminal_init(struct terminal *terminal)
{
    const char *kind = getenv("TERM");
    *terminal = (struct terminal){.line_step = -1, .width = current_width()};
    terminal->live = isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
    terminal->colour = terminal->live && !getenv("NO_COLOR");
}

void terminal_clear(struct terminal *terminal)
{
    if (terminal->block_lines > 0)
        printf("\033[%uA\033[J", terminal->block_lines);
    terminal->block_lines = 0;
    fflush(stdout);
}

void terminal_print_events(const struct terminal *terminal, struct buffer *events)
{
    SCOPED_BUFFER lines = BUFFER_INIT(2 * events->length + VIEW_EVENTS_MAX);
    view_print_wrapped(buffer_text(events), terminal->live ? terminal->width : UINT_MAX, EVENT_INDENT, &lines);
    fputs(buffer_text(&lines), stdout);
    buffer_clear(events);
}

unsigned terminal_width(struct terminal *terminal)
{
    return terminal->width = current_width();
}

/* Each line wipes what stood there before, so that nothing flickers. */
static unsigned print_over(const char *text)
{
    unsigned lines = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1, lines++)
        printf("%.*s\033[K\n", (int)(end - text), text);
    fputs("\033[J", stdout);
    return lines;
}

void terminal_draw(struct terminal *terminal, const char *lines)
{
    terminal->width = current_width();
    if (terminal->block_lines > 0)
        printf("\033[%uA", terminal->block_lines);
    if (terminal->live)
        terminal->block_lines = print_over(lines);
    else
        fputs(lines, stdout);
    fflush(stdout);
}

static void show_block(struct terminal *terminal, struct job_view *view)
{
    SCOPED_BUFFER block = BUFFER_INIT(VIEW_PRINT_MAX);
    terminal->width = current_width();
    if (view->events.length > 0)
        terminal_clear(terminal);
    terminal_print_events(terminal, &view->events);
    buffer_append_byte(&block, '\n', NULL);
    view_print_block(view, terminal->width, terminal->colour, &block);
    terminal_draw(terminal, buffer_text(&block));
}

bool terminal_line_due(struct terminal *terminal, int64_t step, bool last, int64_t now_ms)
{
    if (step == terminal->line_step || (!last && now_ms - terminal->line_ms < LINE_INTERVAL_MS))
        return false;
    terminal->line_ms = now_ms;
    terminal->line_step = step;
    return true;
}

/* The line of the last step waits for the end, since the last evaluation comes after that step. */
static void show_line(struct terminal *terminal, struct job_view *view, bool end, int64_t now_ms)
{
    bool last = view->step == view->total_steps;
    terminal_print_events(terminal, &view->events);
    if (view->step >= 0 && (end || !last) && terminal_line_due(terminal, view->step, last, now_ms)) {
        SCOPED_BUFFER line = BUFFER_INIT(VIEW_PRINT_MAX);
        view_print_line(view, &line);
        puts(buffer_text(&line));
    }
    fflush(stdout);
}

void terminal_show(struct terminal *terminal, struct job_view *view, int64_t now_ms)
{
    if (terminal->live)
        show_block(terminal, view);
    else
        show_line(terminal, view, false, now_ms);
}

void terminal_keep(struct terminal *terminal, struct job_view *view, int64_t now_ms)
{
    if (terminal->live)
        show_block(terminal, view);
    else
        show_line(terminal, view, true, now_ms);
    terminal->block_lines = 0;
}

void terminal_progress(struct terminal *terminal, const char *text)
{
    if (!terminal->live)
        return;
    terminal_clear(terminal);
    puts(text);
    terminal->block_lines = 1;
    fflush(stdout);
}
