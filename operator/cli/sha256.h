/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the SHA-256 (FIPS 180-4) of files with OpenSSL; for a gzipped file also that of its unpacked
 * contents (zlib). `cox demo` verifies downloads with it and compares the inputs of two runs.
 */
#ifndef COXSWAIN_CLI_SHA256_H
#define COXSWAIN_CLI_SHA256_H

#include "common/error.h"

#define SHA256_TEXT_MAX 65 /* 64 hexadecimal digits and a NUL */

int sha256_file(const char *path, char ret_text[SHA256_TEXT_MAX], struct error *error);
/* Computes the digest of a gzipped file's contents, which does not depend on how they were compressed; of a file that is not gzipped, the
 * digest of the file. ERROR_TOO_LARGE beyond `ceiling` unpacked bytes, ERROR_CORRUPT if the file cannot be unpacked. */
int sha256_unpacked(const char *path, size_t ceiling, char ret_text[SHA256_TEXT_MAX], struct error *error);

#endif
