/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges a job's spec with the defaults of its training class. An administrator writes a ClusterTrainingClass, or a TrainingClass for
 * one namespace, and jobs name it in spec.trainingClass. The operator copies the class's spec into the job's status (struct
 * pinned_class) before it creates anything, and training_job_parse merges that copy each time, so that a job keeps what it was created
 * with.
 *
 * The job's value wins. Members of objects are merged one by one. Lists whose elements have a key are merged by it: storage, containers,
 * env and volumes by name, mounts by path, tolerations by key and effect. Other lists are the job's, if it gives them.
 */
#ifndef COXSWAIN_JOB_TRAINING_CLASS_H
#define COXSWAIN_JOB_TRAINING_CLASS_H

#include "common/job/training_job.h"

/* Longest spec of a class, as JSON: each of its jobs carries a copy. */
#define TRAINING_CLASS_MAX (32 * 1024)

/* Changes a job's spec in place: adds the fields of `defaults`, the spec of its class, that the job does not give. queueName is left
 * out, because it stands for a label of the job. */
void training_class_merge(struct json *spec, const struct json *defaults);

/* Returns " (with the defaults of ClusterTrainingClass small)", which messages append to a field of the merged spec; "" if the job's status
 * has no class. Free with free(). */
char *training_class_words(const struct training_job *job);

/* Returns whether a document, which may be any object, is a class of either kind, by its `kind`. */
bool training_class_is_kind(const struct json *object);
/* "clustertrainingclasses" */
const char *training_class_plural(enum training_class_kind kind);

/* Finds all violations of a class of either kind, as training_job_violations does for a job. */
struct json *training_class_violations(const struct json *object);
/* Returns -1 with ERROR_INVALID for the first violation, or if the spec has a null, a template that is too broad, or more bytes than
 * TRAINING_CLASS_MAX. */
int training_class_check(const struct json *object, struct error *error);

#endif
