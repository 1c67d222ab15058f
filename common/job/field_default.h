/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the static defaults of the table of fields (fields.h) into JSON, as an API server does for a structural schema. Members given as
 * null count as absent. Absent members get their default, also in objects and list elements that are present.
 */
#ifndef COXSWAIN_JOB_FIELD_DEFAULT_H
#define COXSWAIN_JOB_FIELD_DEFAULT_H

#include "common/job/fields.h"
#include "common/json.h"

/* In place; values of another type than the table's are left as they are, for the check to name. */
void fields_default(const struct object_type *type, struct json *object);

/* The field's default as a JSON value, NULL when it has none. */
struct json *field_default_value(const struct field *field);

#endif
