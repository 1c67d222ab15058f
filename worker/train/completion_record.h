/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in the job's checkpoint directory, in `completion.json`, that a job has done everything: its last checkpoint, its last
 * evaluation and its export. The chief writes it at the very end. A chief that replaces one lost between that moment and its end
 * (saving_is_complete) has nothing to do but to report what the record says: the operator may never have read the last status. If there
 * is no valid record, the chief evaluates and exports again.
 */
#ifndef COXSWAIN_TRAIN_COMPLETION_RECORD_H
#define COXSWAIN_TRAIN_COMPLETION_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/contract/status_document.h"
#include "common/error.h"

/* Plain values. */
struct completion_record {
    int64_t step; /* of the last checkpoint */
    bool exported;
    int64_t export_bytes; /* size and CRC-32C of the exported file; an earlier job's file of the same name has others */
    uint32_t export_crc32c;
    struct status_document status; /* as the chief last reported it; its job_uid says whose record this is */
};

/* Writes the record durably and replaces an older one. Call it after the export has its final name. */
int completion_record_write(const char *directory, const struct completion_record *record, struct error *error);
/* Fails with ERROR_NOT_FOUND if there is no record, with ERROR_CORRUPT or ERROR_INVALID if it was cut or changed. */
int completion_record_read(const char *directory, struct completion_record *ret_record, struct error *error);

#endif
