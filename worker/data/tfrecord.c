/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/tfrecord.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "common/crc32c.h"

#define HEADER 12 /* length and its CRC */
#define FOOTER 4

static uint32_t masked_crc(const void *bytes, size_t length)
{
    uint32_t crc = crc32c(0, bytes, length);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return le32toh(word);
}

int tfrecord_at(const uint8_t *bytes, size_t length, size_t offset, struct tfrecord *ret_record, struct error *error)
{
    const uint8_t *header = bytes + offset;
    size_t left = length - offset;
    if (left < HEADER + FOOTER)
        return error_set(error, ERROR_CORRUPT, "the record at byte %zu is cut off", offset);
    uint64_t data_bytes;
    memcpy(&data_bytes, header, sizeof data_bytes);
    data_bytes = le64toh(data_bytes);
    if (word_at(header + 8) != masked_crc(header, 8))
        return error_set(error, ERROR_CORRUPT,
                         "the CRC of the length of the record at byte %zu is wrong; is it a TFRecord file?", offset);
    if (data_bytes > TFRECORD_MAX)
        return error_set(error, ERROR_CORRUPT,
                         "the record at byte %zu says that it has %llu bytes; at most %zu are taken", offset,
                         (unsigned long long)data_bytes, TFRECORD_MAX);
    if (data_bytes > left - HEADER - FOOTER)
        return error_set(error, ERROR_CORRUPT,
                         "the record at byte %zu should have %llu bytes, but the file ends before", offset,
                         (unsigned long long)data_bytes);
    *ret_record = (struct tfrecord){header + HEADER, (size_t)data_bytes, offset + HEADER + (size_t)data_bytes + FOOTER};
    return 0;
}

int tfrecord_check(const struct tfrecord *record, struct error *error)
{
    if (word_at(record->data + record->length) == masked_crc(record->data, record->length))
        return 0;
    return error_set(error, ERROR_CORRUPT, "the CRC of a record's data is wrong; fetch the file again");
}

/* ---- protocol buffers' wire format */

struct wire {
    const uint8_t *at, *end;
};
struct wire_field {
    uint64_t number;
    unsigned type;
    uint64_t value;       /* of a varint */
    const uint8_t *bytes; /* of the other types */
    size_t length;
};
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

static bool take_varint(struct wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
        uint8_t byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct wire *wire, uint64_t length, struct wire_field *field)
{
    if (length > (uint64_t)(wire->end - wire->at))
        return false;
    field->bytes = wire->at;
    field->length = (size_t)length;
    wire->at += length;
    return true;
}

static bool take_field(struct wire *wire, struct wire_field *ret_field)
{
    uint64_t key, length;
    struct wire_field field = {0};
    if (!take_varint(wire, &key))
        return false;
    field.number = key >> 3;
    field.type = (unsigned)(key & 7);
    bool taken = false;
    switch (field.type) {
    case WIRE_VARINT:
        taken = take_varint(wire, &field.value);
        break;
    case WIRE_64:
        taken = take_bytes(wire, 8, &field);
        break;
    case WIRE_BYTES:
        taken = take_varint(wire, &length) && take_bytes(wire, length, &field);
        break;
    case WIRE_32:
        taken = take_bytes(wire, 4, &field);
        break;
    default:
        break;
    }
    *ret_field = field;
    return taken;
}

/* The last field of that number, as the format has it; -1 when the message cannot be read, 0 when there is none. */
static int find_message(struct wire wire, uint64_t number, struct wire *ret_message)
{
    int found = 0;
    while (wire.at < wire.end) {
        struct wire_field field;
        if (!take_field(&wire, &field))
            return -1;
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        *ret_message = (struct wire){field.bytes, field.bytes + field.length};
        found = 1;
    }
    return found;
}

static int broken(struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "a record does not hold a tf.train.Example");
}

/* ---- Example */

static bool has_name(struct wire key, const char *name)
{
    return (size_t)(key.end - key.at) == strlen(name) && memcmp(key.at, name, strlen(name)) == 0;
}

