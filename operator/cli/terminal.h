/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows a job's view on stdout: on a terminal as one block that is redrawn in place, with events as
 * lines above it; otherwise as plain lines only.
 */
#ifndef COXSWAIN_CLI_TERMINAL_H
#define COXSWAIN_CLI_TERMINAL_H

#include "operator/cli/job_view.h"

struct terminal {
    bool live; /* a terminal that takes escape sequences */
    bool colour;
    unsigned width;
    unsigned block_lines; /* of the block that stands there now */
    int64_t line_ms;      /* elsewhere: when the last step line was written */
    int64_t line_step;
};

void terminal_init(struct terminal *terminal);
/* Prints events that nobody has printed yet, and the block (or, now and then, a step line). */
void terminal_show(struct terminal *terminal, struct job_view *view, int64_t now_ms);
/* As before, and leaves the block where it stands. */
void terminal_keep(struct terminal *terminal, struct job_view *view, int64_t now_ms);
/* Removes the block, so that plain lines can follow. */
void terminal_clear(struct terminal *terminal);
/* Whole lines in place of those that were drawn last; elsewhere they just follow. */
void terminal_draw(struct terminal *terminal, const char *lines);
/* A single line that is written over by the next one: for a download. */
void terminal_progress(struct terminal *terminal, const char *text);

#endif
