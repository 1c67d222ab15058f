/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the SHA-256 (FIPS 180-4) of a gzipped file's unpacked contents (zlib). `cox demo` verifies downloads with it and compares the
 * inputs of two runs.
 */
#ifndef COXSWAIN_CLI_SHA256_H
#define COXSWAIN_CLI_SHA256_H

#include "common/digest.h"

/* Computes the digest of a gzipped file's contents, which does not depend on how they were compressed; of a file that is not gzipped, the
 * digest of the file. ERROR_TOO_LARGE beyond `ceiling` unpacked bytes, ERROR_CORRUPT if the file cannot be unpacked. */
int sha256_unpacked(const char *path, size_t ceiling, char ret_text[DIGEST_TEXT_MAX], struct error *error);

#endif
