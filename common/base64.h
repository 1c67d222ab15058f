/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 as Kubernetes writes it (RFC 4648, section 4): certificates in a
 * kubeconfig, the data of Secrets. OpenSSL does the work.
 */
#ifndef COXSWAIN_COMMON_BASE64_H
#define COXSWAIN_COMMON_BASE64_H

#include <stddef.h>

#include "common/error.h"

/* Longer texts are refused. */
#define BASE64_TEXT_MAX (4 * 1024 * 1024)

/* A new string, padded; release with free(). */
char *base64_encode(const void *bytes, size_t length);

/* ERROR_INVALID unless it is padded base64; line ends are passed over, as Go's decoder does. *ret_bytes is NUL-terminated
 * behind *ret_length bytes; release with free(). */
int base64_decode(const char *text, char **ret_bytes, size_t *ret_length, struct error *error);

#endif
