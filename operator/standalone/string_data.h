/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates the data of ConfigMaps and Secrets before the embedded control plane stores them: maps of strings, or of base64, whose keys are
 * valid file names.
 */
#ifndef COXSWAIN_STANDALONE_STRING_DATA_H
#define COXSWAIN_STANDALONE_STRING_DATA_H

#include "operator/standalone/refusal.h"

/* Refuses with BadRequest data that kube-apiserver could not decode: not a map of strings, or not
 * base64. */
struct json *string_data_refuse(const struct resource *resource, const struct json *object);
/* Appends a cause for each key that is not a valid file name. */
void string_data_check(const struct resource *resource, const struct json *object, struct json *causes);

#endif
