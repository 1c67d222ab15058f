/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs into JSON, by the table of fields: fields_read the other way round.
 */
#ifndef COXSWAIN_JOB_FIELD_WRITE_H
#define COXSWAIN_JOB_FIELD_WRITE_H

#include "common/job/fields.h"
#include "common/json.h"

/* Sets in `object` every member that is given and differs from its default; opaque values are left out. */
void fields_write(const struct object_type *type, const void *members, struct json *object);

#endif
