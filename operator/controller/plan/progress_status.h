/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a status document into status.progress of the job. The document comes from the job's
 * chief, which the operator polls (progress_poll.h), or from what the script of another framework
 * logs (log_reader.h), sends (push_server.h) or reports at its end (script_progress.h). Values that
 * the document lacks keep those of the status before, except for the remaining time.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_STATUS_H
#define COXSWAIN_CONTROLLER_PROGRESS_STATUS_H

#include "common/contract/status_document.h"
#include "common/job/training_job.h"

/* Converts a document. Its strings are copied into `arena`. Members that it lacks keep their values from `before`, whose strings must
 * outlive the result; but the remaining time then becomes unknown, and the percentage is computed from the steps if both numbers are known.
 *
 * `is_whole`: a document with metrics names all of them, so metrics of `before` that it lacks are dropped. Otherwise they are kept, as is a
 * percentage that cannot be computed: a script of another framework reports some metrics more often than others. */
struct progress progress_from_document(const struct status_document *document, const struct progress *before,
                                       bool is_whole, struct arena *arena);

/* Returns whether `after` shows work that `before` does not: another step, epoch, percentage or metric. */
bool progress_moved(const struct progress *before, const struct progress *after);

/* Removes speed and remaining time, which are unknown while the crew does not train. */
void progress_rest(struct progress *progress);

/* Marks all steps as done, when the job has succeeded. Does nothing if their number is not known. */
void progress_complete(struct progress *progress);

#endif
