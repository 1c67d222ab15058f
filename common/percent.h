/* SPDX-License-Identifier: Apache-2.0
 *
 * Percent-encodes text for URLs and header names (RFC 3986).
 */
#ifndef COXSWAIN_COMMON_PERCENT_H
#define COXSWAIN_COMMON_PERCENT_H

#include "common/buffer.h"

/* Appends `text` with "%" and two upper-case digits for each byte that is neither unreserved (letters, digits, "-._~") nor in `kept`.
 * After an error (the buffer's ceiling), a part of the text may have been appended. */
int percent_encode(struct buffer *buffer, const char *text, const char *kept, struct error *error);

#endif
