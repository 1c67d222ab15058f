/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the trials of a sweep as CSV or JSON for other programs, such as spreadsheets and data frames.
 * `cox sweep export` prints the result, and `cox run` writes the CSV to a file when a sweep ends. Does no
 * I/O.
 */
#ifndef COXSWAIN_CLI_SWEEP_EXPORT_H
#define COXSWAIN_CLI_SWEEP_EXPORT_H

#include "common/buffer.h"
#include "operator/cli/sweep_view.h"

/* Appends a header and a line for each trial, as RFC 4180 has it: trial, name, state, a column for each parameter by its whole name,
 * objective, seconds from the first pod to the end, best. What is unknown is empty. */
int sweep_export_csv(const struct sweep_view *view, struct buffer *out, struct error *error);
/* Appends a list of objects with the same members; the parameters are an object, and what is unknown is null. */
int sweep_export_json(const struct sweep_view *view, struct buffer *out, struct error *error);

#endif
