/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the metadata that all children of a job have: namespace, owner reference, and the labels
 * by which the operator finds them.
 */
#ifndef COXSWAIN_CONTROLLER_CHILD_METADATA_H
#define COXSWAIN_CONTROLLER_CHILD_METADATA_H

#include "common/job/training_job.h"

/* Sets name, namespace, ownerReferences and the labels in `metadata`; replaces earlier values. */
void child_metadata_fill(struct json *metadata, const struct training_job *job, const char *name);

/* Returns the owner reference that names a TrainingJob or TrainingSweep as the controller; free with json_free. */
struct json *child_owner_reference(const char *kind, const char *name, const char *uid);

/* Sets a label or annotation to a decimal number. */
void child_label_number(struct json *labels, const char *key, int64_t number);

#endif
