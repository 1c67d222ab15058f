/* SPDX-License-Identifier: Apache-2.0
 *
 * Records which file a job exported at its end, in `export.json` in the job's checkpoint directory.
 * An earlier job's export may have the same name; a chief's successor tells them apart by this
 * record.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_RECORD_H
#define COXSWAIN_TRAIN_EXPORT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct export_record {
    const char *job_uid;
    int64_t step; /* of the last checkpoint, even if the best weights were exported */
    int64_t bytes;
    uint32_t crc32c;
};

/* Writes the record durably and replaces an older one. Call it after the export has its final name. */
int export_record_write(const char *directory, const struct export_record *record, struct error *error);

/* Returns whether this job has exported after `step` and the file at `path` still has the recorded
 * size and checksum. */
bool export_record_holds(const char *directory, const char *job_uid, int64_t step, const char *path);

#endif
