/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord files and the tf.train.Example in their records (tensorflow's
 * record_writer.h, example.proto, feature.proto). A record is a length (8 bytes,
 * little-endian), its masked CRC-32C, the data, and the data's masked CRC-32C. An
 * Example is a map from names to lists of bytes, of floats or of integers.
 */
#ifndef COXSWAIN_DATA_TFRECORD_H
#define COXSWAIN_DATA_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Longer records are taken for damage. */
#define TFRECORD_MAX ((size_t)1 << 30)

struct tfrecord {
    const uint8_t *data; /* into the bytes given */
    size_t length;
    size_t next; /* where the next record begins */
};

/* The record at `offset` < length. The CRC of its length is checked, that of its data only by tfrecord_check. ERROR_CORRUPT
 * says at which byte. */
int tfrecord_at(const uint8_t *bytes, size_t length, size_t offset, struct tfrecord *ret_record, struct error *error);
int tfrecord_check(const struct tfrecord *record, struct error *error);

enum tf_list { TF_NONE, TF_BYTES, TF_FLOATS, TF_INTEGERS };
struct tf_feature {
    enum tf_list kind;
    const uint8_t *list; /* the list's own message */
    size_t length;
};
/* ERROR_NOT_FOUND when the Example has no feature of that name; ERROR_CORRUPT when it cannot be read. */
int tf_example_find(const struct tfrecord *record, const char *name, struct tf_feature *ret_feature,
                    struct error *error);

/* The only value of a list of bytes. */
int tf_feature_bytes(const struct tf_feature *feature, const uint8_t **ret_bytes, size_t *ret_length,
                     struct error *error);
/* Exactly `count` floats, or integers. */
int tf_feature_floats(const struct tf_feature *feature, float *values, int64_t count, struct error *error);
int tf_feature_integers(const struct tf_feature *feature, int64_t *values, int64_t count, struct error *error);

#endif
