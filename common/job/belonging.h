/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that mean something only for some kinds of their object: `kernel` for
 * convolutions, `beta1` for AdamW. The column `only_for` of the table of fields says
 * which; object_type.told_by names the field that tells the kinds apart. Given with
 * another kind such a field would be ignored, so it is refused, by the CRD and by
 * the C code alike, unless it has the value that it would have by default: API servers
 * write defaults into every object.
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
