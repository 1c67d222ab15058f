/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON object that ends in the CRC-32C of every byte before it, so that no
 * damage goes unnoticed: {…,"digest":"0badf00d"}. Manifests and epoch records are
 * written so.
 */
#ifndef COXSWAIN_CHECKPOINT_SEALED_DOCUMENT_H
#define COXSWAIN_CHECKPOINT_SEALED_DOCUMENT_H

#include "common/json.h"

/* `document` is an object with at least one member. */
int sealed_document_print(const struct json *document, struct buffer *out, struct error *error);

/* ERROR_CORRUPT when the digest is missing or wrong. The digest is a member of what comes back; release with json_free. */
int sealed_document_parse(const char *text, size_t length, size_t ceiling, struct json **ret_document,
                          struct error *error);

#endif
