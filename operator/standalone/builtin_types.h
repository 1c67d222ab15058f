/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults and rules of the built-in types, as far as this control plane and
 * its clients depend on them. What is not checked here is stored as given.
 */
#ifndef COXSWAIN_STANDALONE_BUILTIN_TYPES_H
#define COXSWAIN_STANDALONE_BUILTIN_TYPES_H

#include "operator/standalone/resource.h"

/* Static defaults, on create and update. */
void builtin_default(const struct resource *resource, struct json *object);
/* Status and server-side fields of a new object: a pod is Pending and bound to the one node, a claim is Bound … */
void builtin_prepare_new(const struct resource *resource, struct json *object);
/* Appends causes. `old` NULL on create (and for status writes, which leave the spec alone). */
void builtin_check(const struct resource *resource, const struct json *object, const struct json *old,
                   struct json *causes);

#endif
