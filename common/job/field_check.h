/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates JSON by the table of fields: types, bounds, words, forms, required members, unique list keys, and the rules (rules.h) of each
 * object whose own members are valid. Defaults must have been filled in before.
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
