/* SPDX-License-Identifier: Apache-2.0
 *
 * The merge patch by which a job that is there becomes what a manifest says. A merge patch leaves alone what it does not
 * name, so that a field which was taken out of the manifest would stay: of fields that may not change after creation it
 * is asked to have its default, which the API server refuses where it had another value. What may change (suspend,
 * workers) others may have set since.
 */
#ifndef COXSWAIN_CLI_JOB_PATCH_H
#define COXSWAIN_CLI_JOB_PATCH_H

#include "common/json.h"

/* Both are TrainingJobs: as the manifest has it, and as the API server has it. */
struct json *job_patch(const struct json *wanted, const struct json *present);

#endif
