/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds what the Secrets of a job have in common: their names and objects, and the volume and the mount by which a pod gets their files.
 * crew_key.h, crew_certificate.h and progress_push.h say what is in them.
 */
#ifndef COXSWAIN_CONTROLLER_JOB_SECRET_H
#define COXSWAIN_CONTROLLER_JOB_SECRET_H

#include "common/job/training_job.h"

/* Readable for any user that a template sets. */
#define JOB_SECRET_MODE 0444

/* Returns "<job>-<purpose>-<start of its UID>"; release with free(). A later job of that name has other Secrets. */
char *job_secret_name(const struct training_job *job, const char *purpose);

/* Returns a Secret without data, owned by the job; free with json_free. */
struct json *job_secret_new(const struct training_job *job, const char *name);
void job_secret_set_data(struct json *secret, const char *file, const void *bytes, size_t length);

/* Adds a volume with the files of a Secret to a pod's volumes. Returns its source, borrowed. */
struct json *job_secret_add_volume(struct json *volumes, const char *volume, const char *secret_name);
/* Adds a mount of any volume to a container's mounts, read-only. */
void job_secret_add_mount(struct json *mounts, const char *volume, const char *directory);

#endif
