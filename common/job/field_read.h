/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JSON into structs by the table of fields. Reading cannot fail: a member that is absent, of another type or beyond its list's room
 * stays unset, so that an unchecked status is safe to read. fields_check validates a spec.
 */
#ifndef COXSWAIN_JOB_FIELD_READ_H
#define COXSWAIN_JOB_FIELD_READ_H

#include "common/job/arena.h"
#include "common/job/fields.h"
#include "common/json.h"

/* Where strings and lists go, and a JSON array that comes to own copies of opaque values (NULL: they are left out). */
struct field_reader {
    struct arena *arena;
    struct json *opaque;
};

/* Sets every member that the table knows to "unset": FIELD_UNSET, DECIMAL_UNSET, NULL, 0, false. */
void fields_unset(const struct object_type *type, void *members);

/* Reads what `object` holds over that. `object` is not needed afterwards. */
void fields_read(const struct object_type *type, const struct json *object, void *members,
                 const struct field_reader *reader);

#endif
