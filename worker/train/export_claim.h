/* SPDX-License-Identifier: Apache-2.0
 *
 * Prevents a replaced chief from overwriting its successor's export in a job that has no checkpoint
 * directory. Jobs with one use the checkpoint store for this. export.c calls these functions.
 *
 * Before it writes, each chief leaves a record of itself (incarnation_record.h) in the directory
 * `.NAME.chiefs/` beside the file. Before it renames the finished file, it looks for the record of
 * a newer chief; if there is one, the export fails with ERROR_STALE. The records are kept after the
 * run, since a chief that was cut off may return much later. If the export goes to a bucket, the records are objects there, and the
 * directory is a local copy.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_CLAIM_H
#define COXSWAIN_TRAIN_EXPORT_CLAIM_H

#include <stdint.h>

#include "common/error.h"

struct export_objects;

struct export_claim {
    const char *job_uid;            /* NULL or "": started by hand, no successor: claims are neither made nor checked */
    int64_t attempt, incarnation;   /* the pod's */
    struct export_objects *objects; /* NULL: no bucket */
};

/* Writes this chief's record durably, and creates its directory if it is missing. Call it each time
 * before the file at `path` is written. ERROR_STALE: a newer chief of this job has written a record. */
int export_claim_take(const char *path, const struct export_claim *claim, struct error *error);

/* Checks that this chief's record is still the newest. Call it before the file is renamed to
 * `path`. ERROR_STALE: a newer chief of this job has left a record; ERROR_CONFLICT: another job
 * has. */
int export_claim_check(const char *path, const struct export_claim *claim, struct error *error);

#endif
