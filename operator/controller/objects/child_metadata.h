/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the metadata that every object created for a job has: the namespace, the owner reference,
 * by which the garbage collector deletes the object with its job, and the labels by which the
 * operator's watches find the object. The other files of this folder call it for pods, Services,
 * Secrets, PodGroups and Workloads. Trials of sweeps and pods that are adopted get only the owner
 * reference from here.
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
