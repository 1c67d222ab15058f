/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks fields that apply only to some kinds of object, such as `kernel`, only for layers of type Conv2D, or `beta1`, only for the
 * optimizer AdamW. In the table of fields (fields.h), `only_for` lists the kinds that a field is for, and the object type's `kind_field`
 * names the field whose value is the kind of an object. A field that does not apply would have no effect; it is therefore refused by the C
 * code and, except for decimals, by a CEL rule of the CRD. The field is allowed with its default value, because API servers write defaults
 * into every object.
 */
#ifndef COXSWAIN_JOB_BELONGING_H
#define COXSWAIN_JOB_BELONGING_H

#include "common/buffer.h"
#include "common/job/fields.h"
#include "common/json.h"

#define BELONGING_MESSAGE_MAX 512
#define BELONGING_CEL_MAX 1024

/* A field that applies only to some kinds of an object. It is a member of the object itself, or of an object in it, such as train.files. */
struct belonging {
    const struct object_type *type; /* of the object that has the kind */
    const struct field *inside;     /* the member of the object that has the field; NULL: the object itself has it */
    const struct field *field;
};

/* Calls `visit` for each such field of objects of this type. */
typedef void belonging_visit(void *context, const struct belonging *belonging);
void belongings_visit(const struct object_type *type, belonging_visit *visit, void *context);

/* Returns whether the field is absent, has its default value, or applies to the object's kind. Fill in the defaults first
 * (field_default.h). */
bool belonging_holds(const struct belonging *belonging, const struct json *object);
/* Appends the same test as a CEL expression over `self`, for the CRD. Appends nothing for decimals, which CEL cannot read (crd.c). */
void belonging_cel(const struct belonging *belonging, struct buffer *cel);
/* Appends the field's path in the object: "kernel" or "train.files". */
void belonging_path(const struct belonging *belonging, struct buffer *path);
/* Appends the message for a field that does not apply: "is for type Conv2D only and would be ignored here; leave it out". */
void belonging_message(const struct belonging *belonging, struct buffer *message);

#endif
