/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the JSON documents that the page of `cox ui` asks for, from the same functions that print for `cox get`, `cox why`,
 * `cox describe` and `cox sweep`. Does no I/O. Free the results with json_free.
 */
#ifndef COXSWAIN_CLI_UI_DOCUMENTS_H
#define COXSWAIN_CLI_UI_DOCUMENTS_H

#include "operator/cli/run_record.h"
#include "operator/cli/sweep_view.h"
#include "operator/cli/why.h"

/* One line of the list. Ages are left out, so that a line changes only when the object does: the page computes them from "created". */
struct json *ui_job_row(const struct json *job);
struct json *ui_sweep_row(const struct json *sweep);

/* Sets the score of a row: "SCORE", in words, and "score", by which the page sorts: the higher, the better. Sets only the words, "", if
 * there is none. */
void ui_set_score(struct json *row, const struct run_record *record);

/* Everything about one job but its curves and its logs. */
int ui_job_document(const struct why_input *input, struct json **ret_document, struct error *error);
/* A sweep with its trials. `object`: the TrainingSweep that `view` was made from. */
int ui_sweep_document(const struct json *object, const struct sweep_view *view, int64_t now_ms,
                      struct json **ret_document, struct error *error);

#endif
