/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between two statuses: how urgent it is to write the new one.
 */
#ifndef COXSWAIN_CONTROLLER_STATUS_CHANGE_H
#define COXSWAIN_CONTROLLER_STATUS_CHANGE_H

#include "common/job/training_job.h"

enum status_change {
    STATUS_SAME,
    STATUS_PROGRESS, /* nothing but progress */
    STATUS_COUNTS,   /* pods counted, messages, kept promises: may wait a moment */
    STATUS_DECISION, /* what other writes rest on, or what somebody waits for: at once */
};

enum status_change status_compare(const struct job_status *before, const struct job_status *after);

#endif
