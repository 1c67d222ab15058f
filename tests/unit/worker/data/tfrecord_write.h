/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecords for tests: an Example with one list of bytes and one of integers.
 */
#ifndef COXSWAIN_TESTS_TFRECORD_WRITE_H
#define COXSWAIN_TESTS_TFRECORD_WRITE_H

#include <stdint.h>
#include <string.h>

#include "common/crc32c.h"

/* A field of bytes below 128 long. */
static inline size_t put_field(uint8_t *to, unsigned number, const void *bytes, size_t length)
{
    to[0] = (uint8_t)(number << 3 | 2);
    to[1] = (uint8_t)length;
    memmove(to + 2, bytes, length);
    return length + 2;
}

static inline size_t put_feature(uint8_t *to, const char *name, unsigned kind, const void *list, size_t length)
{
    uint8_t value[128], entry[256];
    size_t value_bytes = put_field(value, kind, list, length);
    size_t entry_bytes = put_field(entry, 1, name, strlen(name));
    entry_bytes += put_field(entry + entry_bytes, 2, value, value_bytes);
    return put_field(to, 1, entry, entry_bytes);
}

/* Pixels (as bytes) called "image", a label called "label". */
static inline size_t put_example(uint8_t *to, const void *pixels, size_t count, uint8_t label)
{
    uint8_t list[128], features[256];
    size_t at = 0, list_bytes = put_field(list, 1, pixels, count);
    at += put_feature(features + at, "image", 1, list, list_bytes);
    const uint8_t packed[] = {1 << 3 | 2, 1, label};
    at += put_feature(features + at, "label", 3, packed, sizeof packed);
    return put_field(to, 1, features, at);
}

static inline void put_crc(uint8_t *to, const void *bytes, size_t length)
{
    uint32_t crc = crc32c(0, bytes, length);
    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    memcpy(to, &crc, sizeof crc);
}

static inline size_t put_record(uint8_t *to, const void *data, size_t length)
{
    uint64_t bytes = length;
    memcpy(to, &bytes, sizeof bytes);
    put_crc(to + 8, to, 8);
    memmove(to + 12, data, length);
    put_crc(to + 12 + length, data, length);
    return length + 16;
}

#endif
