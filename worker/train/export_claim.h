/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which chief may write an export if there is no checkpoint directory to decide it. Before
 * it begins, each chief leaves an incarnation record (incarnation_record.h) in the directory `.NAME.chiefs/`
 * beside the file. A chief that was cut off and replaced finds its successor's record there and
 * does not publish its file. The records are kept after the run, since such a chief may return much
 * later.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_CLAIM_H
#define COXSWAIN_TRAIN_EXPORT_CLAIM_H

#include <stdint.h>

#include "common/error.h"

struct export_claim {
    const char *job_uid;          /* NULL or "": started by hand, no successor: claims are neither made nor checked */
    int64_t attempt, incarnation; /* the pod's */
};

/* Leaves this chief's record durably. Call it before writing the file at `path`, and again before
 * writing it anew. ERROR_STALE: a newer chief of this job has left a record. A missing directory is
 * created. */
int export_claim_take(const char *path, const struct export_claim *claim, struct error *error);

/* Checks that this chief's record is still the newest. Call it before the file is renamed to
 * `path`. ERROR_STALE: a newer chief of this job has left a record; ERROR_CONFLICT: another job
 * has. */
int export_claim_check(const char *path, const struct export_claim *claim, struct error *error);

#endif
