/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills static defaults into JSON like the API server's structural defaulting: members given as null count as absent, absent members get
 * their default, and so do members inside objects and list elements that are present.
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
