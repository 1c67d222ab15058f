/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes Base64 (RFC 4648, section 4), for the certificates in a kubeconfig and the data of a Secret. Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_BASE64_H
#define COXSWAIN_COMMON_BASE64_H

#include <stddef.h>

#include "common/error.h"

/* Limit on the text that base64_decode accepts, in bytes. */
#define BASE64_TEXT_MAX (4 * 1024 * 1024)

/* Returns a new string with padding; release with free(). */
char *base64_encode(const void *bytes, size_t length);

/* Decodes padded Base64. Skips line ends, as Go's decoder does. ERROR_INVALID if the text is anything else, ERROR_TOO_LARGE beyond
 * BASE64_TEXT_MAX. A NUL follows the *ret_length bytes; release *ret_bytes with free(). */
int base64_decode(const char *text, char **ret_bytes, size_t *ret_length, struct error *error);

#endif
