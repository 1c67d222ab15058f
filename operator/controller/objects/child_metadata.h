/* SPDX-License-Identifier: Apache-2.0
 *
 * What every child of a job carries: namespace, owner, and the labels by which it
 * is found again.
 */
#ifndef COXSWAIN_CONTROLLER_CHILD_METADATA_H
#define COXSWAIN_CONTROLLER_CHILD_METADATA_H

#include "common/job/training_job.h"

/* Sets name, namespace, ownerReferences and the labels in `metadata`, whatever stood there. */
void child_metadata_fill(struct json *metadata, const struct training_job *job, const char *name);

/* The reference by which the job controls what has it; free with json_free. */
struct json *child_owner_reference(const struct training_job *job);

/* A decimal label or annotation. */
void child_label_number(struct json *labels, const char *key, int64_t number);

#endif
