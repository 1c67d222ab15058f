/* SPDX-License-Identifier: Apache-2.0
 *
 * The key that the pods of one job share, and by which they know each other. The
 * operator makes it (a Secret of the job, mounted as a file); whoever opens a
 * stream or a data connection proves that it has it, and who has not is refused
 * before a byte of its messages is looked at. A process that was given no key (by
 * hand, or a crew under another system) asks for none.
 *
 * A proof is an HMAC over what is asked for. It says that the caller belongs to
 * the job; it does not hide what is said after it, nor keep somebody who can
 * change packets on their way from doing so (docs/security.md).
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
