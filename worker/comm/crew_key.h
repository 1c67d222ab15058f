/* SPDX-License-Identifier: Apache-2.0
 *
 * The key that the pods of one job share, and by which they know each other. The
 * operator makes it (a Secret of the job, mounted as a file). A process without a
 * key (started by hand, or in a crew under another system) asks for none.
 *
 * Control connections derive a TLS secret from it and prove it for each session
 * (tls_session.h, introduction.h). Data connections prove it over their greeting
 * (frame.h); that says that the caller belongs to the job, but neither hides what
 * follows nor keeps it from being changed on its way (docs/security.md).
 *
 * One key a process, loaded before any connection is made.
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

/* The file's bytes are the key. ERROR_INVALID when there are too few or too many. */
int crew_key_load(const char *path, struct error *error);
/* Instead of a file, for tests; length 0: no key from now on. */
void crew_key_set(const void *bytes, size_t length);
bool crew_key_is_set(void);

/* Zeros without a key. `purpose` keeps a proof for one thing from serving for another. */
void crew_key_prove(const char *purpose, const void *bytes, size_t length, unsigned char ret_proof[CREW_PROOF_BYTES]);
/* True also when this process has no key. */
bool crew_key_accepts(const char *purpose, const void *bytes, size_t length,
                      const unsigned char proof[CREW_PROOF_BYTES]);

#endif
