/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4) of files: the one wrapper around OpenSSL's digests and
 * zlib here.
 */
#ifndef COXSWAIN_CLI_SHA256_H
#define COXSWAIN_CLI_SHA256_H

#include "common/error.h"

#define SHA256_TEXT_MAX 65 /* 64 hexadecimal digits and a NUL */

int sha256_file(const char *path, char ret_text[SHA256_TEXT_MAX], struct error *error);
/* Of what a gzipped file holds, so that it does not matter who packed it and how. A file that is not packed counts as it
 * is. ERROR_TOO_LARGE when more than `ceiling` bytes come out, ERROR_CORRUPT when it cannot be unpacked. */
int sha256_unpacked(const char *path, size_t ceiling, char ret_text[SHA256_TEXT_MAX], struct error *error);

#endif
