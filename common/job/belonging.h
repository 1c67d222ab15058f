/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks fields that apply only to some kinds of object, such as `kernel`, only for layers of type Conv2D, or `beta1`, only for the
 * optimizer AdamW. In the table of fields (fields.h), `only_for` lists the kinds that a field is for, and the object type's `told_by` names
 * the field that says of which kind an object is. A field that does not apply would have no effect; it is therefore refused by the C code
 * and, except for decimals, by a CEL rule of the CRD. The field is allowed with its default value, because API servers write defaults into
 * every object.
 */
#ifndef COXSWAIN_JOB_BELONGING_H
#define COXSWAIN_JOB_BELONGING_H

#include "common/buffer.h"
#include "common/job/fields.h"
#include "common/json.h"

#define BELONGING_MESSAGE_MAX 512
#define BELONGING_CEL_MAX 1024

/* A field of an object that its kind judges: its own, or one of an object inside that has no kinds itself. */
struct belonging {
    const struct object_type *type;
    const struct field *inside; /* NULL: the object's own */
    const struct field *field;
};

/* Calls `visit` for each such field of `type`; nothing for types whose fields are for all kinds. */
typedef void belonging_visit(void *context, const struct belonging *belonging);
void belongings_visit(const struct object_type *type, belonging_visit *visit, void *context);

/* Defaults must have been filled in before. */
bool belonging_holds(const struct belonging *belonging, const struct json *object);
/* The same over `self`, for the CRD; nothing for decimals, which CEL cannot read (crd.c). */
void belonging_cel(const struct belonging *belonging, struct buffer *cel);
/* "kernel", or "train.files". */
void belonging_path(const struct belonging *belonging, struct buffer *path);
/* "is for type Conv2D only; leave it out". */
void belonging_message(const struct belonging *belonging, struct buffer *message);

#endif
