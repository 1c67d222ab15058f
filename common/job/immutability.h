/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks an update of an object for changes of fields that may not change after creation. Every
 * field is immutable except those that the table of fields (fields.h) marks FIELD_MUTABLE and,
 * while the job is suspended and has no pods, those that it marks FIELD_MUTABLE_SUSPENDED.
 * FIELD_MUTABLE_INSIDE applies this to the fields of an object one by one.
 *
 * rules.c has the rules for which a mark is not enough, such as that workers.replicas may change
 * only in elastic jobs.
 */
#ifndef COXSWAIN_JOB_IMMUTABILITY_H
#define COXSWAIN_JOB_IMMUTABILITY_H

#include "common/job/fields.h"
#include "common/job/violations.h"

/* The remedy if a field may not change. */
#define IMMUTABLE_REMEDY "delete the job and create it anew"
#define IMMUTABLE_MESSAGE "is immutable; " IMMUTABLE_REMEDY
#define IMMUTABLE_UNLESS_SUSPENDED                                                                                     \
    "may change only while the job is suspended: set suspend to true and wait for the condition Suspended, "           \
    "or " IMMUTABLE_REMEDY

/* Both with defaults filled in. `suspended`: `old` belongs to a job that is to have no pods and has none. */
void immutability_check(const struct object_type *type, const struct json *object, const struct json *old,
                        bool suspended, struct violations *violations);

#endif
