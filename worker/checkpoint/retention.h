/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes from a checkpoint directory. The newest `keep` of the line of descent
 * that are whole stay; a checkpoint is only removed when that many whole ones are
 * newer. Then strays of older chiefs, which nobody loads, and records that no line
 * needs any longer go as well. Checkpoints verified once in this process are not
 * read again.
 */
#ifndef COXSWAIN_CHECKPOINT_RETENTION_H
#define COXSWAIN_CHECKPOINT_RETENTION_H

#include "worker/checkpoint/lineage.h"

/* What this process has seen to be whole. Zero-initialised; release when done. */
struct verified_set {
    struct checkpoint_name *names;
    unsigned count;
};
void verified_set_add(struct verified_set *set, const struct checkpoint_name *name);
void verified_set_release(struct verified_set *set);

/* Does nothing (ERROR_STALE, ERROR_CONFLICT) when `own` is no longer the newest record. */
int retention_apply(const char *directory, const struct epoch_record *own, int64_t keep, struct verified_set *verified,
                    struct error *error);

#endif
