/* SPDX-License-Identifier: Apache-2.0
 *
 * What the API server has dropped of a job's status, as it does with fields that its
 * definition of TrainingJob does not have yet: a write of nothing else leaves the
 * object as it was. The same would be written at each look, for ever, so it is
 * written again now and then only, in case the definition has come.
 */
#ifndef COXSWAIN_CONTROLLER_DROPPED_FIELDS_H
#define COXSWAIN_CONTROLLER_DROPPED_FIELDS_H

#include "common/job/training_job.h"

/* Zeroed: none. Of one job; release with dropped_fields_clear. */
struct dropped_fields {
    struct json *patch; /* status_patch's, that changed nothing; NULL: none did */
    int64_t retry_ms;
    bool told;
};

/* Whether `patch` (status_patch.h) was in vain, the object being of `version` after it. */
bool dropped_fields_in_vain(const struct json *patch, const char *version);
/* Such a one. Returns what it was about, "status.a, status.b", when that was not told yet, else NULL; free with free(). */
char *dropped_fields_note(struct dropped_fields *dropped, const struct json *patch, int64_t now_ms);
/* `after` differs from what the job has in what was dropped alone, and it is not time to try again. */
bool dropped_fields_cover(const struct dropped_fields *dropped, const struct training_job *job,
                          const struct job_status *after, int64_t now_ms);
void dropped_fields_clear(struct dropped_fields *dropped);

#endif
