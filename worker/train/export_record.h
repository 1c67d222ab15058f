/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that a job has written its final export, in `export.json` in the job's checkpoint
 * directory. A chief that replaces one lost at the very end reads the record (saving_is_complete):
 * if it matches the exported file, nothing remains to be done. The record is needed because an
 * earlier job may have left a file of the same name. If there is no valid record, the chief exports
 * again.
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

/* Returns whether there is a valid record which says that this job has exported after `step`, and gives the file this size and checksum. */
bool export_record_is(const char *directory, const char *job_uid, int64_t step, int64_t bytes, uint32_t crc32c);
/* Does the same with the size and checksum that the file at `path` has now. Returns false if the file cannot be read. */
bool export_record_holds(const char *directory, const char *job_uid, int64_t step, const char *path);

#endif
