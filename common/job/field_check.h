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

/* `old`: what the object was before an update, for the rules that compare; else NULL. Members that the table does not
 * know are violations only with `refuse_unknown`: an API server prunes them. */
void fields_check(const struct object_type *type, const struct json *object, const struct json *old,
                  bool refuse_unknown, struct violations *violations);

#endif
