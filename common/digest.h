/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes SHA-256 digests and the names that git gives to files (SHA-1 of a header and the bytes). Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_DIGEST_H
#define COXSWAIN_COMMON_DIGEST_H

#include <stddef.h>

#include "common/error.h"

#define DIGEST_TEXT_MAX 65 /* 64 hexadecimal digits and a NUL */

enum digest_kind { DIGEST_SHA256, DIGEST_GIT_BLOB };

struct digest;

/* Starts a digest of the bytes that are then passed to digest_add. digest_finish ends and frees it. ERROR_UNSUPPORTED if this OpenSSL does
 * not have the algorithm. */
int digest_start(enum digest_kind kind, struct digest **ret_digest, struct error *error);
void digest_add(struct digest *digest, const void *bytes, size_t length);
/* Writes the digest as lower-case hexadecimal digits and frees it. If `ret_text` is NULL, only frees it. */
void digest_finish(struct digest *digest, char ret_text[DIGEST_TEXT_MAX]);

/* Writes the digest of a file's contents. */
int digest_file(const char *path, enum digest_kind kind, char ret_text[DIGEST_TEXT_MAX], struct error *error);

#endif
