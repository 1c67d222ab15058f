/* SPDX-License-Identifier: Apache-2.0
 *
 * Structural schemas (openAPIV3Schema of a CustomResourceDefinition): defaults,
 * pruning and validation, generic. What is understood: type, properties,
 * additionalProperties, items, required, enum, minimum, maximum (exclusive too),
 * multipleOf, minLength, maxLength, pattern, format (int32, int64, date-time),
 * minItems, maxItems, uniqueItems, minProperties, maxProperties, nullable,
 * default, x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string,
 * x-kubernetes-embedded-resource, x-kubernetes-list-type map and set. CEL rules
 * are not evaluated: their C twins are (see admission.c).
 */
#ifndef COXSWAIN_STANDALONE_SCHEMA_H
#define COXSWAIN_STANDALONE_SCHEMA_H

#include "common/json.h"

/* Fills in defaults, in place. */
void schema_default(const struct json *schema, struct json *value);

/* Removes fields that the schema does not know. Each is named in `unknown`, an array of strings ("spec.strategie"). */
void schema_prune(const struct json *schema, struct json *value, struct json *unknown);

/* Appends a cause for everything that is wrong (see refusal.h). */
void schema_validate(const struct json *schema, const struct json *value, struct json *causes);

#endif
