/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds fields that an update changes although they are immutable. A field is immutable unless the
 * table of fields (fields.h) marks it FIELD_MUTABLE, or FIELD_MUTABLE_SUSPENDED: then it may change
 * while the job is suspended and has no pods. An object is compared as a whole; if it is marked
 * FIELD_MUTABLE_INSIDE, each of its fields is checked by that field's own mark.
 *
 * rules.c has the conditions that a mark cannot express, such as that workers.replicas may change only
 * in elastic jobs.
 */
#ifndef COXSWAIN_JOB_IMMUTABILITY_H
#define COXSWAIN_JOB_IMMUTABILITY_H

#include "common/job/fields.h"
#include "common/job/violations.h"

/* Messages, with what the user can do instead. */
#define IMMUTABLE_REMEDY "delete the job and create it anew"
#define IMMUTABLE_MESSAGE "is immutable; " IMMUTABLE_REMEDY
#define IMMUTABLE_UNLESS_SUSPENDED                                                                                     \
    "may change only while the job is suspended: set suspend to true and wait for the condition Suspended, "           \
    "or " IMMUTABLE_REMEDY

/* `object` and `old` need their defaults filled in. `suspended`: the job of `old` is suspended and has no pods. Adds a violation for each
 * immutable field that differs. */
void immutability_check(const struct object_type *type, const struct json *object, const struct json *old,
                        bool suspended, struct violations *violations);

#endif
