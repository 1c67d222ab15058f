/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JSON into C structs by the table of fields (fields.h). Reading cannot fail: a member stays unset if it is absent or has another
 * type, and a list loses the elements for which there is no room. An unchecked status is therefore safe to read; a spec must be validated
 * with fields_check.
 */
#ifndef COXSWAIN_JOB_FIELD_READ_H
#define COXSWAIN_JOB_FIELD_READ_H

#include "common/job/arena.h"
#include "common/job/fields.h"
#include "common/json.h"

/* Memory for what is read: strings and lists are allocated in `arena`; copies of opaque values are appended to the JSON array `opaque`,
 * which owns them (NULL: opaque values are not read). */
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
