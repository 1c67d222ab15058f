/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows the progress of a job or sweep on stdout, for `cox run`, `cox demo` and `cox top`. On a terminal, a
 * block of lines is redrawn in place, and events are printed as lines above it. Otherwise, as in a file or a
 * CI log, only plain lines are printed. Before other output to stdout or stderr, call terminal_clear or
 * terminal_keep.
 */
#ifndef COXSWAIN_CLI_TERMINAL_H
#define COXSWAIN_CLI_TERMINAL_H

#include "operator/cli/job_view.h"

struct terminal {
    bool live; /* a terminal that takes escape sequences */
    bool colour;
    unsigned width;
    unsigned block_lines; /* of the block on the screen now */
    int64_t line_ms;      /* not live: when the last step line was printed */
    int64_t line_step;
};

/* Detects what stdout is: live, coloured (unless NO_COLOR is set), how wide. */
void terminal_init(struct terminal *terminal);
/* Prints the view's events and removes them from the view, then redraws the block; if not live,
 * prints a step line at intervals instead, but not that of the last step. */
void terminal_show(struct terminal *terminal, struct job_view *view, int64_t now_ms);
/* Shows the view for the last time, as terminal_show does: the block will not be overwritten by later output; if not live, the line of the
 * last step is printed. */
void terminal_keep(struct terminal *terminal, struct job_view *view, int64_t now_ms);
/* Prints whole lines above the block, which must have been removed, and removes them from `events`. */
void terminal_print_events(const struct terminal *terminal, struct buffer *events);
/* For output that is not live: returns whether a line about `step` is due, because the step is new and the last line is old or the
 * step is the `last`; if so, notes that it is printed now. */
bool terminal_line_due(struct terminal *terminal, int64_t step, bool last, int64_t now_ms);
/* Asks again how wide the terminal is. */
unsigned terminal_width(struct terminal *terminal);
/* Removes the block, so that plain lines can follow. */
void terminal_clear(struct terminal *terminal);
/* Prints `lines` over the block that was drawn last; if not live, prints them below. */
void terminal_draw(struct terminal *terminal, const char *lines);
/* Prints a single line that the next one overwrites, such as a download's progress. */
void terminal_progress(struct terminal *terminal, const char *text);

#endif
