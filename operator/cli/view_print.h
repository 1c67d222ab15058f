/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's view as text: the block that a terminal refreshes, the single line for
 * everything else, the curve of the loss, the last words. Pure; at most `width`
 * columns (not bytes).
 */
#ifndef COXSWAIN_CLI_VIEW_PRINT_H
#define COXSWAIN_CLI_VIEW_PRINT_H

#include "common/buffer.h"
#include "operator/cli/job_view.h"

#define VIEW_PRINT_MAX (64 * 1024)

/* Several whole lines, none wider than `width`. `colour`: with ANSI attributes. */
void view_print_block(const struct job_view *view, unsigned width, bool colour, struct buffer *out);
/* "step 620/1060  58 %  loss 0.0832  20,812 examples/s  4s left" without a newline. */
void view_print_line(const struct job_view *view, struct buffer *out);
/* The losses so far as one line of blocks, at most `width` of them. */
void view_print_curve(const struct job_view *view, unsigned width, struct buffer *out);
/* The same of any losses. */
void view_print_losses(const double *losses, unsigned count, unsigned width, struct buffer *out);
/* Lines, each cut to `width` columns: what the terminal would break cannot be drawn over. */
void view_print_clipped(const char *lines, unsigned width, struct buffer *out);
/* Lines broken at spaces, so that none is wider than `width`; what is broken off stands `indent` columns in. */
void view_print_wrapped(const char *lines, unsigned width, unsigned indent, struct buffer *out);
/* "1,234,567" */
void view_print_number(int64_t number, struct buffer *out);

#endif
