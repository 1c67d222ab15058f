/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads little-endian numbers at any alignment.
 */
#ifndef COXSWAIN_COMM_LITTLE_ENDIAN_H
#define COXSWAIN_COMM_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_u16(unsigned char *bytes, uint16_t value)
{
    value = htole16(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void put_u32(unsigned char *bytes, uint32_t value)
{
    value = htole32(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void put_u64(unsigned char *bytes, uint64_t value)
{
    value = htole64(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline uint16_t get_u16(const unsigned char *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof(value));
    return le16toh(value);
}

static inline uint32_t get_u32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return le32toh(value);
}

static inline uint64_t get_u64(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return le64toh(value);
}

#endif
