/* SPDX-License-Identifier: Apache-2.0
 *
 * What an object must pass before it is stored: names and labels, defaults and
 * rules of the built-in types as far as this control plane depends on them, the
 * schema of a custom type, and, in the place where a real API server evaluates
 * the TrainingJob's CEL rules, their C twins.
 */
#ifndef COXSWAIN_STANDALONE_ADMISSION_H
#define COXSWAIN_STANDALONE_ADMISSION_H

#include "operator/standalone/registry_write.h"

/* Defaults the object in place, prunes unknown fields (warnings, or a refusal, as `write` asks) and refuses it with all
 * causes when it is wrong. `old` is the stored object on an update. */
struct json *admission_check(const struct write *write, struct json *object, const struct json *old);

/* The status and server-side fields that a new object of a built-in type starts with. */
void admission_prepare_new(const struct resource *resource, struct json *object);

#endif
