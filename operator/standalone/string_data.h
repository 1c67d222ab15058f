/* SPDX-License-Identifier: Apache-2.0
 *
 * The maps of text and of base64 in ConfigMaps and Secrets.
 */
#ifndef COXSWAIN_STANDALONE_STRING_DATA_H
#define COXSWAIN_STANDALONE_STRING_DATA_H

#include "operator/standalone/refusal.h"

/* BadRequest where the real one could not even decode `object`: data that is no map of strings, or no base64. */
struct json *string_data_refuse(const struct resource *resource, const struct json *object);
/* Keys must be possible file names. */
void string_data_check(const struct resource *resource, const struct json *object, struct json *causes);

#endif
