/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two statuses of a job to decide how urgently the new one must be written. plan_job
 * writes a decision at once, lets changed counts wait for a moment, so that one write covers many
 * pods, and writes mere progress when it is the job's turn (progress_pace.h).
 */
#ifndef COXSWAIN_CONTROLLER_STATUS_CHANGE_H
#define COXSWAIN_CONTROLLER_STATUS_CHANGE_H

#include "common/job/training_job.h"

enum status_change {
    STATUS_SAME,
    STATUS_PROGRESS, /* nothing but progress */
    STATUS_COUNTS,   /* numbers of pods, messages, the condition Scheduled: may wait for a moment */
    STATUS_DECISION, /* other writes depend on it, or somebody waits for it: write at once */
};

enum status_change status_compare(const struct job_status *before, const struct job_status *after);

#endif
