/* SPDX-License-Identifier: Apache-2.0
 *
 * Static defaults, filled into JSON as the API server's structural defaulting
 * does: members given as null count as absent; absent members get their default;
 * what is inside present objects and list elements likewise.
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
