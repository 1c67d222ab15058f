/* SPDX-License-Identifier: Apache-2.0
 *
 * What may not change after creation: every field but those that the table marks
 * FIELD_MUTABLE. (That workers may change only in elastic jobs is a rule.)
 */
#ifndef COXSWAIN_JOB_IMMUTABILITY_H
#define COXSWAIN_JOB_IMMUTABILITY_H

#include "common/job/fields.h"
#include "common/job/violations.h"

/* What is left to do then. */
#define IMMUTABLE_REMEDY "delete the job and create it anew"
#define IMMUTABLE_MESSAGE "is immutable; " IMMUTABLE_REMEDY

/* Both with defaults filled in. */
void immutability_check(const struct object_type *type, const struct json *object, const struct json *old,
                        struct violations *violations);

#endif
