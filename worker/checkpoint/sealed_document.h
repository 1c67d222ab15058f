/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints and parses JSON objects that end in the CRC-32C of every byte before it, so that damage is
 * detected: {…,"digest":"0badf00d"}. Manifests and incarnation records have this form.
 */
#ifndef COXSWAIN_CHECKPOINT_SEALED_DOCUMENT_H
#define COXSWAIN_CHECKPOINT_SEALED_DOCUMENT_H

#include "common/json.h"

/* Appends the text. `document` is an object with at least one member. */
int sealed_document_print(const struct json *document, struct buffer *out, struct error *error);

/* Verifies and parses a text of at most `ceiling` bytes. ERROR_CORRUPT if the digest is missing or
 * wrong. The result has the digest as a member; release it with json_free. */
int sealed_document_parse(const char *text, size_t length, size_t ceiling, struct json **ret_document,
                          struct error *error);

#endif
