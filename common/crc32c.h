/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the checksum CRC-32C (Castagnoli, RFC 3720 appendix B.4). Uses the SSE 4.2 instruction if the processor has it.
 */
#ifndef COXSWAIN_COMMON_CRC32C_H
#define COXSWAIN_COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of the bytes behind `crc` (0 at the start) and these: crc32c(crc32c(0, a), b) == crc32c(0, ab). */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t length);

/* Returns the checksum of two joined pieces from the checksum of each and the length of the second: crc32c(0, ab) from crc32c(0, a) and
 * crc32c(0, b). */
uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t second_length);

#endif