static int read_feature(struct wire message, struct tf_feature *ret_feature, struct error *error)
{
    *ret_feature = (struct tf_feature){.kind = TF_NONE, .list = message.at};
    while (message.at < message.end) {
        struct wire_field field;
        if (!take_field(&message, &field))
            return broken(error);
        if (field.type == WIRE_BYTES && field.number >= TF_BYTES && field.number <= TF_INTEGERS)
            *ret_feature = (struct tf_feature){(enum tf_list)field.number, field.bytes, field.length};
    }
    return 0;
}

int tf_example_find(const struct tfrecord *record, const char *name, struct tf_feature *ret_feature,
                    struct error *error)
{
    struct wire features;
    int found = find_message((struct wire){record->data, record->data + record->length}, 1, &features);
    if (found < 0)
        return broken(error);
    while (found > 0 && features.at < features.end) {
        struct wire_field entry;
        struct wire key = {NULL, NULL}, value = {NULL, NULL};
        if (!take_field(&features, &entry))
            return broken(error);
        if (entry.number != 1 || entry.type != WIRE_BYTES)
            continue;
        struct wire inside = {entry.bytes, entry.bytes + entry.length};
        int has_key = find_message(inside, 1, &key), has_value = find_message(inside, 2, &value);
        if (has_key < 0 || has_value < 0)
            return broken(error);
        if (has_key && has_value && has_name(key, name))
            return read_feature(value, ret_feature, error);
    }
    return error_set(error, ERROR_NOT_FOUND, "a record has no feature called %s", name);
}

int tf_feature_bytes(const struct tf_feature *feature, const uint8_t **ret_bytes, size_t *ret_length,
                     struct error *error)
{
    struct wire list = {feature->list, feature->list + feature->length};
    struct wire_field field = {0};
    bool alone = feature->kind == TF_BYTES && list.at < list.end && take_field(&list, &field) && field.number == 1 &&
                 field.type == WIRE_BYTES && list.at == list.end;
    if (!alone)
        return error_set(error, ERROR_INVALID, "it must be a bytes_list with exactly one element");
    *ret_bytes = field.bytes;
    *ret_length = field.length;
    return 0;
}

static int wrong_count(int64_t found, int64_t count, const char *what, struct error *error)
{
    if (found > count)
        return error_set(error, ERROR_INVALID, "it has more %s than the %lld that the model takes", what,
                         (long long)count);
    return error_set(error, ERROR_INVALID, "it has %lld %s; the model takes %lld", (long long)found, what,
                     (long long)count);
}

int tf_feature_floats(const struct tf_feature *feature, float *values, int64_t count, struct error *error)
{
    struct wire list = {feature->list, feature->list + feature->length};
    int64_t found = 0;
    while (feature->kind == TF_FLOATS && list.at < list.end) {
        struct wire_field field;
        if (!take_field(&list, &field) || field.number != 1 || (field.type != WIRE_BYTES && field.type != WIRE_32) ||
            field.length % 4 != 0)
            return broken(error);
        for (size_t i = 0; i < field.length; i += 4, found++) { /* packed, or one by one */
            if (found == count)
                return wrong_count(found + 1, count, "floats", error);
            uint32_t word = word_at(field.bytes + i);
            memcpy(&values[found], &word, sizeof word);
        }
    }
    return found == count ? 0 : wrong_count(found, count, "floats", error);
}

int tf_feature_integers(const struct tf_feature *feature, int64_t *values, int64_t count, struct error *error)
{
    struct wire list = {feature->list, feature->list + feature->length};
    int64_t found = 0;
    while (feature->kind == TF_INTEGERS && list.at < list.end) {
        struct wire_field field;
        if (!take_field(&list, &field) || field.number != 1 || (field.type != WIRE_BYTES && field.type != WIRE_VARINT))
            return broken(error);
        bool packed = field.type == WIRE_BYTES;
        struct wire inside = {field.bytes, packed ? field.bytes + field.length : field.bytes};
        while (!packed || inside.at < inside.end) {
            uint64_t value = field.value;
            if (packed && !take_varint(&inside, &value))
                return broken(error);
            if (found == count)
                return wrong_count(found + 1, count, "integers", error);
            values[found++] = (int64_t)value;
            if (!packed)
                break;
        }
    }
    return found == count ? 0 : wrong_count(found, count, "integers", error);
}
