/* SPDX-License-Identifier: Apache-2.0
 *
 * Uploads the export of a job whose export.storage is a bucket, in the chief. The file is written to the local disk first (export.c). Then
 * the files that belong to it are uploaded, and the weights last: readers look for the weights, and an object appears as a whole or not at
 * all.
 *
 * In the last moment before the weights appear, the caller's check says whether this chief has been replaced. Without checkpoints, which
 * have records of the chiefs, these records are objects: `.NAME.chiefs/incarnation-N.json` beside the export (export_claim.h).
 */
#ifndef COXSWAIN_TRAIN_EXPORT_OBJECTS_H
#define COXSWAIN_TRAIN_EXPORT_OBJECTS_H

#include <stdint.h>

#include "common/s3_transfer.h"
#include "worker/checkpoint/bucket.h"

struct export_objects;

/* Prepares uploads; contacts no server. `settings` is the value of ENV_EXPORT_S3, `path` the path of the local file. */
int export_objects_open(const char *settings, const char *path, struct export_objects **ret_objects,
                        struct error *error);
/* NULL is allowed. */
void export_objects_free(struct export_objects *objects);

/* Uploads a file that belongs to the export and is in its folder. */
int export_objects_put_beside(struct export_objects *objects, const char *name, struct error *error);

/* Uploads the weights. `check` is called before the object becomes visible; if it fails, its error is returned and no object appears.
 * Then verifies the size and checksum that the server reports. Other errors: those of bucket.h. */
int export_objects_put(struct export_objects *objects, s3_upload_check *check, const void *context, int64_t bytes,
                       uint32_t crc32c, struct error *error);

/* Gets the size and checksum of the object from the server. Returns -1 if there is no object, if this worker did not upload it, or if the
 * server does not answer. */
int export_objects_look(struct export_objects *objects, int64_t *ret_bytes, uint32_t *ret_crc32c);

/* Returns the bucket of the chiefs' records, whose local copy is the folder `directory`, which exists. The bucket belongs to `objects`. */
int export_objects_claims(struct export_objects *objects, const char *directory, struct bucket **ret_bucket,
                          struct error *error);

#endif
