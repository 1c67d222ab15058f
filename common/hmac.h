/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes and compares HMAC-SHA256 codes (RFC 2104, FIPS 198-1). With such codes the workers of a job prove to each other that they have
 * the job's key, requests to S3 are signed, and bearer tokens are compared. The worker also uses them as digests that identify exported
 * programs. Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_HMAC_H
#define COXSWAIN_COMMON_HMAC_H

#include <stdbool.h>
#include <stddef.h>

#define HMAC_BYTES 32

void hmac_sha256(const void *key, size_t key_length, const void *message, size_t length,
                 unsigned char ret_code[HMAC_BYTES]);

/* Compares in constant time: where two codes differ does not change how long it takes. */
bool hmac_equal(const unsigned char left[HMAC_BYTES], const unsigned char right[HMAC_BYTES]);

#endif
