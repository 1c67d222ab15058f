/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates a TrainingJob, a TrainingSweep or a job document, as JSON, by the table of fields (fields.h): types, bounds, enum words, string
 * formats, required members and unique list keys. If all members of an object are valid, the rules about several of its fields (rules.h)
 * are checked, too. Fill in the defaults first (field_default.h).
 */
#ifndef COXSWAIN_JOB_FIELD_CHECK_H
#define COXSWAIN_JOB_FIELD_CHECK_H

#include "common/job/fields.h"
#include "common/job/violations.h"

/* Adds a violation for each invalid field of `object`. `old`: the object before an update, for the rules that compare the
 * two; NULL if there was none. `refuse_unknown`: members that the table does not have are violations; otherwise they are
 * ignored, because an API server removes them. */
void fields_check(const struct object_type *type, const struct json *object, const struct json *old,
                  bool refuse_unknown, struct violations *violations);

/* Adds a violation if a field that is no object does not take `value`; for a field that is a list of scalars: if none of its elements can
 * be `value`. */
void field_check_scalar(const struct field *field, const struct json *value, struct violations *violations);

#endif
