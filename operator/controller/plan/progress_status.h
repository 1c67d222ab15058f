/* SPDX-License-Identifier: Apache-2.0
 *
 * From a worker's status document to status.progress.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_STATUS_H
#define COXSWAIN_CONTROLLER_PROGRESS_STATUS_H

#include "common/contract/status_document.h"
#include "common/job/training_job.h"

/* Everything unknown. */
struct progress progress_none(void);

/* Strings go to `arena`. What the document leaves out keeps the value of `before`. */
struct progress progress_from_document(const struct status_document *document, const struct progress *before,
                                       struct arena *arena);

/* While the crew does not work, nobody knows how fast it does, nor how long it will take. */
void progress_rest(struct progress *progress);

/* At a job's success all steps are done. */
void progress_complete(struct progress *progress);

#endif
