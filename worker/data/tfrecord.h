/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads TFRecord files and the tf.train.Example in each record (TensorFlow's record_writer.h, example.proto,
 * feature.proto), for the data format tfrecord. A record is a length (8 bytes, little-endian), its masked
 * CRC-32C, the data, and the data's masked CRC-32C. An Example maps names to lists of bytes, floats or
 * integers. Reads bytes in memory; results point into them.
 */
#ifndef COXSWAIN_DATA_TFRECORD_H
#define COXSWAIN_DATA_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* A longer record is considered damaged. */
#define TFRECORD_MAX ((size_t)1 << 30)

struct tfrecord {
    const uint8_t *data; /* points into the bytes given */
    size_t length;
    size_t next; /* where the next record begins */
};

/* Finds the record at `offset` < length and checks the CRC of its length; tfrecord_check checks the
 * CRC of its data. ERROR_CORRUPT gives the offset. */
int tfrecord_at(const uint8_t *bytes, size_t length, size_t offset, struct tfrecord *ret_record, struct error *error);
int tfrecord_check(const struct tfrecord *record, struct error *error);

enum tf_list { TF_NONE, TF_BYTES, TF_FLOATS, TF_INTEGERS };
struct tf_feature {
    enum tf_list kind;
    const uint8_t *list; /* the list's own message */
    size_t length;
};
/* Finds a feature of the record's Example. ERROR_NOT_FOUND if it has none of that name;
 * ERROR_CORRUPT if it cannot be parsed. */
int tf_example_find(const struct tfrecord *record, const char *name, struct tf_feature *ret_feature,
                    struct error *error);

/* Reads a list of bytes that has exactly one value. */
int tf_feature_bytes(const struct tf_feature *feature, const uint8_t **ret_bytes, size_t *ret_length,
                     struct error *error);
/* Read lists of exactly `count` floats, or integers. */
int tf_feature_floats(const struct tf_feature *feature, float *values, int64_t count, struct error *error);
int tf_feature_integers(const struct tf_feature *feature, int64_t *values, int64_t count, struct error *error);

#endif
