/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets defaults in an object and validates it before the embedded control plane stores it. Admission checks names and labels, the fields of
 * built-in types that this control plane depends on, and the schema of custom types. TrainingJobs and TrainingSweeps are checked by C
 * functions that are equivalent to the CEL rules a real API server evaluates. An invalid object is refused with all causes.
 */
#ifndef COXSWAIN_STANDALONE_ADMISSION_H
#define COXSWAIN_STANDALONE_ADMISSION_H

#include "operator/standalone/registry_write.h"

/* Sets defaults and prunes unknown fields, in place. Unknown fields are warned of, refused or
 * ignored as `write->field_validation` says. An invalid object is refused with all causes. `old` is
 * the stored object on an update, NULL on a create. */
struct json *admission_check(const struct write *write, struct json *object, const struct json *old);

/* Sets the initial status and the fields that the server fills in of a new object of a built-in
 * type. */
void admission_prepare_new(const struct resource *resource, struct json *object);

#endif
