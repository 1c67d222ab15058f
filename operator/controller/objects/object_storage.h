/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives the pods of a job the files of storage that is a bucket (storage[].s3). Each such storage is an emptyDir of at most cacheSize. Before
 * the job's containers start, an init container runs `coxswain-storage fetch`, which copies into it what the job reads: the files of
 * data, init and model.program by their paths; everything below the prefix if the job names no file of the storage, as jobs of other
 * frameworks do. The job's containers see the files read-only, at the place of every other storage.
 *
 * The Secret with the credentials is mounted into the init container alone.
 */
#ifndef COXSWAIN_CONTROLLER_OBJECT_STORAGE_H
#define COXSWAIN_CONTROLLER_OBJECT_STORAGE_H

#include "common/job/training_job.h"

/* Whether a storage of the job is a bucket. */
bool object_storage_is_used(const struct job_document *document);

/* Appends the volumes, those of the Secrets included, to a pod's. */
void object_storage_add_volumes(struct json *volumes, const struct job_document *document);

/* Appends an init container for each such storage; `image` has coxswain-storage. */
void object_storage_add_fetches(struct json *init_containers, const struct training_job *job, const char *image);

#endif
