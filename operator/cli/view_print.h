/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a job_view (job_view.h) as text for `cox run` and `cox top`: the block that a terminal refreshes,
 * the single line that is printed where there is no terminal, and the curve of the loss. Widths are in
 * columns, not bytes. Does no I/O: the text is appended to a buffer.
 */
#ifndef COXSWAIN_CLI_VIEW_PRINT_H
#define COXSWAIN_CLI_VIEW_PRINT_H

#include "common/buffer.h"
#include "operator/cli/job_view.h"

#define VIEW_PRINT_MAX (64 * 1024)

/* Appends several whole lines, none wider than `width`. `colour`: with ANSI attributes. */
void view_print_block(const struct job_view *view, unsigned width, bool colour, struct buffer *out);
/* Appends "step 620/1060  58 %  loss 0.0832  20,812 examples/s  4s left" without a newline. */
void view_print_line(const struct job_view *view, struct buffer *out);
/* Appends the curve of the losses so far: at most `width` block characters, on one line. */
void view_print_curve(const struct job_view *view, unsigned width, struct buffer *out);
/* Appends the curve of the given losses. */
void view_print_losses(const double *losses, unsigned count, unsigned width, struct buffer *out);
/* Appends lines, each cut to `width` columns. A line that the terminal wraps could not be overwritten at the next refresh. */
void view_print_clipped(const char *lines, unsigned width, struct buffer *out);
/* Appends lines, wrapped at spaces so that none is wider than `width`; continuation lines are indented by `indent` columns. */
void view_print_wrapped(const char *lines, unsigned width, unsigned indent, struct buffer *out);
/* Appends a number with thousands separators: "1,234,567". */
void view_print_number(int64_t number, struct buffer *out);

#endif
