/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the key that the pods of one job share, by which they recognise each other. The operator makes it (a Secret of the job, mounted
 * as a file). A process without a key (started by hand, or without the operator) demands none from its peers.
 *
 * Control connections derive a TLS secret from the key and prove it for each session (tls_session.h, crew_hello.h). Data connections
 * prove it in their greeting (frame.h). That shows that the peer belongs to the job, but does not encrypt or authenticate the data that
 * follows (docs/security.md).
 *
 * There is one key per process. Load it before the first connection.
 */
#ifndef COXSWAIN_COMM_CREW_KEY_H
#define COXSWAIN_COMM_CREW_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/hmac.h"

#define CREW_KEY_MIN 16
#define CREW_KEY_MAX 1024
#define CREW_PROOF_BYTES HMAC_BYTES

/* Reads the key, which is all bytes of the file. ERROR_INVALID if they are too few or too many. */
int crew_key_load(const char *path, struct error *error);

/* Sets the key without a file, for tests. Length 0: no key. */
void crew_key_set(const void *bytes, size_t length);
bool crew_key_is_set(void);

/* Computes a proof (HMAC-SHA256) over `bytes`; zeros without a key. A proof for one `purpose` is not valid for another. */
void crew_key_prove(const char *purpose, const void *bytes, size_t length, unsigned char ret_proof[CREW_PROOF_BYTES]);

/* Returns whether a proof is valid; always true if this process has no key. */
bool crew_key_accepts(const char *purpose, const void *bytes, size_t length,
                      const unsigned char proof[CREW_PROOF_BYTES]);

#endif
