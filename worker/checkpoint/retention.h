/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes old checkpoints after a commit, for checkpoint.c. Of the checkpoints that the job may be restored
 * from (the line of descent, lineage.h), the newest `keep` whole ones stay; a checkpoint is removed only if
 * that many whole ones are newer. If there are that many, two more things are removed: checkpoints of earlier
 * incarnations outside the line, which are never loaded, and the records of incarnations before that of the
 * oldest checkpoint that stays.
 */
#ifndef COXSWAIN_CHECKPOINT_RETENTION_H
#define COXSWAIN_CHECKPOINT_RETENTION_H

#include "worker/checkpoint/lineage.h"

/* The checkpoints that this process has verified already and need not read again. Zero-initialised;
 * release it when done. */
struct verified_set {
    struct checkpoint_name *names;
    unsigned count;
};
void verified_set_add(struct verified_set *set, const struct checkpoint_name *name);
void verified_set_release(struct verified_set *set);

/* Removes old checkpoints. If `own` is no longer the newest record, fails with ERROR_STALE or
 * ERROR_CONFLICT and removes nothing. */
int retention_apply(const char *directory, const struct incarnation_record *own, int64_t keep,
                    struct verified_set *verified, struct error *error);

#endif
