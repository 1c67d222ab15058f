/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembers which fields of a job's status the API server has dropped, so that the controller does
 * not write them again at every reconcile. The API server silently drops fields that its
 * CustomResourceDefinition of TrainingJob does not have yet, and a patch of only such fields leaves
 * the object's resourceVersion unchanged. The controller then does not repeat that patch for five
 * minutes; after that it tries once more, in case the definition has been updated. Sweeps use only
 * dropped_fields_in_vain, the test for such a patch.
 */
#ifndef COXSWAIN_CONTROLLER_DROPPED_FIELDS_H
#define COXSWAIN_CONTROLLER_DROPPED_FIELDS_H

#include "common/job/training_job.h"

/* The dropped fields of one job. Zeroed: none. Release with dropped_fields_clear. */
struct dropped_fields {
    struct json *patch; /* the status of the last patch that changed nothing; NULL: none */
    int64_t retry_ms;   /* when to try it again */
    bool named;         /* dropped_fields_note has returned the fields' names */
};

/* Returns whether `patch` (status_patch.h) changed nothing: the object's resourceVersion after it,
 * `version`, is the one that the patch required. */
bool dropped_fields_in_vain(const struct json *patch, const char *version);
/* Notes a patch that changed nothing. The first time it returns the names of its fields, "status.a,
 * status.b" (free with free()), for an event; later times NULL. */
char *dropped_fields_note(struct dropped_fields *dropped, const struct json *patch, int64_t now_ms);
/* Returns whether writing `after` would only repeat the dropped patch, and the time to retry it has
 * not come. */
bool dropped_fields_cover(const struct dropped_fields *dropped, const struct training_job *job,
                          const struct job_status *after, int64_t now_ms);
void dropped_fields_clear(struct dropped_fields *dropped);

#endif
