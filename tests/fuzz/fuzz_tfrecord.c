/* SPDX-License-Identifier: Apache-2.0
 *
 * The first byte selects whether the rest is a file of records or the data of a record, which random bytes would seldom reach behind its
 * CRCs.
 */
#include <stdlib.h>

#include "worker/data/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void read_feature(const struct tfrecord *record, const char *name)
{
    struct error error = ERROR_INIT;
    struct tf_feature feature;
    const uint8_t *text;
    size_t text_bytes;
    float floats[8];
    int64_t integers[8];
    if (tf_example_find(record, name, &feature, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    if (tf_feature_bytes(&feature, &text, &text_bytes, NULL) == 0 &&
        (text < record->data || text + text_bytes > record->data + record->length))
        abort();
    for (int64_t count = 1; count <= 8; count += 7) {
        (void)tf_feature_floats(&feature, floats, count, NULL);
        (void)tf_feature_integers(&feature, integers, count, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct tfrecord record = {0};
    if (length == 0)
        return 0;
    if (bytes[0] & 1) {
        record = (struct tfrecord){bytes + 1, length - 1, 0};
        read_feature(&record, "label");
        read_feature(&record, "");
        return 0;
    }
    for (size_t at = 1; at < length; at = record.next) {
        if (tfrecord_at(bytes, length, at, &record, NULL) < 0)
            return 0;
        (void)tfrecord_check(&record, NULL);
        read_feature(&record, "label");
    }
    return 0;
}
