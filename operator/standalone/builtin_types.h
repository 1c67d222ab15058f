/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults and validates objects of Kubernetes' built-in types for the embedded control plane, limited to the fields that this control
 * plane and its clients depend on. Other fields are stored as given.
 */
#ifndef COXSWAIN_STANDALONE_BUILTIN_TYPES_H
#define COXSWAIN_STANDALONE_BUILTIN_TYPES_H

#include "operator/standalone/resource.h"

/* Sets default values, on create and update. */
void builtin_default(const struct resource *resource, struct json *object);
/* Sets the initial status and server-side fields of a new object: a pod is Pending and bound to the
 * node, a claim is Bound … */
void builtin_prepare_new(const struct resource *resource, struct json *object);
/* Appends a cause for each invalid field. `old` is NULL on create, and for status writes, which do
 * not change the spec. */
void builtin_check(const struct resource *resource, const struct json *object, const struct json *old,
                   struct json *causes);

#endif
