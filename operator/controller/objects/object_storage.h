/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies objects into the pods of a job whose storage is a bucket (storage[].s3). Each such storage is an emptyDir of at most cacheSize. An
 * init container, which ends before the job's containers start, runs `coxswain-storage fetch`. It copies the files that data, init and
 * model.program name; everything below the prefix if they name none, and for other frameworks. The job's containers see the files
 * read-only, at the same path as for any other storage.
 *
 * The Secret with the credentials is mounted into the init container alone.
 */
#ifndef COXSWAIN_CONTROLLER_OBJECT_STORAGE_H
#define COXSWAIN_CONTROLLER_OBJECT_STORAGE_H

#include "common/job/training_job.h"

/* Whether a storage of the job is a bucket. */
bool object_storage_is_used(const struct job_document *document);

/* Appends the volumes, including those of the Secrets, to the volumes of a pod. */
void object_storage_add_volumes(struct json *volumes, const struct job_document *document);

/* Appends an init container for each such storage. `image` must contain coxswain-storage. */
void object_storage_add_fetches(struct json *init_containers, const struct training_job *job, const char *image);

#endif
