/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a TrainingSweep as text for `cox run` and `cox sweep`: the block that a terminal refreshes, the
 * single line that is printed where there is no terminal, and the tables of trials and of sweeps. Does no
 * I/O: the text is appended to a buffer.
 */
#ifndef COXSWAIN_CLI_SWEEP_PRINT_H
#define COXSWAIN_CLI_SWEEP_PRINT_H

#include "common/buffer.h"
#include "operator/cli/sweep_view.h"

/* Appends several whole lines, none wider than `width`: the counts, the best trial so far, and those that run. */
void sweep_print_block(const struct sweep_view *view, int64_t now_ms, unsigned width, struct buffer *out);
/* Appends "trials 5/12 done, 3 running, 1 failed  best validationLoss 0.012  2m left" without a newline. */
void sweep_print_line(const struct sweep_view *view, int64_t now_ms, struct buffer *out);
/* Appends a line that says how a trial ended, and with which values. */
void sweep_print_end(const struct training_sweep *sweep, const struct trial_line *line, struct buffer *out);
/* Appends a line that says what the sweep waits for, or how it ended, and then a line for each trial that failed or reports no
 * objective, up to ten. */
void sweep_print_why(const struct sweep_view *view, struct buffer *out);
/* Appends a header and a line for each trial: number, state, parameters, objective; the best is marked. */
void sweep_print_table(const struct sweep_view *view, struct buffer *out);
/* Appends a header and a line for each of the TrainingSweeps of a list, with the columns of `kubectl get`. */
void sweep_print_list(const struct json *sweeps, bool with_namespace, int64_t now_ms, struct buffer *out);
/* Returns the cells of a TrainingSweep in that list, by the titles of their columns. Free it with json_free. */
struct json *sweep_row(const struct json *sweep, int64_t now_ms);
/* Appends how the sweep ended, and the best trial with its parameters. */
void sweep_print_result(const struct training_sweep *sweep, struct buffer *out);

#endif
