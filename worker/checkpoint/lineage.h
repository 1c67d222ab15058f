/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the checkpoints that a job may be restored from, and claims the checkpoint directory for one process
 * at a time. The chief, the process that leads a job, saves its checkpoints; when its pod is replaced, the
 * successor is a new chief, and the superseded one may still be running.
 *
 * Only checkpoints in the line of descent are loaded. The line leads from the newest chief that saved
 * something to the checkpoint that this chief started from, to the chief that wrote that checkpoint, and so
 * on. A checkpoint that a superseded chief commits later is in no line and is never loaded, however high its
 * step is.
 */
#ifndef COXSWAIN_CHECKPOINT_LINEAGE_H
#define COXSWAIN_CHECKPOINT_LINEAGE_H

#include "worker/checkpoint/incarnation_record.h"

struct lineage {
    struct checkpoint_name *candidates; /* committed checkpoints of the line, newest first */
    unsigned candidate_count;
    struct checkpoint_name *strays; /* committed checkpoints outside the line */
    unsigned stray_count;
    struct incarnation_record *records; /* newest first */
    unsigned record_count;
};

/* Reads the records and the names of the checkpoints, but does not verify the checkpoints. A
 * directory that does not exist gives an empty lineage. Where a record is damaged or missing, the
 * line continues with the next older chief. */
int lineage_read(const char *directory, struct lineage *ret_lineage, struct error *error);
void lineage_release(struct lineage *lineage);

/* Claims the directory for a new chief with incarnation `fencing`: from now on, no older chief
 * commits or removes anything. ERROR_STALE if a chief of the same job with the same or a higher
 * fencing incarnation has claimed it. */
int lineage_claim(const char *directory, const char *job_uid, int64_t attempt, int64_t fencing,
                  struct incarnation_record *ret_claim, struct error *error);

/* Records which checkpoint the chief starts from (NULL: none). Nothing may be saved before. */
int lineage_decide(const char *directory, struct incarnation_record *claim, const struct checkpoint_name *base,
                   struct error *error);

/* Checks that `own` is still the newest record in the directory. ERROR_STALE if a newer chief of
 * the same job has claimed it, ERROR_CONFLICT if another job has. */
int lineage_check_current(const char *directory, const struct incarnation_record *own, struct error *error);
/* Does the same check on a lineage that has been read already. */
int lineage_check(const struct lineage *lineage, const struct incarnation_record *own, const char *directory,
                  struct error *error);

#endif
