/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4): the check on checkpoint files and
 * network frames. Uses the processor's instruction where there is one.
 */
#ifndef COXSWAIN_COMMON_CRC32C_H
#define COXSWAIN_COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the start) over more bytes: crc32c(crc32c(0, a), b) == crc32c(0, ab). */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
