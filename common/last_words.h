/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the one line that says why a program failed, in the termination message of its container: what the program wrote there,
 * or the end of its log, of which a kubelet keeps 2048 bytes.
 */
#ifndef COXSWAIN_COMMON_LAST_WORDS_H
#define COXSWAIN_COMMON_LAST_WORDS_H

#include "common/buffer.h"

#define LAST_WORDS_MAX 512

/* Appends the line of `message` that names the error ("ValueError: …", "error: …"; the last one if there are several), else its
 * last line; nothing when there is none. Lines are never quoted from their middle; one longer than LAST_WORDS_MAX is cut at its
 * end. Terminal escapes and other control characters are left out.
 *
 * After a signal (`exit_code` above 128) only a line that names an error is taken, after SIGKILL none: whatever such a program
 * wrote last has nothing to do with its end. A message "exit 65 (meaning): cause" of Coxswain's worker yields the cause. */
void last_words(const char *message, int exit_code, struct buffer *out);

/* Appends `text` as one line without control characters, cut at `most` bytes. */
void last_words_clean(const char *text, size_t length, size_t most, struct buffer *out);

#endif
