/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies the structural schema (openAPIV3Schema) of a CustomResourceDefinition when the embedded API server admits a custom object: sets
 * defaults, prunes and validates. Supported keywords: type, properties, additionalProperties, items, required, enum, minimum, maximum
 * (exclusive too), multipleOf, minLength, maxLength, pattern, format (int32, int64, date-time), minItems, maxItems, uniqueItems,
 * minProperties, maxProperties, nullable, default, x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string,
 * x-kubernetes-embedded-resource, x-kubernetes-list-type map and set. CEL rules are not evaluated; admission.c calls equivalent C functions
 * for TrainingJobs and TrainingSweeps.
 */
#ifndef COXSWAIN_STANDALONE_SCHEMA_H
#define COXSWAIN_STANDALONE_SCHEMA_H

#include "common/json.h"

/* Sets defaults, in place. */
void schema_default(const struct json *schema, struct json *value);

/* Removes unknown fields, in place, and appends the path of each ("spec.strategie") to `unknown`,
 * an array of strings. */
void schema_prune(const struct json *schema, struct json *value, struct json *unknown);

/* Appends a cause (refusal.h) for each violation of the schema. */
void schema_validate(const struct json *schema, const struct json *value, struct json *causes);

#endif
