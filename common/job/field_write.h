/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes C structs as JSON by the table of fields (fields.h), the reverse of fields_read. The operator writes the status of jobs and sweeps
 * with it, and the job document that workers get. Members that are unset or equal their default are left out.
 */
#ifndef COXSWAIN_JOB_FIELD_WRITE_H
#define COXSWAIN_JOB_FIELD_WRITE_H

#include "common/job/fields.h"
#include "common/json.h"

/* Sets in `object` every member that is given and differs from its default. Copies opaque values (FIELD_OPAQUE); leaves out volumes
 * (FIELD_VOLUME) and lists of scalars (FIELD_SCALAR_LIST). Members that `object` has already and that are not given stay. */
void fields_write(const struct object_type *type, const void *members, struct json *object);

#endif
