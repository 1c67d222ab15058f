/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoints a chief may start from: its line of descent. It leads from the
 * newest chief that saved something to the checkpoint that chief started from, to
 * the chief that wrote that one, and so on. What a superseded chief commits later
 * is in nobody's line and is never loaded, however large its step is.
 */
#ifndef COXSWAIN_CHECKPOINT_LINEAGE_H
#define COXSWAIN_CHECKPOINT_LINEAGE_H

#include "worker/checkpoint/epoch_record.h"

struct lineage {
    struct checkpoint_name *candidates; /* committed checkpoints of the line, newest first */
    unsigned candidate_count;
    struct checkpoint_name *strays; /* committed checkpoints of no line */
    unsigned stray_count;
    struct epoch_record *records; /* newest first */
    unsigned record_count;
};

/* Reads records and directory names; a directory that does not exist is an empty lineage. Digests of checkpoints are not
 * checked here. Where a record is damaged or lost, the line goes on with the next older chief. */
int lineage_read(const char *directory, struct lineage *ret_lineage, struct error *error);
void lineage_release(struct lineage *lineage);

/* Takes the directory over for a new chief with fencing epoch `fencing`: from now on no older one commits or removes
 * anything. ERROR_STALE when a chief of the same job with the same or a higher fencing epoch was here. */
int lineage_claim(const char *directory, const char *job_uid, int64_t attempt, int64_t fencing,
                  struct epoch_record *ret_claim, struct error *error);

/* Says what the chief starts from (NULL: from scratch). Nothing may be saved before. */
int lineage_decide(const char *directory, struct epoch_record *claim, const struct checkpoint_name *base,
                   struct error *error);

/* ERROR_STALE when a newer chief of the same job has claimed the directory; ERROR_CONFLICT, with a sentence, when another job
 * has. */
int lineage_check_current(const char *directory, const struct epoch_record *own, struct error *error);
/* The same from what was read of the directory. */
int lineage_check(const struct lineage *lineage, const struct epoch_record *own, const char *directory,
                  struct error *error);

#endif
