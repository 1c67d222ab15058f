/* SPDX-License-Identifier: Apache-2.0
 *
 * `export.json` in a job's checkpoint directory: which file a job has exported at its end. Under the name of an export an
 * earlier job's file may lie: by this record a chief's successor tells them apart.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_RECORD_H
#define COXSWAIN_TRAIN_EXPORT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct export_record {
    const char *job_uid;
    int64_t step; /* of the last checkpoint, whichever weights were exported */
    int64_t bytes;
    uint32_t crc32c;
};

/* After the file has its name; replaces an older record. Durable on return. */
int export_record_write(const char *directory, const struct export_record *record, struct error *error);

/* Whether this job has exported after this step, and `path` is that file still, byte for byte. */
bool export_record_holds(const char *directory, const char *job_uid, int64_t step, const char *path);

#endif
