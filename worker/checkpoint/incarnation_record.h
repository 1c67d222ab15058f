/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes `incarnation-<N>.json`, the record by which a chief (the process that leads a job and
 * saves its checkpoints) keeps older chiefs of the same job from writing into the checkpoint directory.
 * lineage.h uses these records.
 *
 * A chief writes its record twice. First it creates the record exclusively, as a claim: from then on, no
 * older chief commits or removes anything. Once it knows which checkpoint it starts from, it replaces the
 * record by one that names this checkpoint (the base), and only then saves. A record that is still a claim
 * therefore belongs to a chief that has saved nothing.
 *
 * N is the chief's incarnation, a number that the operator raises before it creates pods. But if the
 * directory already has a record or checkpoint with that number or a higher one, N is the highest such number
 * plus 1. That happens when the directory was used by another job, or by runs without an operator, because
 * their incarnations do not compare with this job's. `fencing` always is the chief's own incarnation.
 */
#ifndef COXSWAIN_CHECKPOINT_INCARNATION_RECORD_H
#define COXSWAIN_CHECKPOINT_INCARNATION_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/checkpoint/checkpoint_name.h"

#define INCARNATION_RECORD_BYTES_MAX 4096

enum incarnation_record_state {
    INCARNATION_CLAIMED, /* the chief has saved nothing */
    INCARNATION_DECIDED, /* `base` is what the chief started from */
    INCARNATION_DAMAGED, /* unreadable; only `incarnation` is known */
};

struct incarnation_record {
    enum incarnation_record_state state;
    int64_t incarnation; /* in this directory's numbering */
    int64_t fencing;     /* the chief's own incarnation, comparable only within one job */
    int64_t attempt;
    char job_uid[64];            /* "" for a run without an operator */
    struct checkpoint_name base; /* step -1: the initial weights */
};

/* Returns the incarnation in a record's file name, -1 if it is not such a name. */
int64_t incarnation_record_name_parse(const char *name);

/* Reads a record. If its bytes are damaged, succeeds with INCARNATION_DAMAGED. ERROR_NOT_FOUND if there
 * is none, ERROR_SYSTEM if the storage fails. */
int incarnation_record_read(const char *directory, int64_t incarnation, struct incarnation_record *ret_record,
                            struct error *error);

/* Parses a record's text. ERROR_CORRUPT if the digest is wrong, ERROR_INVALID if a field is. */
int incarnation_record_parse(const char *text, size_t length, struct incarnation_record *ret_record,
                             struct error *error);

/* Creates a record. ERROR_ALREADY_EXISTS if the incarnation is taken. Durable on return. */
int incarnation_record_create(const char *directory, const struct incarnation_record *record, struct error *error);
/* Replaces this chief's own record atomically. Durable on return. */
int incarnation_record_replace(const char *directory, const struct incarnation_record *record, struct error *error);
int incarnation_record_remove(const char *directory, int64_t incarnation, struct error *error);

#endif
