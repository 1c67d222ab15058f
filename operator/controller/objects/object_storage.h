/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds volumes and init containers to the pods of a job that reads its data from object storage (storage[].s3). Each such storage is an
 * emptyDir of at most cacheSize. An init container downloads the objects into it (`coxswain-storage fetch`): the files that data, init and
 * model.program name, or everything below the prefix if they name none or the job is of another framework. The job's containers see the
 * files read-only, at the same path as for any other storage.
 *
 * If checkpoint or export names the storage, the job's containers can also write to it, and the chief uploads its checkpoints
 * (worker/checkpoint/bucket.h) and the export (worker/train/export_objects.h). A storage from which section coxswain reads nothing has
 * no init container.
 *
 * A storage with s3.sync, of a job of another framework, can be written by all pods. An init container restores what is complete in the
 * bucket (storage/sync.h), and in the chief, or worker 0, a sidecar uploads what that pod writes; it ends after the other containers.
 *
 * For a storage with a section download, whatever its volume, an init container runs `coxswain-storage download` (storage/download.h).
 *
 * The Secret with the credentials is mounted into the init container and, if something is uploaded, into the trainer's container.
 */
#ifndef COXSWAIN_CONTROLLER_OBJECT_STORAGE_H
#define COXSWAIN_CONTROLLER_OBJECT_STORAGE_H

#include "common/job/training_job.h"

/* Returns whether a storage of the job is a bucket, or has downloads. */
bool object_storage_is_used(const struct job_document *document);

/* Returns whether the trainer uploads to this storage (checkpoints, the export, or both), or a sidecar does. */
bool object_storage_is_written(const struct training_job *job, const struct storage_spec *storage);

/* Returns whether the job's checkpoints are uploaded at all. */
bool object_storage_takes_checkpoints(const struct training_job *job);

/* If checkpoints or the export are uploaded, append what the trainer needs for that to its environment (ENV_CHECKPOINT_S3,
 * ENV_EXPORT_S3) and mounts. */
void object_storage_add_environment(struct json *environment, const struct training_job *job);
void object_storage_add_mounts(struct json *mounts, const struct training_job *job);

/* Appends the volumes, including those of the Secrets, to the volumes of a pod. */
void object_storage_add_volumes(struct json *volumes, const struct job_document *document);

/* Appends an init container for each such storage from which the job reads. `image` must contain coxswain-storage. `uploads`: this is the
 * pod that uploads; only then are there sidecars, with restartPolicy Always and resources of their own. */
void object_storage_add_fetches(struct json *init_containers, const struct training_job *job, const char *image,
                                bool uploads);

/* Returns whether this is the name of an init container that copies files into a pod. */
bool object_storage_is_fetch(const char *container);

/* Whether a sidecar uploads from this pod. */
bool object_storage_uploads(const struct training_job *job, enum role role, int64_t index);

#endif
