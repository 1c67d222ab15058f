/* SPDX-License-Identifier: Apache-2.0
 *
 * `epoch-<E>.json`: a chief was here. It is written twice. The claim comes first,
 * exclusively: from then on no older chief commits or removes anything. Once the
 * chief knows what it starts from, the record is replaced by one that names that
 * base; only then does it save. So a record that is only a claim belongs to a
 * chief that saved nothing.
 *
 * E counts within one directory. It is the chief's fencing epoch unless the
 * directory holds a higher number already (of another job, or of runs by hand,
 * whose epochs mean nothing to this job).
 */
#ifndef COXSWAIN_CHECKPOINT_EPOCH_RECORD_H
#define COXSWAIN_CHECKPOINT_EPOCH_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/checkpoint/checkpoint_name.h"

#define EPOCH_RECORD_BYTES_MAX 4096

enum epoch_record_state {
    EPOCH_CLAIMED, /* saved nothing */
    EPOCH_DECIDED, /* `base` says what it started from */
    EPOCH_DAMAGED, /* unreadable; only `epoch` is known */
};

struct epoch_record {
    enum epoch_record_state state;
    int64_t epoch;   /* in this directory's numbering */
    int64_t fencing; /* the chief's own epoch, comparable only within one job */
    int64_t attempt;
    char job_uid[64];            /* "" by hand */
    struct checkpoint_name base; /* step -1: from scratch */
};

/* The epoch in a record's file name; -1 when it is not one. */
int64_t epoch_record_name_parse(const char *name);

/* A record whose bytes are damaged is EPOCH_DAMAGED and no failure; ERROR_SYSTEM when the storage does not answer. */
int epoch_record_read(const char *directory, int64_t epoch, struct epoch_record *ret_record, struct error *error);

/* ERROR_INVALID with a sentence; for tests and fuzzing. */
int epoch_record_parse(const char *text, size_t length, struct epoch_record *ret_record, struct error *error);

/* ERROR_ALREADY_EXISTS when the number is taken. Durable on return. */
int epoch_record_create(const char *directory, const struct epoch_record *record, struct error *error);
/* Replaces one's own, in one step. Durable on return. */
int epoch_record_replace(const char *directory, const struct epoch_record *record, struct error *error);
int epoch_record_remove(const char *directory, int64_t epoch, struct error *error);

#endif
